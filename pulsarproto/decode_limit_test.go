package pulsarproto

import (
	"bytes"
	"errors"
	"runtime"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// Fields of two bytes must not cost a hundred each: neither side by side nor nested.
func TestDecodeCommandBoundsFields(t *testing.T) {
	const size = testMaxMessageSize
	emptyFields := func(number protowire.Number) []byte {
		return bytes.Repeat(protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), nil), size/2)
	}
	inside := func(number protowire.Number, content []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), content)
	}
	deep := nestedMessageIDs(90)
	tests := map[string][]byte{
		"message ids":        encodedCommand(BaseCommand_ACK, emptyFields(3)),
		"topic names":        encodedCommand(BaseCommand_ADD_PARTITION_TO_TXN, emptyFields(4)),
		"schema properties":  encodedCommand(BaseCommand_SUBSCRIBE, inside(12, emptyFields(5))),
		"nested message ids": encodedCommand(BaseCommand_ACK, bytes.Repeat(deep, size/len(deep))),
		"words":              encodedCommand(BaseCommand_ACK, inside(3, bytes.Repeat([]byte{5 << 3, 1}, size/2))),
		"packed words":       encodedCommand(BaseCommand_ACK, inside(3, inside(5, bytes.Repeat([]byte{1}, size)))),
	}
	for name, encoded := range tests {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := DecodeCommand(new(BaseCommand), encoded)
		runtime.ReadMemStats(&after)
		if !errors.Is(err, errTooManyFields) {
			t.Errorf("%s: %v", name, err)
		}
		if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 1<<20 {
			t.Errorf("%s: allocated %d bytes", name, allocated)
		}
	}
	properties := append([]byte{0, 0x50, 0, 0}, emptyFields(4)...)
	if _, _, err := ParsePayload(properties); !errors.Is(err, errTooManyFields) {
		t.Errorf("message properties: %v", err)
	}
}

func TestDecodeCommandTakesManyFields(t *testing.T) {
	ack := &CommandAck{ConsumerId: new(uint64(1)), AckType: CommandAck_Individual.Enum()}
	for i := range uint64(40_000) {
		ack.MessageId = append(ack.MessageId, messageID(1, i))
	}
	command := new(BaseCommand)
	if err := DecodeCommand(command, encodedCommand(BaseCommand_ACK, mustMarshal(t, ack))); err != nil {
		t.Fatal(err)
	}
	if got := len(command.Ack.MessageId); got != 40_000 {
		t.Errorf("%d message ids", got)
	}
}

// A depth that would exhaust the stack ends in an error.
func TestDecodeCommandBoundsDepth(t *testing.T) {
	err := DecodeCommand(new(BaseCommand), encodedCommand(BaseCommand_SEEK, nestedMessageIDs(3000)))
	var decodeError *DecodeError
	if !errors.As(err, &decodeError) || decodeError.Fault != FaultUnparsable {
		t.Errorf("error %v", err)
	}
}
