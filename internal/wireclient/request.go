package wireclient

import (
	"fmt"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

// ServerError is an error that the server answered, in an ERROR or in the response of the command.
type ServerError struct {
	Code pulsarproto.ServerError
	Text string
}

func (e *ServerError) Error() string { return fmt.Sprintf("%s (%d): %s", e.Code, e.Code, e.Text) }

// body returns the one message that command's type names.
func body(command *pulsarproto.BaseCommand) protoreflect.Message {
	m := command.ProtoReflect()
	field := m.Descriptor().Fields().ByNumber(protoreflect.FieldNumber(command.GetType()))
	if field == nil || !m.Has(field) {
		return nil
	}
	return m.Get(field).Message()
}

func requestID(command *pulsarproto.BaseCommand) (uint64, bool) {
	switch command.GetType() {
	case pulsarproto.BaseCommand_NEW_TXN_RESPONSE:
		return command.GetNewTxnResponse().GetRequestId(), true
	case pulsarproto.BaseCommand_END_TXN_RESPONSE:
		return command.GetEndTxnResponse().GetRequestId(), true
	case pulsarproto.BaseCommand_CLOSE_PRODUCER, pulsarproto.BaseCommand_CLOSE_CONSUMER:
		return 0, false // from a server: tells, does not answer
	}
	b := body(command)
	if b == nil {
		return 0, false
	}
	field := b.Descriptor().Fields().ByName("request_id")
	if field == nil || !b.Has(field) {
		return 0, false
	}
	return b.Get(field).Uint(), true
}

func setRequestID(command *pulsarproto.BaseCommand, id uint64) {
	switch command.GetType() {
	case pulsarproto.BaseCommand_NEW_TXN:
		command.NewTxn.RequestId = &id
		return
	case pulsarproto.BaseCommand_END_TXN:
		command.EndTxn.RequestId = &id
		return
	}
	b := body(command)
	b.Set(b.Descriptor().Fields().ByName("request_id"), protoreflect.ValueOfUint64(id))
}

// keep returns a command that outlives the reader's: the body is new with every frame.
func keep(command *pulsarproto.BaseCommand) *pulsarproto.BaseCommand {
	kept := &pulsarproto.BaseCommand{Type: command.GetType().Enum()}
	field := command.ProtoReflect().Descriptor().Fields().ByNumber(protoreflect.FieldNumber(command.GetType()))
	if b := body(command); b != nil {
		kept.ProtoReflect().Set(field, protoreflect.ValueOfMessage(b))
	}
	return kept
}

// ErrorOf returns the error that an answer carries, nil if it is a success.
func ErrorOf(answer *pulsarproto.BaseCommand) error {
	b := body(answer)
	if b == nil {
		return nil
	}
	fields := b.Descriptor().Fields()
	code, text := fields.ByName("error"), fields.ByName("message")
	if code == nil || !b.Has(code) {
		return nil
	}
	e := &ServerError{Code: pulsarproto.ServerError(b.Get(code).Enum())}
	if text != nil {
		e.Text = b.Get(text).String()
	}
	return e
}
