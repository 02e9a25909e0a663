package topic

import (
	"context"
	"time"

	"github.com/rs/zerolog"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/etcdcreator"
	"github.com/pulsar-tc/pulsar-tc/keyspace"
	"github.com/pulsar-tc/pulsar-tc/topic/dedup"
	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// Registrar registers participants with the coordinators, wherever those are.
type Registrar interface {
	// Count is the number of coordinators.
	Count() uint64
	// AddParticipants registers participants with id in the name of caller. It does not block; done is called exactly once.
	// A nil error means that they are registered and id was open then.
	AddParticipants(ctx context.Context, id txn.ID, caller cnx.Caller, participants []txn.Participant, done func(error))
}

// Late says what happens to a SEND whose transaction is not open.
type Late uint8

// The values of transactionLateSendPolicy.
const (
	LateReject Late = iota // NotAllowedError
	LateDrop               // a receipt with position -1:-1, and nothing stored
)

// Options say how topics behave. Zero numbers and durations mean the default.
type Options struct {
	KV        clientv3.KV
	Keys      keyspace.Space
	Registrar Registrar
	Log       zerolog.Logger
	// Schemas, if set, keeps the schemas that clients bring; else they are not looked at.
	Schemas Schemas
	// Instance, if set, owns topics under a lease, and others own others. Nil: no other process can own one.
	Instance Instance
	// Creator makes the keys of topics. Nil: one that is nobody else's, and is closed with the topics.
	Creator *etcdcreator.Creator
	// Watcher tells of topics that other instances delete. It is needed with Instance.
	Watcher clientv3.Watcher
	// Now is the clock; nil means time.Now.
	Now func() time.Time

	// MaxTxnOps bounds the operations of one etcd transaction, compares, then and else each. Default 128.
	MaxTxnOps int
	// MaxRequestBytes bounds the bytes of one etcd transaction. Default 1.5 MiB.
	MaxRequestBytes int
	// MaxMessageSize bounds one payload, in bytes. Default: what fits a request.
	MaxMessageSize int
	// StoreTimeout bounds one call of the store. Default 10 s. A write that takes longer has an unknown result.
	StoreTimeout time.Duration
	// LoadTimeout bounds a load with its repeats. Default 20 s.
	LoadTimeout time.Duration
	// Wrote, if set, is told the bytes of every write.
	Wrote func(bytes int)
	// Admit, if set, is asked before sends are stored; its error is their answer. AdmitAck is the same for acknowledgements,
	// which make room in the end. Nobody is asked for ends.
	Admit, AdmitAck func() error

	// AllowAutoTopicCreation lets the first use create a topic. Source: broker.conf allowAutoTopicCreation.
	AllowAutoTopicCreation bool
	// AutoPartitions is the number of partitions of such a topic; 0 makes it a plain one.
	// Source: broker.conf allowAutoTopicCreationType, defaultNumPartitions.
	AutoPartitions int
	// AllowAutoSubscriptionCreation lets the first use create a subscription.
	AllowAutoSubscriptionCreation bool
	// AutoCreation, if set, says for each topic what the three settings before say for all. It must not block.
	AutoCreation func(topicname.Name) AutoCreation
	// LateSend is transactionLateSendPolicy.
	LateSend Late
	// NamespaceExists tells whether tenant/namespace exists, as far as this process knows: a topic is made while the namespace has its
	// key in the store. Default: public/default and pulsar/system do, and have no keys.
	NamespaceExists func(ctx context.Context, namespace string) (bool, error)
	// unstored tells that namespaces have no keys.
	unstored bool
	// Policies says what holds for a topic. It must not block. Default: the zero Policies for every topic.
	Policies func(topicname.Name) Policies
	// Dedup bounds the producer names that deduplication remembers, for each topic. Default 10000 names, 360 minutes.
	// Source: broker.conf brokerDeduplicationMaxNumberOfProducers, brokerDeduplicationProducerInactivityTimeoutMinutes.
	Dedup dedup.Limits
	// Retention is how long an entry is kept at least, also if nobody needs it. Default 10 minutes, the time after which
	// Pulsar may close, and then delete, a ledger. Source: broker.conf managedLedgerMinLedgerRolloverTimeMinutes.
	Retention time.Duration
	// BacklogInterval is the time between looks at backlogs that are too large or too old. Default 60 s; negative: never.
	// Source: broker.conf backlogQuotaCheckIntervalInSeconds.
	BacklogInterval time.Duration
	// ExpiryInterval is the longest time between looks for messages beyond their time to live. Default 5 minutes.
	// Source: broker.conf messageExpiryCheckIntervalInMinutes.
	ExpiryInterval time.Duration
	// TrimInterval is the time between looks at what may be deleted. Default 30 s.
	TrimInterval time.Duration
	// IdleUnload is how long nobody uses a topic before it leaves memory; it is between that and TrimInterval longer. Default
	// 60 s, after which Pulsar looks for topics without use. Source: broker.conf brokerDeleteInactiveTopicsFrequencySeconds.
	IdleUnload time.Duration
	// CompactionRetainNullKey keeps messages without a key when a topic is compacted.
	// Source: broker.conf topicCompactionRetainNullKey.
	CompactionRetainNullKey bool
	// CacheBytes bounds the recent entries that all topics together keep in memory. Default 64 MiB.
	CacheBytes int64
	// MaxUnackedMessages bounds what one consumer of a Shared or Key_Shared subscription has unacknowledged, in messages, and
	// MaxUnackedMessagesPerSubscription all of them. Default 50000 and 200000; less than 0 is no limit.
	// Source: broker.conf maxUnackedMessagesPerConsumer, maxUnackedMessagesPerSubscription.
	MaxUnackedMessages, MaxUnackedMessagesPerSubscription int
	// FailoverDelay is the time from a change of the active consumer of a Failover subscription to its first message.
	// Source: broker.conf activeConsumerFailoverDelayTimeMillis.
	FailoverDelay time.Duration
	// KeySharedRingPoints is the number of points of each consumer on the ring of a Key_Shared subscription; 0 splits ranges
	// instead. Source: broker.conf subscriptionKeySharedConsistentHashingReplicaPoints.
	KeySharedRingPoints int
	// NoKeyShared refuses Key_Shared. Source: broker.conf subscriptionKeySharedEnable.
	NoKeyShared bool
	// WholeBatchAcks makes acknowledgements of a part of a batch outside transactions have no effect.
	// Source: broker.conf acknowledgmentAtBatchIndexLevelEnabled, false.
	WholeBatchAcks bool
	// DelayedDeliveryTick is the least time between two looks at what is due. Source: broker.conf delayedDeliveryTickTimeMillis.
	DelayedDeliveryTick time.Duration
}

// AutoCreation says what the first use of a name makes.
type AutoCreation struct {
	Topics        bool
	Partitions    int // of such a topic; 0 makes a plain one
	Subscriptions bool
}

func (o Options) withDefaults() Options {
	if o.AutoCreation == nil {
		everywhere := AutoCreation{o.AllowAutoTopicCreation, o.AutoPartitions, o.AllowAutoSubscriptionCreation}
		o.AutoCreation = func(topicname.Name) AutoCreation { return everywhere }
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NamespaceExists == nil {
		o.unstored = true
		o.NamespaceExists = func(_ context.Context, namespace string) (bool, error) {
			return namespace == "public/default" || namespace == topicname.SystemNamespace, nil
		}
	}
	if o.Policies == nil {
		o.Policies = func(topicname.Name) Policies { return Policies{} }
	}
	setDefault(&o.MaxTxnOps, 128)
	setDefault(&o.MaxRequestBytes, 3<<19)
	setDefault(&o.MaxMessageSize, MostMessageBytes(o.MaxRequestBytes))
	o.MaxMessageSize = min(o.MaxMessageSize, MostMessageBytes(o.MaxRequestBytes))
	setDefault(&o.StoreTimeout, 10*time.Second)
	setDefault(&o.LoadTimeout, 20*time.Second)
	setDefault(&o.Dedup.Names, 10000)
	setDefault(&o.Dedup.Inactive, 360*time.Minute)
	setDefault(&o.Retention, 10*time.Minute)
	setDefault(&o.BacklogInterval, time.Minute)
	setDefault(&o.ExpiryInterval, 5*time.Minute)
	setDefault(&o.TrimInterval, 30*time.Second)
	setDefault(&o.IdleUnload, time.Minute)
	setDefault(&o.CacheBytes, 64<<20)
	setDefault(&o.MaxUnackedMessages, 50000)
	setDefault(&o.MaxUnackedMessagesPerSubscription, 200000)
	return o
}

func setDefault[T int | int64 | time.Duration](value *T, otherwise T) {
	if *value == 0 {
		*value = otherwise
	}
}

// requestHeadroom is what a request needs beside the payload of one message: keys, compares, the mark, the tail.
const requestHeadroom = 64 << 10

// MostMessageBytes is the size of the largest message, with its metadata, that a request of so many bytes has room for.
func MostMessageBytes(requestBytes int) int { return requestBytes - requestHeadroom }
