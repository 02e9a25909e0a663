package conn

import (
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/protobuf/proto"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

// Requests that are not served are told so.
func TestUnsupported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{})
		p := b.connectedPeer(t)
		for i, command := range []*pulsarproto.BaseCommand{
			{
				Type: pulsarproto.BaseCommand_SCALABLE_TOPIC_SUBSCRIBE.Enum(),
				ScalableTopicSubscribe: &pulsarproto.CommandScalableTopicSubscribe{RequestId: proto.Uint64(12),
					Topic: proto.String("t"), Subscription: proto.String("s"), ConsumerName: proto.String("c"),
					ConsumerId: proto.Uint64(1)},
			},
		} {
			p.send(command)
			text := p.wantError(uint64(12+i), pulsarproto.ServerError_NotAllowedError)
			if !strings.HasPrefix(text, command.GetType().String()+" ") {
				t.Errorf("text %q does not name %s", text, command.GetType())
			}
		}
	})
}
