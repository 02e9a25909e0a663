package faults

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// FC-32: content that nobody can read, in a batch, compressed, or encrypted, stops neither delivery nor compaction, before a restart
// and behind it; another client commits meanwhile. What cannot be a batch for its length is refused.
func TestFC32UnreadableContent(t *testing.T) {
	f := newFixture(t)
	client, other := f.dial(), f.dial()
	producer, beside := f.produce(client, topic("t")), f.produce(other, topic("beside"))
	garbage := strings.Repeat("\xff\x00\x7f", 40)
	var stored []string
	for i, metadata := range []*pulsarproto.MessageMetadata{
		{NumMessagesInBatch: proto.Int32(5)},
		{NumMessagesInBatch: proto.Int32(5), Compression: pulsarproto.CompressionType_ZSTD.Enum(), UncompressedSize: proto.Uint32(1 << 31)},
		{Compression: pulsarproto.CompressionType_LZ4.Enum(), UncompressedSize: proto.Uint32(7)},
		{Compression: pulsarproto.CompressionType_SNAPPY.Enum(), NumMessagesInBatch: proto.Int32(2), UncompressedSize: proto.Uint32(0)},
		{EncryptionKeys: []*pulsarproto.EncryptionKeys{{Key: proto.String("k"), Value: []byte("v")}}, EncryptionAlgo: proto.String("none")},
		{NumChunksFromMsg: proto.Int32(3), ChunkId: proto.Int32(7), TotalChunkMsgSize: proto.Int32(-1), Uuid: proto.String("u")},
	} {
		metadata.SequenceId, metadata.PartitionKey = proto.Uint64(uint64(i)), proto.String("key")
		_, err := producer.SendAs(f.ctx, metadata, garbage, nil)
		switch codeOf(err) {
		case success:
			stored = append(stored, garbage)
		case pulsarproto.ServerError_NotAllowedError:
		default:
			t.Fatalf("message %d: %v", i, err)
		}
		id := f.begin(other, longTTL, "")
		f.send(beside, "m", &id)
		f.end(other, id, txn.Commit, success)
	}
	_, err := producer.SendAs(f.ctx, &pulsarproto.MessageMetadata{SequenceId: proto.Uint64(90), NumMessagesInBatch: proto.Int32(1 << 30)}, "x", nil)
	f.want("a batch of more messages than bytes", err, pulsarproto.ServerError_NotAllowedError)
	f.sendKeyed(producer, 100, keyed{"other key", "good"}, nil)
	for restart := range 2 {
		if restart == 1 {
			f.Kill()
			f.Start()
			client = f.dial()
		}
		f.compact(topic("t"))
		consumer := f.subscribe(client, topic("t"), "s")
		for _, content := range append(stored, "good") {
			f.receive(consumer, content)
		}
		f.want("CLOSE_CONSUMER", consumer.Close(f.ctx), success)
	}
	t.Logf("%d unreadable messages were stored", len(stored))
}
