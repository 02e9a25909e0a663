package pulsarproto

// AppendGetSchemaResponse appends GET_SCHEMA_RESPONSE.
func AppendGetSchemaResponse(dst []byte, requestID uint64, schema *Schema, version []byte) []byte {
	return appendReply(dst, &BaseCommand{
		Type:              BaseCommand_GET_SCHEMA_RESPONSE.Enum(),
		GetSchemaResponse: &CommandGetSchemaResponse{RequestId: &requestID, Schema: schema, SchemaVersion: version},
	})
}

// AppendGetSchemaError appends a failed GET_SCHEMA_RESPONSE. The Go client goes by the absence of a schema.
func AppendGetSchemaError(dst []byte, requestID uint64, code ServerError, text string) []byte {
	text = faultText(code, text)
	return appendReply(dst, &BaseCommand{
		Type:              BaseCommand_GET_SCHEMA_RESPONSE.Enum(),
		GetSchemaResponse: &CommandGetSchemaResponse{RequestId: &requestID, ErrorCode: &code, ErrorMessage: &text},
	})
}

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

// AppendGetOrCreateSchemaError appends a failed GET_OR_CREATE_SCHEMA_RESPONSE. The Go client wants a text with the code.
func AppendGetOrCreateSchemaError(dst []byte, requestID uint64, code ServerError, text string) []byte {
	text = faultText(code, text)
	return appendReply(dst, &BaseCommand{
		Type: BaseCommand_GET_OR_CREATE_SCHEMA_RESPONSE.Enum(),
		GetOrCreateSchemaResponse: &CommandGetOrCreateSchemaResponse{
			RequestId: &requestID, ErrorCode: &code, ErrorMessage: &text,
		},
	})
}
