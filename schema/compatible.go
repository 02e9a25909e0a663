package schema

import (
	"bytes"
	"fmt"
)

// CheckFollows reports whether next may follow existing, which are both sound. Errors: *IncompatibleError.
//
// Source: SchemaRegistryServiceImpl.checkCompatible, and the SchemaCompatibilityCheck of each type.
func CheckFollows(existing, next Schema, strategy Strategy) error {
	if strategy == AlwaysCompatible {
		return nil
	}
	if existing.Type != next.Type {
		return &IncompatibleError{fmt.Sprintf("Incompatible schema: exists schema type %s, new schema type %s", existing.Type, next.Type)}
	}
	if strategy == AlwaysIncompatible || strategy == Undefined {
		return &IncompatibleError{fmt.Sprintf("Schema compatibility strategy is %s", strategy)}
	}
	if bytes.Equal(existing.Data, next.Data) && next.Type != KeyValue {
		return nil
	}
	switch next.Type {
	case Avro, Protobuf:
		return checkAvro(existing.Data, next.Data, strategy)
	case JSON:
		return checkJSON(existing.Data, next.Data, strategy)
	case ProtobufNative:
		return checkProtobufNative(existing.Data, next.Data)
	case KeyValue:
		return checkKeyValue(existing, next, strategy)
	}
	return nil
}
