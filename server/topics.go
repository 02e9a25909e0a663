package server

import (
	"context"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/conn"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/terminatedtopic"
	"github.com/pulsar-tc/pulsar-tc/topicname"
)

// namedTopics finds by its name what serves a topic. Topics serves what nothing else does.
type namedTopics struct {
	conn.Topics
	terminated *terminatedtopic.Topics
}

// Produce implements conn.Topics.
func (t *namedTopics) Produce(ctx context.Context, name topicname.Name, caller cnx.Caller, cmd *pulsarproto.CommandProducer, client cnx.ProducerClient) (cnx.Producer, cnx.ProducerInfo, error) {
	if terminatedtopic.Serves(name) {
		return nil, cnx.ProducerInfo{}, t.terminated.Produce(name, caller)
	}
	return t.Topics.Produce(ctx, name, caller, cmd, client)
}

// Subscribe implements conn.Topics.
func (t *namedTopics) Subscribe(ctx context.Context, name topicname.Name, caller cnx.Caller, cmd *pulsarproto.CommandSubscribe, client cnx.ConsumerClient) (cnx.Consumer, error) {
	if terminatedtopic.Serves(name) {
		return t.terminated.Subscribe(ctx, name, caller, cmd, client)
	}
	return t.Topics.Subscribe(ctx, name, caller, cmd, client)
}

// maxTerminatedBytes bounds one message of a topic of outcomes: more than transactionMetaPersistCount outcomes take by default.
const maxTerminatedBytes = 256 << 10

func (o *Options) terminated(coordinators uint64) terminatedtopic.Options {
	return terminatedtopic.Options{
		Coordinators: coordinators, MaxValueBytes: min(maxTerminatedBytes, o.Config.MaxMessageSize-2<<10),
	}
}
