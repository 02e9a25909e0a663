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
	"github.com/pulsar-tc/pulsar-tc/preserver"
	"github.com/pulsar-tc/pulsar-tc/topic"
	"github.com/pulsar-tc/pulsar-tc/topic/dedup"
)

// Options say what to start.
type Options struct {
	Config  *conf.Config
	Version string
	Log     zerolog.Logger
	// WrapKV, if set, stands between everything that this process stores and the store, to see what goes by.
	WrapKV func(clientv3.KV) clientv3.KV
}

func (o *Options) coordinator(events coordinator.Events, l limits) coordinator.Options {
	c := o.Config
	options := coordinator.DefaultOptions()
	options.Events = events
	options.TooManyPause = c.TooManyTransactionsPause
	options.EndWait = c.TransactionEndWait
	options.ExpireInterval = c.TransactionMetaExpireCheckInterval
	if o.External() {
		options.GiveUp, options.GiveUpFor = c.CoordinatorGiveUp, c.CoordinatorLease+giveUpMargin
	}
	options.Machine = fsm.Options{
		MaxTTLMillis:        uint64(c.TransactionMaxTTL.Milliseconds()),
		MaxActive:           int(min(c.MaxActiveTransactionsPerCoordinator, maxActive)),
		MaxParticipants:     c.TransactionMaxParticipants,
		MaxParticipantBytes: c.TransactionMaxParticipantBytes,
		MaxSnapshotBytes:    l.requestBytes / 2,
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

// giveUpMargin is by how much longer than a lease a coordinator is left to other processes. These leave a seat that is free to
// the process whose place it is for a lease and a second.
const giveUpMargin = 3 * time.Second

// maxActive keeps maxActiveTransactionsPerCoordinator, a long in Pulsar, within an int everywhere.
const maxActive = 1<<31 - 1

func (o *Options) connections(events conn.Events, l limits) conn.Options {
	c := o.Config
	return conn.Options{
		Version:              o.Version,
		MaxMessageSize:       l.messageSize,
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

func (o *Options) topics(l limits) topic.Options {
	c := o.Config
	options := topic.Options{
		Keys:                          o.space(),
		Log:                           o.Log,
		MaxTxnOps:                     l.txnOps,
		MaxRequestBytes:               l.requestBytes,
		MaxMessageSize:                l.messageSize + storedPadding,
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
