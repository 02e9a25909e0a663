package topic

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topicname"
)

// TopicStats is what Pulsar's admin API shows of one topic, under its names. Counters start at the load of the topic. Rates are
// per second, over the last half minute or longer that was measured.
//
// Source: org.apache.pulsar.common.policies.data.stats.TopicStatsImpl.
type TopicStats struct {
	MsgRateIn              float64                      `json:"msgRateIn"`
	MsgThroughputIn        float64                      `json:"msgThroughputIn"`
	MsgRateOut             float64                      `json:"msgRateOut"`
	MsgThroughputOut       float64                      `json:"msgThroughputOut"`
	BytesInCounter         uint64                       `json:"bytesInCounter"`
	MsgInCounter           uint64                       `json:"msgInCounter"`
	BytesOutCounter        uint64                       `json:"bytesOutCounter"`
	MsgOutCounter          uint64                       `json:"msgOutCounter"`
	AverageMsgSize         float64                      `json:"averageMsgSize"`
	MsgChunkPublished      bool                         `json:"msgChunkPublished"`
	StorageSize            uint64                       `json:"storageSize"`
	BacklogSize            uint64                       `json:"backlogSize"` // of the slowest subscription
	OngoingTxnCount        int                          `json:"ongoingTxnCount"`
	AbortedTxnCount        uint64                       `json:"abortedTxnCount"`
	CommittedTxnCount      uint64                       `json:"committedTxnCount"`
	Publishers             []PublisherStats             `json:"publishers"`
	WaitingPublishers      int                          `json:"waitingPublishers"`
	Subscriptions          map[string]SubscriptionStats `json:"subscriptions"`
	Replication            map[string]struct{}          `json:"replication"` // always empty
	DeduplicationStatus    string                       `json:"deduplicationStatus"`
	TopicCreationTimeStamp int64                        `json:"topicCreationTimeStamp"` // Unix ms
	LastPublishTimeStamp   int64                        `json:"lastPublishTimeStamp"`   // Unix ms; 0: not since the load
}

// PublisherStats is one producer.
type PublisherStats struct {
	AccessMode              string            `json:"accessMode"`
	ProducerID              uint64            `json:"producerId"`
	ProducerName            string            `json:"producerName"`
	MsgRateIn               float64           `json:"msgRateIn"`
	MsgThroughputIn         float64           `json:"msgThroughputIn"`
	AverageMsgSize          float64           `json:"averageMsgSize"`
	ChunkedMessageRate      float64           `json:"chunkedMessageRate"`
	SupportsPartialProducer bool              `json:"supportsPartialProducer"`
	Metadata                map[string]string `json:"metadata"`
	Address                 string            `json:"address"`
	ConnectedSince          string            `json:"connectedSince"`
	ClientVersion           string            `json:"clientVersion"`
}

// SubscriptionStats is one subscription.
type SubscriptionStats struct {
	Type                               string            `json:"type"` // Exclusive, Shared, Failover, Key_Shared; None before the first consumer
	IsDurable                          bool              `json:"isDurable"`
	IsReplicated                       bool              `json:"isReplicated"`
	AllowOutOfOrderDelivery            bool              `json:"allowOutOfOrderDelivery"`
	BlockedSubscriptionOnUnackedMsgs   bool              `json:"blockedSubscriptionOnUnackedMsgs"`
	ActiveConsumerName                 string            `json:"activeConsumerName,omitempty"`
	MsgRateOut                         float64           `json:"msgRateOut"`
	MsgThroughputOut                   float64           `json:"msgThroughputOut"`
	MsgRateRedeliver                   float64           `json:"msgRateRedeliver"`
	MsgRateExpired                     float64           `json:"msgRateExpired"`
	MessageAckRate                     float64           `json:"messageAckRate"`
	BytesOutCounter                    uint64            `json:"bytesOutCounter"`
	MsgOutCounter                      uint64            `json:"msgOutCounter"`
	MsgBacklog                         uint64            `json:"msgBacklog"` // in entries, as in Pulsar
	MsgBacklogNoDelayed                uint64            `json:"msgBacklogNoDelayed"`
	MsgDelayed                         uint64            `json:"msgDelayed"`
	BacklogSize                        uint64            `json:"backlogSize"`
	UnackedMessages                    int               `json:"unackedMessages"`
	TotalMsgExpired                    uint64            `json:"totalMsgExpired"`
	NonContiguousDeletedMessagesRanges int               `json:"nonContiguousDeletedMessagesRanges"`
	SubscriptionProperties             map[string]string `json:"subscriptionProperties"`
	ConsumersAfterMarkDeletePosition   map[string]string `json:"consumersAfterMarkDeletePosition"` // always empty
	Consumers                          []ConsumerStats   `json:"consumers"`
}

