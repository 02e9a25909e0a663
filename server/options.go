package server

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/rs/zerolog"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/certificate"
	"github.com/pulsar-tc/pulsar-tc/conf"
	"github.com/pulsar-tc/pulsar-tc/conn"
	"github.com/pulsar-tc/pulsar-tc/coordinator"
	"github.com/pulsar-tc/pulsar-tc/coordinator/fsm"
	"github.com/pulsar-tc/pulsar-tc/etcdstore"
	"github.com/pulsar-tc/pulsar-tc/keyspace"
	"github.com/pulsar-tc/pulsar-tc/preserver"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topic"
	"github.com/pulsar-tc/pulsar-tc/topic/dedup"
)

// keyPrefix is the first element of every key.
const keyPrefix = "pulsar-tc"

// maxTxnOps is the limit on the operations of one etcd transaction that the embedded server is given.
const maxTxnOps = 8192

// Options say what to start.
type Options struct {
	Config  *conf.Config
	Version string
	Log     zerolog.Logger
	// WrapKV, if set, stands between everything that this process stores and the store, to see what goes by.
	WrapKV func(clientv3.KV) clientv3.KV
}

func (o *Options) space() keyspace.Space { return keyspace.New(keyPrefix, o.Config.ClusterName) }

func (o *Options) store() etcdstore.Options {
	return etcdstore.Options{
		Dir:                 o.Config.DataDir,
		Space:               o.space(),
		InitialCoordinators: uint64(o.Config.InitialNumTransactionCoordinators),
		MaxMessageBytes:     max(o.Config.MaxMessageSize, minMessageBytes),
		MaxTxnOps:           maxTxnOps,
		QuotaBytes:          o.Config.EtcdQuotaBytes,
	}
}

func (o *Options) coordinator(events coordinator.Events) coordinator.Options {
	c := o.Config
	options := coordinator.DefaultOptions()
	options.Events = events
	options.TooManyPause = c.TooManyTransactionsPause
	options.EndWait = c.TransactionEndWait
	options.ExpireInterval = c.TransactionMetaExpireCheckInterval
	options.Machine = fsm.Options{
		MaxTTLMillis:        uint64(c.TransactionMaxTTL.Milliseconds()),
		MaxActive:           int(min(c.MaxActiveTransactionsPerCoordinator, maxActive)),
		MaxParticipants:     c.TransactionMaxParticipants,
		MaxParticipantBytes: c.TransactionMaxParticipantBytes,
		MaxSnapshotBytes:    o.store().MaxRequestBytes() / 2,
		Preserver: preserver.Options{
			Count:         c.TransactionMetaPersistCount,
			UnnamedCount:  c.TransactionMetaPersistUnnamedCount,
			Retention:     c.TransactionMetaPersistTime.Milliseconds(),
			MinTime:       c.TransactionMetaPersistMinTime.Milliseconds(),
			Max:           c.TransactionMetaPersistMaxPerCoord,
			NamesPerOwner: c.TransactionMaxNamesPerOwner,
		},
	}
	return options
}

// minMessageBytes is the size of messages that the store is made for where maxMessageSize is smaller: a snapshot of a
// transaction with all participants that the defaults allow must fit one request, too.
const minMessageBytes = 5 << 20

// maxActive keeps maxActiveTransactionsPerCoordinator, a long in Pulsar, within an int everywhere.
const maxActive = 1<<31 - 1

func (o *Options) connections(events conn.Events) conn.Options {
	c := o.Config
	return conn.Options{
		Version:              o.Version,
		MaxMessageSize:       c.MaxMessageSize,
		KeepAlive:            offIfNotPositive(c.KeepAlive),
		LivenessTimeout:      offIfNotPositive(c.ConnectionLivenessCheckTimeout),
		MaxPendingSends:      c.MaxPendingPublishRequestsPerConnection,
		MaxPublishBytes:      offIfNotPositive(c.MaxMessagePublishBufferSize << 20),
		MaxConnections:       c.BrokerMaxConnections,
		MaxConnectionsPerIP:  c.BrokerMaxConnectionsPerIP,
		MaxConcurrentLookups: c.MaxConcurrentLookupRequest,
		MaxPatternLength:     o.maxPatternLength(),
		AuthRefresh:          c.AuthenticationRefreshCheck,
		Log:                  o.Log,
		Events:               events,
	}
}

// maxPatternLength is negative where patterns are left to clients.
func (o *Options) maxPatternLength() int {
	if !o.Config.SubscriptionPatternEvaluation {
		return -1
	}
	return offIfNotPositive(o.Config.SubscriptionPatternMaxLength)
}

// offIfNotPositive turns broker.conf's "0 or less is off" into package conn's "negative is off".
func offIfNotPositive[T int | time.Duration](value T) T {
	if value <= 0 {
		return -1
	}
	return value
}

// deliveryHeadroom is what the frame of a MESSAGE needs beside what its SEND had: a client takes no larger frame than that of
// maxMessageSize and FramePadding. Within the padding, metadata do not count: the Go client's chunks are maxMessageSize long
// without them.
const deliveryHeadroom = 1 << 10

