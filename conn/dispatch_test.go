package conn

import (
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/protobuf/proto"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

// A schema is asked for by dead letter producers of bytes; other requests that are not served are told so.
func TestUnsupported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{})
		p := b.connectedPeer(t)
		schema := func(requestID uint64, kind pulsarproto.Schema_Type) *pulsarproto.BaseCommand {
			return &pulsarproto.BaseCommand{
				Type: pulsarproto.BaseCommand_GET_OR_CREATE_SCHEMA.Enum(),
				GetOrCreateSchema: &pulsarproto.CommandGetOrCreateSchema{
					RequestId: &requestID,
					Topic:     proto.String("t"),
					Schema:    &pulsarproto.Schema{Name: proto.String(""), SchemaData: []byte{}, Type: &kind},
				},
			}
		}
		p.send(schema(1, pulsarproto.Schema_None))
		answer := p.want(pulsarproto.BaseCommand_GET_OR_CREATE_SCHEMA_RESPONSE).GetGetOrCreateSchemaResponse()
		if answer.GetRequestId() != 1 || answer.SchemaVersion == nil || len(answer.SchemaVersion) != 0 || answer.ErrorCode != nil {
			t.Errorf("answer %v", answer)
		}
		p.send(schema(2, pulsarproto.Schema_Avro))
		p.wantError(2, pulsarproto.ServerError_NotAllowedError)
		for i, command := range []*pulsarproto.BaseCommand{
			{
				Type:      pulsarproto.BaseCommand_GET_SCHEMA.Enum(),
				GetSchema: &pulsarproto.CommandGetSchema{RequestId: proto.Uint64(10), Topic: proto.String("t")},
			},
			{
				Type:          pulsarproto.BaseCommand_CONSUMER_STATS.Enum(),
				ConsumerStats: &pulsarproto.CommandConsumerStats{RequestId: proto.Uint64(11), ConsumerId: proto.Uint64(1)},
			},
			{
				Type: pulsarproto.BaseCommand_WATCH_TOPIC_LIST.Enum(),
				WatchTopicList: &pulsarproto.CommandWatchTopicList{RequestId: proto.Uint64(12), WatcherId: proto.Uint64(1),
					Namespace: proto.String("public/default"), TopicsPattern: proto.String(".*")},
			},
			{
				Type: pulsarproto.BaseCommand_WATCH_TOPIC_LIST_CLOSE.Enum(),
				WatchTopicListClose: &pulsarproto.CommandWatchTopicListClose{RequestId: proto.Uint64(13),
					WatcherId: proto.Uint64(1)},
			},
			{
				Type: pulsarproto.BaseCommand_SCALABLE_TOPIC_SUBSCRIBE.Enum(),
				ScalableTopicSubscribe: &pulsarproto.CommandScalableTopicSubscribe{RequestId: proto.Uint64(14),
					Topic: proto.String("t"), Subscription: proto.String("s"), ConsumerName: proto.String("c"),
					ConsumerId: proto.Uint64(1)},
			},
		} {
			p.send(command)
			text := p.wantError(uint64(10+i), pulsarproto.ServerError_NotAllowedError)
			if !strings.HasPrefix(text, command.GetType().String()+" ") {
				t.Errorf("text %q does not name %s", text, command.GetType())
			}
		}
	})
}
