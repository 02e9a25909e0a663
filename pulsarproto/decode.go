package pulsarproto

import (
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// DecodeFault says what is wrong with a command; short and fixed, fit for a metric's label.
type DecodeFault string

// The faults a DecodeError can name.
const (
	FaultUnparsable    DecodeFault = "unparsable" // or with more fields or depth than any client sends
	FaultNoType        DecodeFault = "no_type"
	FaultUnknownType   DecodeFault = "unknown_type"
	FaultNoBody        DecodeFault = "no_body"
	FaultRequiredField DecodeFault = "required_field"
)

// DecodeError is a command that nobody can act on. Pulsar answers it by closing the connection.
type DecodeError struct {
	Fault DecodeFault
	Type  BaseCommand_Type // 0 with FaultUnparsable and FaultNoType
	Field string           // with FaultRequiredField: the first absent one, such as CommandAddSubscriptionToTxn.subscription.topic
	Err   error            // with FaultUnparsable: the parser's
}

func (e *DecodeError) Error() string {
	switch e.Fault {
	case FaultUnparsable:
		return fmt.Sprintf("parse command: %v", e.Err)
	case FaultNoType:
		return "command without a type"
	case FaultUnknownType:
		return fmt.Sprintf("command of unknown type %d", e.Type)
	case FaultNoBody:
		return fmt.Sprintf("command %s without its body", e.Type)
	}
	return fmt.Sprintf("command %s without required field %s", e.Type, e.Field)
}

func (e *DecodeError) Unwrap() error { return e.Err }

// DecodeCommand parses encoded into command, which it resets first: one BaseCommand may serve all frames of a connection.
// The body is new each time and refers to nothing of encoded, so that the caller may keep it. Only the body that the type
// names is checked; others are not looked at. Enum values that the schema lacks are kept as numbers.
// Errors: *DecodeError.
func DecodeCommand(command *BaseCommand, encoded []byte) error {
	if decodeTxn(command, encoded) {
		return nil
	}
	if err := unmarshal(encoded, command); err != nil {
		return &DecodeError{Fault: FaultUnparsable, Err: err}
	}
	if command.Type == nil {
		return &DecodeError{Fault: FaultNoType}
	}
	commandType, reflected := command.GetType(), command.ProtoReflect()
	field := reflected.Descriptor().Fields().ByNumber(protoreflect.FieldNumber(commandType))
	if field == nil || field.Message() == nil {
		return &DecodeError{Fault: FaultUnknownType, Type: commandType}
	}
	if !reflected.Has(field) {
		return &DecodeError{Fault: FaultNoBody, Type: commandType}
	}
	body := reflected.Get(field).Message()
	if proto.CheckInitialized(body.Interface()) != nil {
		name := string(body.Descriptor().Name()) + absentField(body)
		return &DecodeError{Fault: FaultRequiredField, Type: commandType, Field: name}
	}
	return nil
}

// absentField returns the path from message to its first absent required field, each step with a leading point, or an
// empty string.
func absentField(message protoreflect.Message) string {
	required := message.Descriptor().RequiredNumbers()
	for i := range required.Len() {
		field := message.Descriptor().Fields().ByNumber(required.Get(i))
		if !message.Has(field) {
			return "." + string(field.Name())
		}
	}
	fields := message.Descriptor().Fields()
	for i := range fields.Len() {
		if path := absentFieldBelow(message, fields.Get(i)); path != "" {
			return "." + string(fields.Get(i).Name()) + path
		}
	}
	return ""
}

func absentFieldBelow(message protoreflect.Message, field protoreflect.FieldDescriptor) string {
	if field.Message() == nil || !message.Has(field) {
		return ""
	}
	if !field.IsList() {
		return absentField(message.Get(field).Message())
	}
	list := message.Get(field).List()
	for i := range list.Len() {
		if path := absentField(list.Get(i).Message()); path != "" {
			return path
		}
	}
	return ""
}
