package pulsarproto

import "google.golang.org/protobuf/encoding/protowire"

// Every transaction costs one NEW_TXN and one END_TXN, and their answers. In the form that clients and servers send them
// they are read here, with one allocation; whatever has another form is left to the general decoder.

// txnBody holds a body of these commands together with what its pointers point to.
type txnBody[Message any] struct {
	message Message
	kind    BaseCommand_Type
	action  TxnAction
	txnFields
}

// txnFields are the fields of these commands: varints by their number, and one text.
type txnFields struct {
	numbers [5]uint64 // by field number
	text    string
	has     uint8 // bit of each field number that was there
}

// number returns a pointer to a varint, nil if it was not there.
func (f *txnFields) number(field int) *uint64 {
	if f.has&(1<<field) == 0 {
		return nil
	}
	return &f.numbers[field]
}

// parse reads body, whose fields below textField are varints. It reports whether it has the required request id and no
// field besides.
func (f *txnFields) parse(body []byte, textField int) bool {
	for len(body) > 0 {
		field, wireType := int(body[0]>>3), protowire.Type(body[0]&7)
		body = body[1:]
		switch {
		case wireType == protowire.VarintType && 1 <= field && field < textField:
			value, n := protowire.ConsumeVarint(body)
			if n < 0 {
				return false
			}
			f.numbers[field] = value
			body = body[n:]
		case wireType == protowire.BytesType && field == textField:
			text, n := protowire.ConsumeString(body)
			if n < 0 {
				return false
			}
			f.text = text
			body = body[n:]
		default:
			return false
		}
		f.has |= 1 << field
	}
	return f.has&(1<<1) != 0
}

// decodeTxn decodes the commands of this file, in their usual form, and reports whether it did. command is untouched if not.
func decodeTxn(command *BaseCommand, encoded []byte) bool {
	kind, body, ok := onlyBody(encoded)
	if !ok {
		return false
	}
	switch kind {
	case BaseCommand_NEW_TXN:
		return decodeNewTxn(command, body)
	case BaseCommand_END_TXN:
		return decodeEndTxn(command, body)
	case BaseCommand_NEW_TXN_RESPONSE:
		return decodeNewTxnResponse(command, body)
	case BaseCommand_END_TXN_RESPONSE:
		return decodeEndTxnResponse(command, body)
	}
	return false
}

// onlyBody returns type and body of a command that consists of them, in this order.
func onlyBody(encoded []byte) (BaseCommand_Type, []byte, bool) {
	const typeTag = 1<<3 | byte(protowire.VarintType)
	if len(encoded) < 2 || encoded[0] != typeTag || encoded[1] >= 0x80 {
		return 0, nil, false
	}
	kind := BaseCommand_Type(encoded[1])
	number, wireType, n := protowire.ConsumeTag(encoded[2:])
	if n < 0 || number != protowire.Number(kind) || wireType != protowire.BytesType {
		return 0, nil, false
	}
	body, size := protowire.ConsumeBytes(encoded[2+n:])
	return kind, body, size == len(encoded)-2-n
}

func decodeNewTxn(command *BaseCommand, body []byte) bool {
	b := &txnBody[CommandNewTxn]{kind: BaseCommand_NEW_TXN}
	if !b.parse(body, 4) {
		return false
	}
	m := &b.message
	m.RequestId, m.TxnTtlSeconds, m.TcId = b.number(1), b.number(2), b.number(3)
	if b.has&(1<<4) != 0 {
		m.ClientName = &b.text
	}
	command.Reset()
	command.Type, command.NewTxn = &b.kind, m
	return true
}

func decodeEndTxn(command *BaseCommand, body []byte) bool {
	b := &txnBody[CommandEndTxn]{kind: BaseCommand_END_TXN}
	if !b.parse(body, 5) || b.numbers[4] > uint64(TxnAction_ABORT) {
		return false
	}
	m := &b.message
	m.RequestId, m.TxnidLeastBits, m.TxnidMostBits = b.number(1), b.number(2), b.number(3)
	if b.has&(1<<4) != 0 {
		b.action = TxnAction(b.numbers[4])
		m.TxnAction = &b.action
	}
	if b.has&(1<<5) != 0 {
		m.ClientName = &b.text
	}
	command.Reset()
	command.Type, command.EndTxn = &b.kind, m
	return true
}

// decodeNewTxnResponse is for successes.
func decodeNewTxnResponse(command *BaseCommand, body []byte) bool {
	b := &txnBody[CommandNewTxnResponse]{kind: BaseCommand_NEW_TXN_RESPONSE}
	if !b.parse(body, 5) || b.has >= 1<<4 {
		return false
	}
	b.message.RequestId, b.message.TxnidLeastBits, b.message.TxnidMostBits = b.number(1), b.number(2), b.number(3)
	command.Reset()
	command.Type, command.NewTxnResponse = &b.kind, &b.message
	return true
}

// decodeEndTxnResponse is for successes.
func decodeEndTxnResponse(command *BaseCommand, body []byte) bool {
	b := &txnBody[CommandEndTxnResponse]{kind: BaseCommand_END_TXN_RESPONSE}
	if !b.parse(body, 5) || b.has >= 1<<4 {
		return false
	}
	b.message.RequestId, b.message.TxnidLeastBits, b.message.TxnidMostBits = b.number(1), b.number(2), b.number(3)
	command.Reset()
	command.Type, command.EndTxnResponse = &b.kind, &b.message
	return true
}
