package pulsarproto

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// encodedCommand writes a command of type with the given body bytes.
func encodedCommand(commandType BaseCommand_Type, body []byte) []byte {
	encoded := appendUint64(nil, 1, uint64(commandType))
	encoded = protowire.AppendTag(encoded, protowire.Number(commandType), protowire.BytesType)
	return protowire.AppendBytes(encoded, body)
}

func mustMarshalPartial(t *testing.T, message proto.Message) []byte {
	t.Helper()
	encoded, err := proto.MarshalOptions{AllowPartial: true}.Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

// FC-32: what nobody can act on is refused with its reason.
func TestDecodeCommandRefuses(t *testing.T) {
	newTxn := BaseCommand_NEW_TXN
	body := func(commandType BaseCommand_Type, message proto.Message) []byte {
		return encodedCommand(commandType, mustMarshalPartial(t, message))
	}
	tests := []struct {
		name    string
		encoded []byte
		want    DecodeError
	}{
		{"cut short", encodedCommand(newTxn, []byte{8, 1})[:5], DecodeError{Fault: FaultUnparsable}},
		{"garbage", []byte("\xff\xff\xff\xff"), DecodeError{Fault: FaultUnparsable}},
		{"deep nesting", encodedCommand(BaseCommand_SEEK, nestedMessageIDs(200)), DecodeError{Fault: FaultUnparsable}},
		{"empty", nil, DecodeError{Fault: FaultNoType}},
		{"no type", encodedCommand(newTxn, []byte{8, 1})[2:], DecodeError{Fault: FaultNoType}},
		{"unknown type", encodedCommand(99, nil), DecodeError{Fault: FaultUnknownType, Type: 99}},
		{"unknown type without a field", appendUint64(nil, 1, 1000), DecodeError{Fault: FaultUnknownType, Type: 1000}},
		{"type of the field type", appendUint64(nil, 1, 1), DecodeError{Fault: FaultUnknownType, Type: 1}},
		{"no body", appendUint64(nil, 1, uint64(newTxn)), DecodeError{Fault: FaultNoBody, Type: newTxn}},
		{"PING without a body", appendUint64(nil, 1, 18), DecodeError{Fault: FaultNoBody, Type: BaseCommand_PING}},
		{"other body", append(appendUint64(nil, 1, uint64(newTxn)), encodedCommand(BaseCommand_PING, nil)[2:]...),
			DecodeError{Fault: FaultNoBody, Type: newTxn}},
		{"NEW_TXN request_id", body(newTxn, &CommandNewTxn{TcId: new(uint64(1))}),
			DecodeError{Fault: FaultRequiredField, Type: newTxn, Field: "CommandNewTxn.request_id"}},
		{"TC_CLIENT_CONNECT tc_id", body(BaseCommand_TC_CLIENT_CONNECT_REQUEST, &CommandTcClientConnectRequest{RequestId: new(uint64(1))}),
			DecodeError{Fault: FaultRequiredField, Type: BaseCommand_TC_CLIENT_CONNECT_REQUEST, Field: "CommandTcClientConnectRequest.tc_id"}},
		{"CONNECT client_version", body(BaseCommand_CONNECT, &CommandConnect{}),
			DecodeError{Fault: FaultRequiredField, Type: BaseCommand_CONNECT, Field: "CommandConnect.client_version"}},
		{"second Subscription's subscription", body(BaseCommand_ADD_SUBSCRIPTION_TO_TXN, &CommandAddSubscriptionToTxn{
			RequestId:    new(uint64(1)),
			Subscription: []*Subscription{{Topic: new("t"), Subscription: new("s")}, {Topic: new("t")}},
		}), DecodeError{Fault: FaultRequiredField, Type: BaseCommand_ADD_SUBSCRIPTION_TO_TXN,
			Field: "CommandAddSubscriptionToTxn.subscription.subscription"}},
		{"entryId within ACK", body(BaseCommand_ACK, &CommandAck{ConsumerId: new(uint64(1)), AckType: CommandAck_Individual.Enum(),
			MessageId: []*MessageIdData{{LedgerId: new(uint64(1))}}}),
			DecodeError{Fault: FaultRequiredField, Type: BaseCommand_ACK, Field: "CommandAck.message_id.entryId"}},
		{"ledgerId two levels down", body(BaseCommand_SEEK, &CommandSeek{ConsumerId: new(uint64(1)), RequestId: new(uint64(1)),
			MessageId: &MessageIdData{LedgerId: new(uint64(1)), EntryId: new(uint64(1)), FirstChunkMessageId: &MessageIdData{}}}),
			DecodeError{Fault: FaultRequiredField, Type: BaseCommand_SEEK, Field: "CommandSeek.message_id.first_chunk_message_id.ledgerId"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := DecodeCommand(new(BaseCommand), test.encoded)
			var decodeError *DecodeError
			if !errors.As(err, &decodeError) {
				t.Fatalf("error %v", err)
			}
			if (decodeError.Err != nil) != (test.want.Fault == FaultUnparsable) {
				t.Errorf("parser's error is %v", decodeError.Err)
			}
			test.want.Err = decodeError.Err
			if *decodeError != test.want {
				t.Errorf("got %+v, want %+v", *decodeError, test.want)
			}
			if !strings.Contains(err.Error(), decodeError.Field) {
				t.Errorf("%q does not name %s", err, decodeError.Field)
			}
		})
	}
}

// nestedMessageIDs returns a CommandSeek whose message_id holds depth more.
func nestedMessageIDs(depth int) []byte {
	var nested []byte
	for range depth {
		nested = protowire.AppendBytes(protowire.AppendTag(nil, 7, protowire.BytesType), nested)
	}
	return protowire.AppendBytes(protowire.AppendTag(nil, 3, protowire.BytesType), nested)
}

func TestDecodeCommandAccepts(t *testing.T) {
	newTxn := mustMarshal(t, &CommandNewTxn{RequestId: new(uint64(1))})
	tests := []struct {
		name    string
		encoded []byte
	}{
		{"as it should be", encodedCommand(BaseCommand_NEW_TXN, newTxn)},
		{"unknown field in the body", encodedCommand(BaseCommand_NEW_TXN, appendString(newTxn, 15, "x"))},
		{"unknown field in the command", appendString(encodedCommand(BaseCommand_NEW_TXN, newTxn), 200, "x")},
		{"faulty body of another type", append(encodedCommand(BaseCommand_NEW_TXN, newTxn), encodedCommand(BaseCommand_END_TXN, nil)[2:]...)},
	}
	command := new(BaseCommand)
	for _, test := range tests {
		if err := DecodeCommand(command, test.encoded); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		if command.GetNewTxn().GetRequestId() != 1 {
			t.Errorf("%s: got %v", test.name, command)
		}
	}
}

// TC-3: an unknown txn_action is kept, so that it cannot pass for the zero value COMMIT, and an absent one is nil.
func TestDecodeCommandKeepsTxnAction(t *testing.T) {
	endTxn := mustMarshal(t, &CommandEndTxn{RequestId: new(uint64(1))})
	command := new(BaseCommand)
	if err := DecodeCommand(command, encodedCommand(BaseCommand_END_TXN, endTxn)); err != nil {
		t.Fatal(err)
	}
	if command.EndTxn.TxnAction != nil {
		t.Errorf("absent txn_action is %v", command.EndTxn.TxnAction)
	}
	if err := DecodeCommand(command, encodedCommand(BaseCommand_END_TXN, appendUint64(endTxn, 4, 7))); err != nil {
		t.Fatal(err)
	}
	if action := command.EndTxn.TxnAction; action == nil || *action != 7 {
		t.Errorf("txn_action 7 is %v", action)
	}
}

func TestDecodeCommandResets(t *testing.T) {
	command := new(BaseCommand)
	if err := DecodeCommand(command, encodedCommand(BaseCommand_PING, nil)); err != nil {
		t.Fatal(err)
	}
	kept := command.Ping
	if err := DecodeCommand(command, encodedCommand(BaseCommand_PONG, nil)); err != nil {
		t.Fatal(err)
	}
	if command.Ping != nil || command.Pong == nil || kept == nil {
		t.Errorf("after PING and PONG: %v, kept %v", command, kept)
	}
}

func TestDecodeCommandRefersToNothingOfItsInput(t *testing.T) {
	encoded := encodedCommand(BaseCommand_CONNECT, mustMarshal(t, &CommandConnect{ClientVersion: new("client"), AuthData: []byte("secret")}))
	command := new(BaseCommand)
	if err := DecodeCommand(command, encoded); err != nil {
		t.Fatal(err)
	}
	clear(encoded)
	if command.Connect.GetClientVersion() != "client" || string(command.Connect.AuthData) != "secret" {
		t.Errorf("changed with its input: %v", command)
	}
}
