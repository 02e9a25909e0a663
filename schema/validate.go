package schema

import "fmt"

// Validate reports whether the type can be stored and the definition is sound. Errors: *InvalidError.
//
// Source: SchemaDataValidator.validateSchemaData and the validators that it calls.
func Validate(s Schema) error {
	switch s.Type {
	case AutoPublish, AutoConsume, Auto:
		return &InvalidError{fmt.Sprintf("Schema %s is a client-side schema type", s.Type)}
	case None, Bytes:
		return nil
	case Avro, Protobuf:
		_, err := parseAvro(s.Type, s.Data)
		return err
	case JSON:
		return validateJSON(s.Data)
	case ProtobufNative:
		_, err := rootMessage(s.Data)
		return err
	case KeyValue:
		return validateKeyValue(s)
	case String:
		if len(s.Data) > 0 && string(s.Data) != "null" {
			return &InvalidError{"Invalid schema definition data for string schema : it must be empty"}
		}
		return nil
	}
	if _, known := typeNames[s.Type]; !known {
		return &InvalidError{fmt.Sprintf("Unknown schema type : %d", int32(s.Type))}
	}
	if len(s.Data) > 0 {
		return &InvalidError{fmt.Sprintf("Invalid schema definition data for primitive schemas :length of schema data should be zero, but %d bytes is found", len(s.Data))}
	}
	return nil
}
