package pulsarproto

import (
	"testing"

	"google.golang.org/protobuf/proto"
)

func TestStickyKey(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*MessageMetadata)
		want   string
	}{
		"ordering key wins":  {func(m *MessageMetadata) { m.OrderingKey, m.PartitionKey = []byte("o"), proto.String("p") }, "o"},
		"empty ordering key": {func(m *MessageMetadata) { m.OrderingKey, m.PartitionKey = []byte{}, proto.String("p") }, ""},
		"partition key":      {func(m *MessageMetadata) { m.PartitionKey = proto.String("p") }, "p"},
		"base64": {func(m *MessageMetadata) {
			m.PartitionKey, m.PartitionKeyB64Encoded = proto.String("cMO8"), proto.Bool(true)
		}, "pü"},
		"flagged and not base64": {func(m *MessageMetadata) {
			m.PartitionKey, m.PartitionKeyB64Encoded = proto.String("?"), proto.Bool(true)
		}, "?"},
		"no key": {func(*MessageMetadata) {}, "producer-7"},
	} {
		m := &MessageMetadata{ProducerName: proto.String("producer"), SequenceId: proto.Uint64(7), PublishTime: proto.Uint64(1)}
		c.change(m)
		f := ReadDeliveryFields(mustAppendPayload(t, m, "content"))
		if got := string(f.StickyKey()); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	f := ReadDeliveryFields([]byte("no payload"))
	if got := string(f.StickyKey()); got != "NONE_KEY" {
		t.Errorf("unreadable metadata: %q", got)
	}
}

func TestDeliveryFieldsOfAChunk(t *testing.T) {
	m := testMetadata()
	m.DeliverAtTime, m.Uuid, m.ChunkId, m.NumChunksFromMsg = proto.Int64(1234), proto.String("u"), proto.Int32(2), proto.Int32(3)
	payload := mustAppendPayload(t, m, "content")
	f := ReadDeliveryFields(payload)
	if f.DeliverAt != 1234 || string(f.UUID) != "u" || f.ChunkID != 2 || f.Chunks != 3 {
		t.Fatalf("read %+v", f)
	}
	if n := testing.AllocsPerRun(100, func() { f = ReadDeliveryFields(payload) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzDeliveryFields: whatever a payload is, it reads as what a full decoder reads, or as nothing.
func FuzzDeliveryFields(f *testing.F) {
	f.Add(mustAppendPayload(f, testMetadata(), "content"))
	f.Add([]byte{0x0e, 0x01})
	f.Add([]byte{0, 0, 0, 9, 1})
	f.Fuzz(func(t *testing.T, payload []byte) {
		got := ReadDeliveryFields(payload)
		_ = got.StickyKey()
		metadata, _, err := ParsePayload(payload)
		if err != nil {
			return
		}
		if got.DeliverAt != metadata.GetDeliverAtTime() || string(got.PartitionKey) != metadata.GetPartitionKey() ||
			string(got.OrderingKey) != string(metadata.GetOrderingKey()) || got.Chunks != metadata.GetNumChunksFromMsg() {
			t.Fatalf("read %+v of %v", got, metadata)
		}
	})
}
