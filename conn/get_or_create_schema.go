package conn

import (
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

// getOrCreateSchema answers an empty version for a producer without a schema, such as the dead letter producer of a Java
// consumer of bytes. Other schemas are not served.
//
// Source: PulsarApi.proto CommandGetOrCreateSchema; ServerCnx.handleGetOrCreateSchema.
func (r request) getOrCreateSchema(cmd *pulsarproto.CommandGetOrCreateSchema) {
	if kind := cmd.GetSchema().GetType(); kind != pulsarproto.Schema_None {
		r.fail(pulsarproto.BaseCommand_GET_OR_CREATE_SCHEMA, cmd.GetRequestId(), &requestError{
			pulsarproto.ServerError_NotAllowedError,
			"GET_OR_CREATE_SCHEMA is not supported by this server for a schema of type " + kind.String()})
		return
	}
	r.answer(func(b []byte) []byte {
		return pulsarproto.AppendGetOrCreateSchemaResponse(b, cmd.GetRequestId(), nil)
	})
}
