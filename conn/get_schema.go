package conn

import (
	"fmt"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

// getSchema answers a version of a topic's schemas, which may be as large as a list of topics and waits like one.
// Errors: InvalidTopicName, AuthorizationError, TopicNotFound for a version that is not there, and those of Schemas.Schema.
//
// Source: PulsarApi.proto CommandGetSchema; ServerCnx.handleGetSchema.
func (r request) getSchema(cmd *pulsarproto.CommandGetSchema) {
	r.requests.Go(func() {
		if !r.awaitListing() {
			return
		}
		defer r.listed()
		requestID := cmd.GetRequestId()
		schema, version, err := r.findSchema(cmd)
		if err != nil {
			code, text := r.failure(pulsarproto.BaseCommand_GET_SCHEMA, err, false)
			r.answer(func(b []byte) []byte { return pulsarproto.AppendGetSchemaError(b, requestID, code, text) })
			return
		}
		r.answer(func(b []byte) []byte { return pulsarproto.AppendGetSchemaResponse(b, requestID, schema, version) })
	})
}

func (r request) findSchema(cmd *pulsarproto.CommandGetSchema) (*pulsarproto.Schema, []byte, error) {
	name, err := parseTopic(cmd.GetTopic())
	if err != nil {
		return nil, nil, err
	}
	if err := r.mayLookup(name); err != nil {
		return nil, nil, err
	}
	schema, version, found, err := r.services.Schemas.Schema(r.ctx, name, cmd.SchemaVersion)
	if err == nil && !found {
		err = cnx.Refuse(pulsarproto.ServerError_TopicNotFound, fmt.Sprintf("Topic not found or no-schema %s", name))
	}
	return schema, version, err
}