// ConsumerStats is one consumer.
type ConsumerStats struct {
	ConsumerName                 string            `json:"consumerName"`
	AvailablePermits             int64             `json:"availablePermits"`
	UnackedMessages              int               `json:"unackedMessages"`
	BlockedConsumerOnUnackedMsgs bool              `json:"blockedConsumerOnUnackedMsgs"`
	MsgRateOut                   float64           `json:"msgRateOut"`
	MsgThroughputOut             float64           `json:"msgThroughputOut"`
	MsgRateRedeliver             float64           `json:"msgRateRedeliver"`
	MessageAckRate               float64           `json:"messageAckRate"`
	ChunkedMessageRate           float64           `json:"chunkedMessageRate"`
	BytesOutCounter              uint64            `json:"bytesOutCounter"`
	MsgOutCounter                uint64            `json:"msgOutCounter"`
	Metadata                     map[string]string `json:"metadata"`
	Address                      string            `json:"address"`
	ConnectedSince               string            `json:"connectedSince"`
	ClientVersion                string            `json:"clientVersion"`
	LastConsumedFlowTimestamp    int64             `json:"lastConsumedFlowTimestamp"` // Unix ms of the last FLOW
}

// TopicStats returns what a topic does; one that is not loaded is loaded.
// Errors: ErrTopicNotFound.
func (ts *Topics) TopicStats(ctx context.Context, name topicname.Name) (*TopicStats, error) {
	stored, err := ts.attributes(ctx, name)
	if err != nil {
		return nil, err
	}
	stats, err := askTopic(ctx, ts, name, func(t *Topic, answer func(*TopicStats, error)) { answer(t.topicStats(), nil) })
	if err != nil {
		return nil, err
	}
	stats.TopicCreationTimeStamp = stored.attributes.Created
	return stats, nil
}

func (t *Topic) topicStats() *TopicStats {
	s := &TopicStats{
		BytesInCounter: t.in.bytes, MsgInCounter: t.in.messages, BytesOutCounter: t.out.bytes, MsgOutCounter: t.out.messages,
		MsgRateIn: t.in.messageRate, MsgThroughputIn: t.in.byteRate, MsgRateOut: t.out.messageRate, MsgThroughputOut: t.out.byteRate,
		AverageMsgSize: t.in.average(), WaitingPublishers: len(t.waiting),
		OngoingTxnCount: t.buffer.Len(), AbortedTxnCount: t.counts.aborted, CommittedTxnCount: t.counts.committed,
		Publishers: []PublisherStats{}, Subscriptions: make(map[string]SubscriptionStats), Replication: map[string]struct{}{},
		StorageSize: t.storageSize(), BacklogSize: t.backlogSize(),
		DeduplicationStatus: "Disabled", LastPublishTimeStamp: t.counts.published,
	}
	if t.options.Policies(t.name).Deduplication {
		s.DeduplicationStatus = "Enabled"
	}
	for _, p := range t.producers {
		s.Publishers = append(s.Publishers, p.stats())
	}
	slices.SortFunc(s.Publishers, func(a, b PublisherStats) int { return strings.Compare(a.ProducerName, b.ProducerName) })
	for name, sub := range t.subscriptions {
		s.Subscriptions[name] = sub.stats()
	}
	return s
}

