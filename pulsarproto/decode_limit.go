package pulsarproto

import (
	"errors"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// A field of two bytes, such as an empty MessageIdData, takes more than a hundred when it is parsed: a frame of 5 MiB could
// cost 300 MiB. So larger encodings are counted first. Clients name at most some thousand ids or topics in one command.
const (
	uncountedSize = 64 << 10
	maxFields     = 128 << 10
	maxDepth      = 100 // of messages in messages; protobuf's C++ and Java parsers have the same limit
)

var errTooManyFields = errors.New("more than 131072 fields")

// AllowPartial, because a command's own check names the absent field.
var decoding = proto.UnmarshalOptions{AllowPartial: true, RecursionLimit: maxDepth}

// unmarshal parses encoded into message, which it resets, within the limits. Required fields may be absent.
func unmarshal(encoded []byte, message proto.Message) error {
	if len(encoded) > uncountedSize {
		descriptor := message.ProtoReflect().Descriptor()
		if countFields(encoded, descriptor, maxDepth) > maxFields {
			return errTooManyFields
		}
	}
	return decoding.Unmarshal(encoded, message)
}

// countFields returns the number of fields in encoded and in the messages it holds, down to depth. It stops behind
// maxFields, and at a fault, which the parser will find too.
func countFields(encoded []byte, message protoreflect.MessageDescriptor, depth int) int {
	count := 0
	for len(encoded) > 0 && count <= maxFields {
		number, wireType, n := protowire.ConsumeField(encoded)
		if n < 0 {
			return count
		}
		count++
		field := message.Fields().ByNumber(number)
		if wireType == protowire.BytesType && field != nil {
			_, _, tagSize := protowire.ConsumeTag(encoded)
			value, _ := protowire.ConsumeBytes(encoded[tagSize:])
			switch {
			case field.Message() != nil && depth > 1:
				count += countFields(value, field.Message(), depth-1)
			case field.IsList() && isVarint(field.Kind()):
				count += countVarints(value)
			}
		}
		encoded = encoded[n:]
	}
	return count
}

// isVarint reports whether a list of kind has varints, as all lists of numbers in PulsarApi.proto have. The parser takes one field with
// all of them as well as one for each.
func isVarint(kind protoreflect.Kind) bool {
	return kind == protoreflect.Int32Kind || kind == protoreflect.Int64Kind || kind == protoreflect.Uint32Kind || kind == protoreflect.Uint64Kind
}

// countVarints returns the number of varints in packed.
func countVarints(packed []byte) int {
	count := 0
	for _, b := range packed {
		if b < 0x80 {
			count++
		}
	}
	return count
}
