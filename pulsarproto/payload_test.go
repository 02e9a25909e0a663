package pulsarproto

import (
	"bytes"
	"encoding/hex"
	"errors"
	"testing"

	"google.golang.org/protobuf/proto"
)

func testMetadata() *MessageMetadata {
	return &MessageMetadata{ProducerName: new("standalone-0-1"), SequenceId: new(uint64(7)), PublishTime: new(uint64(1_700_000_000_000)),
		NumMessagesInBatch: new(int32(1)), UncompressedSize: new(uint32(12))}
}

func mustAppendPayload(t testing.TB, metadata *MessageMetadata, content string) []byte {
	t.Helper()
	payload, err := AppendPayload(nil, metadata, []byte(content))
	if err != nil {
		t.Fatal(err)
	}
	return payload
}

// The bytes are worked out by hand; the checksum of "123456789" is the check value of CRC-32C.
func TestPayloadLayout(t *testing.T) {
	payload := mustAppendPayload(t, &MessageMetadata{ProducerName: new("p"), SequenceId: new(uint64(1)), PublishTime: new(uint64(2))}, "hi")
	withoutChecksum := "00000007" + "0a0170" + "1001" + "1802" + "6869"
	if got := hex.EncodeToString(payload[6:]); got != withoutChecksum {
		t.Errorf("behind the checksum: %s, want %s", got, withoutChecksum)
	}
	if got := hex.EncodeToString(payload[:2]); got != "0e01" {
		t.Errorf("magic %s", got)
	}
	if got := hex.EncodeToString(AppendChecksummed(nil, []byte("123456789"))); got != "0e01"+"e3069283"+hex.EncodeToString([]byte("123456789")) {
		t.Errorf("checksummed: %s", got)
	}
}

// FC-31: good payload parts parse, with and without a checksum.
func TestParsePayload(t *testing.T) {
	withChecksum := mustAppendPayload(t, testMetadata(), "hello")
	tests := map[string][]byte{"checksum": withChecksum, "no checksum": withChecksum[6:]}
	for name, payload := range tests {
		before := bytes.Clone(payload)
		metadata, content, err := ParsePayload(payload)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !proto.Equal(metadata, testMetadata()) || string(content) != "hello" {
			t.Errorf("%s: %v, %q", name, metadata, content)
		}
		if !bytes.Equal(payload, before) {
			t.Errorf("%s: payload has changed", name)
		}
	}
	if !HasChecksum(withChecksum) || HasChecksum(withChecksum[6:]) {
		t.Error("HasChecksum is wrong")
	}
	if got := AppendChecksummed(nil, withChecksum[6:]); !bytes.Equal(got, withChecksum) {
		t.Errorf("checksummed again % x, want % x", got, withChecksum)
	}
}

// FC-31: one flipped bit anywhere, or an end within the checksum, fails the checksum and nothing else.
func TestParsePayloadChecksum(t *testing.T) {
	whole := mustAppendPayload(t, testMetadata(), "hello")
	for bit := 2 * 8; bit < len(whole)*8; bit++ {
		damaged := bytes.Clone(whole)
		damaged[bit/8] ^= 1 << (bit % 8)
		if _, _, err := ParsePayload(damaged); !errors.Is(err, ErrChecksum) {
			t.Errorf("bit %d flipped: %v", bit, err)
		}
	}
	for end := 2; end < len(whole); end++ {
		if _, _, err := ParsePayload(whole[:end]); !errors.Is(err, ErrChecksum) {
			t.Errorf("cut after %d bytes: %v", end, err)
		}
	}
}

// FC-32: metadata that no consumer could parse is refused.
func TestParsePayloadRefuses(t *testing.T) {
	incomplete := mustMarshalPartial(t, &MessageMetadata{ProducerName: new("p"), SequenceId: new(uint64(1))})
	badProperty := append(mustMarshal(t, testMetadata()), 0x22, 3, 0x0a, 1, 'k')
	sized := func(metadata []byte) []byte { return append([]byte{0, 0, 0, byte(len(metadata))}, metadata...) }
	tests := []struct {
		name  string
		part  []byte
		fault PayloadFault
	}{
		{"nothing", nil, FaultNoMetadata},
		{"end within the size", []byte{0, 0, 0}, FaultNoMetadata},
		{"size beyond the end", []byte{0, 0, 0, 1}, FaultMetadataSize},
		{"size of the largest number", []byte{255, 255, 255, 255, 1, 2}, FaultMetadataSize},
		{"no metadata fields", sized(nil), FaultMetadataUnparsable},
		{"required field absent", sized(incomplete), FaultMetadataUnparsable},
		{"required field of a property absent", sized(badProperty), FaultMetadataUnparsable},
		{"garbage", sized([]byte("\xff\xff\xff")), FaultMetadataUnparsable},
	}
	for _, test := range tests {
		for _, payload := range [][]byte{test.part, AppendChecksummed(nil, test.part)} {
			_, _, err := ParsePayload(payload)
			var payloadError *PayloadError
			if !errors.As(err, &payloadError) || payloadError.Fault != test.fault {
				t.Errorf("%s, checksum %v: %v, want %s", test.name, HasChecksum(payload), err, test.fault)
			}
		}
	}
}
