package pulsarproto

// AppendGetOrCreateSchemaResponse appends GET_OR_CREATE_SCHEMA_RESPONSE; an empty version is that of no schema.
func AppendGetOrCreateSchemaResponse(dst []byte, requestID uint64, schemaVersion []byte) []byte {
	return appendReply(dst, &BaseCommand{
		Type: BaseCommand_GET_OR_CREATE_SCHEMA_RESPONSE.Enum(),
		GetOrCreateSchemaResponse: &CommandGetOrCreateSchemaResponse{
			RequestId:     &requestID,
			SchemaVersion: append([]byte{}, schemaVersion...), // present even if empty
		},
	})
}
