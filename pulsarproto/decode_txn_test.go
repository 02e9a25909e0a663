package pulsarproto

import (
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// txnBodies are bodies of transaction commands in the usual form and in every other.
func txnBodies() map[string][]byte {
	ids := appendUint64(appendUint64(appendUint64(nil, 1, 1<<40), 2, 1<<63), 3, 300)
	return map[string][]byte{
		"empty":               nil,
		"request id":          appendUint64(nil, 1, 0),
		"no request id":       appendUint64(nil, 2, 5),
		"numbers":             ids,
		"twice":               appendUint64(ids, 1, 9),
		"4 as a number":       appendUint64(ids, 4, 1),
		"4 as a large number": appendUint64(ids, 4, 1<<32),
		"4 as a text":         appendString(ids, 4, "name"),
		"4 as an empty text":  appendString(ids, 4, ""),
		"5 as a number":       appendUint64(ids, 5, 1),
		"5 as a text":         appendString(appendUint64(ids, 4, 0), 5, "n\xff"),
		"unknown number":      appendUint64(ids, 9, 1),
		"unknown large field": appendUint64(ids, 900, 1),
		"fixed":               protowire.AppendFixed32(protowire.AppendTag(ids, 2, protowire.Fixed32Type), 7),
		"group":               protowire.AppendTag(protowire.AppendTag(ids, 6, protowire.StartGroupType), 6, protowire.EndGroupType),
		"field 0":             append(ids, 0, 0),
		"long varint":         append(ids, 8, 0x81, 0x80, 0x00),
		"cut varint":          append(ids, 8, 0x81),
		"cut text":            append(ids, 4<<3|2, 5, 'n'),
	}
}

// What decodeTxn takes, it reads as the general decoder does; where that fails, it takes nothing.
func TestDecodeTxnAgreesWithProtobuf(t *testing.T) {
	taken := 0
	kinds := []BaseCommand_Type{BaseCommand_NEW_TXN, BaseCommand_NEW_TXN_RESPONSE, BaseCommand_END_TXN, BaseCommand_END_TXN_RESPONSE}
	for _, kind := range kinds {
		for name, body := range txnBodies() {
			encoded := encodedCommand(kind, body)
			for form, encoded := range map[string][]byte{
				"": encoded, ", cut": encoded[:len(encoded)-1], ", another field": appendUint64(encoded, 1, uint64(kind)),
				", type last": append(encoded[2:len(encoded):len(encoded)], encoded[:2]...),
			} {
				t.Run(kind.String()+" "+name+form, func(t *testing.T) {
					if agreesWithProtobuf(t, encoded) {
						taken++
					}
				})
			}
		}
	}
	if taken < 4*3 {
		t.Errorf("%d commands were taken, want the usual ones", taken)
	}
}

// agreesWithProtobuf compares the decoders on encoded and reports whether decodeTxn takes it.
func agreesWithProtobuf(t *testing.T, encoded []byte) bool {
	t.Helper()
	got := &BaseCommand{Ping: &CommandPing{}} // of the frame before
	if !decodeTxn(got, encoded) {
		if got.Ping == nil {
			t.Error("not taken, and touched")
		}
		return false
	}
	want := new(BaseCommand)
	if err := proto.Unmarshal(encoded, want); err != nil {
		t.Fatalf("taken, and protobuf says: %v", err)
	}
	if !proto.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	return true
}

func FuzzDecodeTxn(f *testing.F) {
	for _, body := range txnBodies() {
		f.Add(encodedCommand(BaseCommand_NEW_TXN, body))
		f.Add(encodedCommand(BaseCommand_END_TXN, body))
		f.Add(encodedCommand(BaseCommand_END_TXN_RESPONSE, body))
	}
	f.Fuzz(func(t *testing.T, encoded []byte) { agreesWithProtobuf(t, encoded) })
}
