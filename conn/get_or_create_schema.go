package conn

import (
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

// getOrCreateSchema answers the version of a schema that a producer uses beside the one that it was attached with. A producer
// without a schema, such as the dead letter producer of a Java consumer of bytes, asks too.
// Errors: InvalidTopicName, AuthorizationError, and those of Schemas.AddSchema.
//
// Source: PulsarApi.proto CommandGetOrCreateSchema; ServerCnx.handleGetOrCreateSchema.
func (r request) getOrCreateSchema(cmd *pulsarproto.CommandGetOrCreateSchema) {
	r.requests.Go(func() {
		requestID := cmd.GetRequestId()
		version, err := r.addSchema(cmd)
		if err != nil {
			code, text := r.failure(pulsarproto.BaseCommand_GET_OR_CREATE_SCHEMA, err, false)
			r.answer(func(b []byte) []byte { return pulsarproto.AppendGetOrCreateSchemaError(b, requestID, code, text) })
			return
		}
		r.answer(func(b []byte) []byte { return pulsarproto.AppendGetOrCreateSchemaResponse(b, requestID, version) })
	})
}

func (r request) addSchema(cmd *pulsarproto.CommandGetOrCreateSchema) ([]byte, error) {
	name, err := parseTopic(cmd.GetTopic())
	if err != nil {
		return nil, err
	}
	if err := r.mayProduce(r.ctx, name); err != nil {
		return nil, err
	}
	return r.services.Schemas.AddSchema(r.ctx, name, r.caller, cmd.GetSchema())
}
