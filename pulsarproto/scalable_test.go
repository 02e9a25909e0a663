package pulsarproto

import (
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// TC-2, P-1: scalable=true is seen in all five commands; a client_name under the same number is not taken for it.
func TestScalable(t *testing.T) {
	types := []struct {
		commandType BaseCommand_Type
		number      protowire.Number
		required    []byte
	}{
		{BaseCommand_TC_CLIENT_CONNECT_REQUEST, 3, []byte{8, 1, 16, 0}},
		{BaseCommand_NEW_TXN, 4, []byte{8, 1}},
		{BaseCommand_ADD_PARTITION_TO_TXN, 5, []byte{8, 1}},
		{BaseCommand_ADD_SUBSCRIPTION_TO_TXN, 5, []byte{8, 1}},
		{BaseCommand_END_TXN, 5, []byte{8, 1}},
	}
	tests := []struct {
		name  string
		field func(dst []byte, number protowire.Number) []byte
		want  bool
	}{
		{"absent", func(dst []byte, number protowire.Number) []byte { return dst }, false},
		{"false", func(dst []byte, number protowire.Number) []byte { return appendUint64(dst, number, 0) }, false},
		{"true", func(dst []byte, number protowire.Number) []byte { return appendUint64(dst, number, 1) }, true},
		{"true as 2^32", func(dst []byte, number protowire.Number) []byte { return appendUint64(dst, number, 1<<32) }, true},
		{"true, then false", func(dst []byte, number protowire.Number) []byte {
			return appendUint64(appendUint64(dst, number, 1), number, 0)
		}, false},
		{"false, then true", func(dst []byte, number protowire.Number) []byte {
			return appendUint64(appendUint64(dst, number, 0), number, 1)
		}, true},
		{"another number", func(dst []byte, number protowire.Number) []byte { return appendUint64(dst, number+10, 1) }, false},
		{"behind other unknown fields", func(dst []byte, number protowire.Number) []byte {
			return appendUint64(appendString(dst, 30, "x"), number, 1)
		}, true},
		{"string", func(dst []byte, number protowire.Number) []byte { return appendString(dst, number, "\x01") }, false},
		{"fixed32", func(dst []byte, number protowire.Number) []byte {
			return protowire.AppendFixed32(protowire.AppendTag(dst, number, protowire.Fixed32Type), 1)
		}, false},
	}
	for _, kind := range types {
		for _, test := range tests {
			command := new(BaseCommand)
			body := test.field(append([]byte{}, kind.required...), kind.number)
			if err := DecodeCommand(command, encodedCommand(kind.commandType, body)); err != nil {
				t.Fatalf("%s %s: %v", kind.commandType, test.name, err)
			}
			if got := Scalable(command); got != test.want {
				t.Errorf("%s %s: %v, want %v", kind.commandType, test.name, got, test.want)
			}
		}
	}
	if Scalable(&BaseCommand{Type: BaseCommand_PING.Enum(), Ping: &CommandPing{}}) {
		t.Error("PING is scalable")
	}
}

// P-1: client_name and the varint of the same number may stand side by side.
func TestScalableBesideClientName(t *testing.T) {
	body := appendUint64(appendString([]byte{8, 1}, 4, "name"), 4, 1)
	command := new(BaseCommand)
	if err := DecodeCommand(command, encodedCommand(BaseCommand_NEW_TXN, body)); err != nil {
		t.Fatal(err)
	}
	if !Scalable(command) || command.NewTxn.GetClientName() != "name" {
		t.Errorf("scalable %v, client_name %q", Scalable(command), command.NewTxn.GetClientName())
	}
}
