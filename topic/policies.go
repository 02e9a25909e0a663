package topic

import "time"

// Policies is what holds for one topic: what is set for the topic itself, else for its namespace, else for the broker.
type Policies struct {
	// Deduplication turns PIP-6 on. Source: broker.conf brokerDeduplicationEnabled.
	Deduplication bool
	// MessageTTL is the age at which messages count as acknowledged by every subscription; 0: never.
	MessageTTL time.Duration
	// RetentionTime and RetentionBytes keep acknowledged messages; -1 is without limit, and both 0 keep none.
	RetentionTime  time.Duration
	RetentionBytes int64
	// BacklogBytes and BacklogAge bound the backlog of the slowest subscription; 0 or less is no limit.
	BacklogBytes int64
	BacklogAge   time.Duration
	// BacklogPolicy is what happens beyond them.
	BacklogPolicy BacklogPolicy
	// SubscriptionExpiration is how long a durable subscription without consumers stays; 0: for ever.
	SubscriptionExpiration time.Duration
	// DeleteInactive deletes a topic that nobody uses and nobody is subscribed to, and that has no entries, InactiveAfter its
	// last use.
	DeleteInactive bool
	InactiveAfter  time.Duration
	// DeleteCaughtUp deletes such a topic with its subscriptions, too, if they have no consumers and everything is acknowledged.
	DeleteCaughtUp bool
	// DelayedDelivery honours deliver_at_time on Shared and Key_Shared subscriptions.
	DelayedDelivery bool
	// Most producers, consumers, subscriptions of a topic and consumers of a subscription; 0 is no limit.
	MaxProducers, MaxConsumers, MaxSubscriptions, MaxConsumersPerSubscription int
	// CompactionThreshold is the backlog of the compaction at which it starts by itself, in bytes; 0: never.
	CompactionThreshold int64
}

// BacklogPolicy is one of Pulsar's backlog quota policies.
type BacklogPolicy uint8

// The values of BacklogPolicy. Source: BacklogQuota.RetentionPolicy.
const (
	ProducerRequestHold BacklogPolicy = iota
	ProducerException
	ConsumerBacklogEviction
)