func (o *Options) topics() topic.Options {
	c := o.Config
	options := topic.Options{
		Keys:                          o.space(),
		Log:                           o.Log,
		MaxTxnOps:                     maxTxnOps,
		MaxMessageSize:                c.MaxMessageSize + pulsarproto.FramePadding - deliveryHeadroom,
		AllowAutoTopicCreation:        c.AllowAutoTopicCreation,
		AllowAutoSubscriptionCreation: c.AllowAutoSubscriptionCreationEnabled,
	}
	options.Dedup = dedup.Limits{Names: c.DeduplicationMaxProducers, Inactive: minutes(int64(c.DeduplicationInactivityMinutes))}
	o.delivery(&options)
	options.CompactionRetainNullKey = c.TopicCompactionRetainNullKey
	options.IdleUnload = c.BrokerDeleteInactiveTopicsFrequency
	options.ExpiryInterval = minutes(int64(c.MessageExpiryCheckMinutes))
	options.BacklogInterval = c.BacklogQuotaCheckInterval
	if !c.BacklogQuotaCheckEnabled {
		options.BacklogInterval = -1
	}
	if c.AllowAutoTopicCreationType == "partitioned" {
		options.AutoPartitions = c.DefaultNumPartitions
	}
	if c.TransactionLateSendPolicy == "drop" {
		options.LateSend = topic.LateDrop
	}
	return options
}

// deleteCaughtUp is the value of brokerDeleteInactiveTopicsMode that lets topics go with their subscriptions.
const deleteCaughtUp = "delete_when_subscriptions_caught_up"

// policies are those of every topic for which nothing else is said.
func (o *Options) policies() topic.Policies {
	c := o.Config
	return topic.Policies{
		Deduplication:               c.BrokerDeduplicationEnabled,
		MessageTTL:                  c.TTLDurationDefault,
		RetentionTime:               minutes(int64(c.DefaultRetentionTimeInMinutes)),
		RetentionBytes:              megabytes(int64(c.DefaultRetentionSizeInMB)),
		BacklogBytes:                c.BacklogQuotaDefaultLimitBytes,
		BacklogAge:                  c.BacklogQuotaDefaultLimitSecond,
		BacklogPolicy:               backlogPolicies[c.BacklogQuotaDefaultRetentionPolicy],
		SubscriptionExpiration:      minutes(int64(c.SubscriptionExpirationTimeMinutes)),
		DeleteInactive:              c.BrokerDeleteInactiveTopicsEnabled,
		DeleteCaughtUp:              c.BrokerDeleteInactiveTopicsMode == deleteCaughtUp,
		InactiveAfter:               cmp.Or(c.BrokerDeleteInactiveTopicsMaxAge, c.BrokerDeleteInactiveTopicsFrequency),
		DelayedDelivery:             c.DelayedDeliveryEnabled,
		MaxProducers:                c.MaxProducersPerTopic,
		MaxConsumers:                c.MaxConsumersPerTopic,
		MaxSubscriptions:            c.MaxSubscriptionsPerTopic,
		MaxConsumersPerSubscription: c.MaxConsumersPerSubscription,
		CompactionThreshold:         c.CompactionThreshold,
	}
}

func (o *Options) certificates() certificate.Options {
	c := o.Config
	return certificate.Options{
		CertificateFile: c.TLSCertificateFilePath,
		KeyFile:         c.TLSKeyFilePath,
		TrustFile:       c.TLSTrustCertsFilePath,
		RefreshCheck:    c.TLSCertRefreshCheckDuration,
		AllowInsecure:   c.TLSAllowInsecureConnection,
		Require:         c.TLSRequireTrustedClientCertOnConnect,
		Log:             o.Log,
	}
}

// delivery sets what consumers notice.
func (o *Options) delivery(options *topic.Options) {
	c := o.Config
	options.FailoverDelay = c.ActiveConsumerFailoverDelay
	options.WholeBatchAcks = !c.AcknowledgmentAtBatchIndexLevel
	options.DelayedDeliveryTick = c.DelayedDeliveryTick
	options.MaxUnackedMessages = offIfNotPositive(c.MaxUnackedMessagesPerConsumer)
	options.MaxUnackedMessagesPerSubscription = offIfNotPositive(c.MaxUnackedMessagesPerSubscription)
	options.NoKeyShared = !c.SubscriptionKeySharedEnable
	if c.KeySharedUseConsistentHashing {
		options.KeySharedRingPoints = c.KeySharedReplicaPoints
	}
}

// listen opens a port of bindAddress.
func (o *Options) listen(key string, port int) (net.Listener, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(o.Config.BindAddress, strconv.Itoa(port)))
	if err != nil {
		return nil, fmt.Errorf("%s=%d, bindAddress=%s: %w", key, port, o.Config.BindAddress, err)
	}
	return l, nil
}

// advertised is host:port that clients find in lookup answers and the ready line.
func (o *Options) advertised(l net.Listener) (string, error) {
	host := o.Config.AdvertisedAddress
	if host == "" {
		name, err := os.Hostname()
		if err != nil {
			return "", fmt.Errorf("advertisedAddress is empty and this host does not know its name: %w", err)
		}
		host = name
	}
	return net.JoinHostPort(host, strconv.Itoa(l.Addr().(*net.TCPAddr).Port)), nil
}
