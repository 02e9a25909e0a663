package conn

import (
	"errors"
	"math"
	"testing"
	"testing/synctest"

	"google.golang.org/protobuf/proto"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// TestNumMessages: an entry counts for no more messages than its bytes can hold.
func TestNumMessages(t *testing.T) {
	const maxSize = 1000
	lz4, key := pulsarproto.CompressionType_LZ4, &pulsarproto.EncryptionKeys{Key: proto.String("k"), Value: []byte("v")}
	cases := []struct {
		name     string
		command  int32
		metadata *pulsarproto.MessageMetadata
		content  int
		want     int32 // 0: refused
	}{
		{"one empty message", 1, &pulsarproto.MessageMetadata{}, 0, 1},
		{"a batch of one", 1, &pulsarproto.MessageMetadata{NumMessagesInBatch: proto.Int32(1)}, 0, 1},
		{"as many as fit", 1, &pulsarproto.MessageMetadata{NumMessagesInBatch: proto.Int32(10)}, 60, 10},
		{"one more than fit", 1, &pulsarproto.MessageMetadata{NumMessagesInBatch: proto.Int32(11)}, 65, 0},
		{"most in four bytes", 1, &pulsarproto.MessageMetadata{NumMessagesInBatch: proto.Int32(math.MaxInt32)}, 4, 0},
		{"most by the command", math.MaxInt32, &pulsarproto.MessageMetadata{}, 4, 0},
		{"below nothing", -1, &pulsarproto.MessageMetadata{}, 4, 0},
		{"encrypted", 1, &pulsarproto.MessageMetadata{NumMessagesInBatch: proto.Int32(10), EncryptionKeys: []*pulsarproto.EncryptionKeys{key}}, 76, 10},
		{"encrypted, too many", 1, &pulsarproto.MessageMetadata{
			NumMessagesInBatch: proto.Int32(10), EncryptionKeys: []*pulsarproto.EncryptionKeys{key}, UncompressedSize: proto.Uint32(600),
		}, 40, 0},
		{"compressed", 1, &pulsarproto.MessageMetadata{NumMessagesInBatch: proto.Int32(100), Compression: &lz4, UncompressedSize: proto.Uint32(600)}, 20, 100},
		{"compressed, too many", 1, &pulsarproto.MessageMetadata{NumMessagesInBatch: proto.Int32(101), Compression: &lz4, UncompressedSize: proto.Uint32(605)}, 700, 0},
		{"said to be beyond the largest message", 1, &pulsarproto.MessageMetadata{
			NumMessagesInBatch: proto.Int32(200), Compression: &lz4, UncompressedSize: proto.Uint32(math.MaxUint32),
		}, 20, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := numMessages(&pulsarproto.CommandSend{NumMessages: &c.command}, c.metadata, c.content, maxSize)
			if got != c.want || (c.want == 0) != errors.Is(err, txn.ErrNotAllowed) {
				t.Fatalf("%d, %v, want %d", got, err, c.want)
			}
		})
	}
}

// TestImpossibleBatch: the refusal is an answer, and the connection goes on.
func TestImpossibleBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{})
		p := b.producingPeer(t)
		payload, err := pulsarproto.AppendPayload(nil, &pulsarproto.MessageMetadata{
			ProducerName: proto.String("p"), SequenceId: proto.Uint64(0), PublishTime: proto.Uint64(1), NumMessagesInBatch: proto.Int32(math.MaxInt32),
		}, []byte("four"))
		if err != nil {
			t.Fatal(err)
		}
		p.sendPayload(sendCommand(1, 3), payload)
		if refused := p.want(pulsarproto.BaseCommand_SEND_ERROR).GetSendError(); refused.GetError() != pulsarproto.ServerError_NotAllowedError {
			t.Errorf("refused with %v", refused)
		}
		p.sendPayload(sendCommand(1, 4), payloadOf(t, "x"))
		p.want(pulsarproto.BaseCommand_SEND_RECEIPT)
		p.alive()
	})
}