func (p *producer) stats() PublisherStats {
	peer := p.client.Peer()
	return PublisherStats{
		AccessMode: p.mode.String(), MsgRateIn: p.in.messageRate, MsgThroughputIn: p.in.byteRate, AverageMsgSize: p.in.average(),
		ProducerID: p.id, ProducerName: p.name, Metadata: orEmpty(p.metadata),
		Address: peer.Address, ClientVersion: peer.ClientVersion, ConnectedSince: sinceText(p.since),
	}
}

func (s *subscription) stats() SubscriptionStats {
	out := SubscriptionStats{
		Type: "None", IsDurable: s.durable, MsgBacklog: s.backlog(), BacklogSize: s.backlogSize(), NonContiguousDeletedMessagesRanges: s.cursor.Holes(),
		MsgOutCounter: s.out.messages, BytesOutCounter: s.out.bytes, MsgRateOut: s.out.messageRate, MsgThroughputOut: s.out.byteRate,
		MsgRateRedeliver:       s.repeated.messageRate,
		SubscriptionProperties: maps.Clone(s.properties), ConsumersAfterMarkDeletePosition: map[string]string{}, Consumers: []ConsumerStats{},
	}
	if out.SubscriptionProperties == nil {
		out.SubscriptionProperties = map[string]string{}
	}
	out.MsgDelayed = uint64(len(s.delayed.entries))
	out.MsgBacklogNoDelayed = out.MsgBacklog - min(out.MsgBacklog, out.MsgDelayed)
	out.BlockedSubscriptionOnUnackedMsgs = s.overloaded
	out.AllowOutOfOrderDelivery = s.keyShared() && s.sticky.outOfOrder
	if len(s.consumers) > 0 {
		out.Type = s.kind.String()
	}
	if s.active != nil {
		out.ActiveConsumerName = s.active.name
	}
	for _, c := range s.consumers {
		one := c.stats()
		out.UnackedMessages += one.UnackedMessages
		out.Consumers = append(out.Consumers, one)
	}
	return out
}

func (c *consumer) stats() ConsumerStats {
	peer := c.client.Peer()
	return ConsumerStats{
		ConsumerName: c.name, AvailablePermits: c.permits, UnackedMessages: c.unackedMessages,
		BlockedConsumerOnUnackedMsgs: c.overloaded, Metadata: orEmpty(c.metadata),
		MsgOutCounter: c.out.messages, BytesOutCounter: c.out.bytes, MsgRateOut: c.out.messageRate, MsgThroughputOut: c.out.byteRate,
		MsgRateRedeliver: c.repeated.messageRate, LastConsumedFlowTimestamp: c.flowed,
		Address: peer.Address, ClientVersion: peer.ClientVersion, ConnectedSince: sinceText(c.since),
	}
}

// sinceText is a time as Pulsar writes it.
func sinceText(unixMillis int64) string {
	return time.UnixMilli(unixMillis).UTC().Format(time.RFC3339Nano)
}

// maxMetadata bounds what a client tells about itself with one producer or consumer, in bytes. What is beyond is not kept.
const maxMetadata = 16 << 10

// keptMetadata is what stats show of the metadata of PRODUCER or SUBSCRIBE; nil if there is none.
func keptMetadata(pairs []*pulsarproto.KeyValue) map[string]string {
	var kept map[string]string
	bytes := 0
	for _, pair := range pairs {
		if bytes += len(pair.GetKey()) + len(pair.GetValue()); bytes > maxMetadata {
			break
		}
		if kept == nil {
			kept = make(map[string]string, 1)
		}
		kept[pair.GetKey()] = pair.GetValue()
	}
	return kept
}

func orEmpty(metadata map[string]string) map[string]string {
	if metadata == nil {
		return map[string]string{}
	}
	return metadata
}
