package conn

import (
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/protobuf/proto"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

// A connection has producers and consumers up to a bound in bytes, which counts what they tell about themselves. However one
// ends, or does not begin, its room is free again.
func TestMaxAttachedBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{MaxAttachedBytes: 3*attachmentCost - 1})
		p := b.connectedPeer(t)
		full := func(request uint64) {
			t.Helper()
			p.send(producerCommand(request, 90, "t"), subscribeCommand(request+1, 90, "t"))
			p.wantError(request, pulsarproto.ServerError_TooManyRequests)
			p.wantError(request+1, pulsarproto.ServerError_TooManyRequests)
		}
		p.send(producerCommand(1, 1, "t"))
		p.want(pulsarproto.BaseCommand_PRODUCER_SUCCESS)
		p.send(subscribeCommand(2, 1, "t"))
		p.want(pulsarproto.BaseCommand_SUCCESS)
		full(3)

		p.send(closeProducerCommand(5, 1))
		p.want(pulsarproto.BaseCommand_SUCCESS)
		long := producerCommand(6, 2, "t")
		long.Producer.Metadata = []*pulsarproto.KeyValue{{Key: proto.String("k"), Value: proto.String(strings.Repeat("v", 2*attachmentCost))}}
		p.send(long)
		p.wantError(6, pulsarproto.ServerError_TooManyRequests)
		p.send(producerCommand(7, 2, "t"))
		p.want(pulsarproto.BaseCommand_PRODUCER_SUCCESS)
		full(8)

		b.topics.producer(1).client.Disconnect()
		p.want(pulsarproto.BaseCommand_CLOSE_PRODUCER)
		b.topics.consumer(0).client.Disconnect()
		p.want(pulsarproto.BaseCommand_CLOSE_CONSUMER)
		for request := range uint64(5) {
			p.send(producerCommand(10+request, 3, "foo://a/b/c"))
			p.wantError(10+request, pulsarproto.ServerError_InvalidTopicName)
		}
		p.send(producerCommand(20, 4, "t"))
		p.want(pulsarproto.BaseCommand_PRODUCER_SUCCESS)
		p.send(producerCommand(21, 4, "t")) // a repeat costs nothing
		p.want(pulsarproto.BaseCommand_PRODUCER_SUCCESS)
		p.send(subscribeCommand(22, 4, "t"))
		p.want(pulsarproto.BaseCommand_SUCCESS)
		full(23)
	})
}
