package conn

import (
	"time"

	"github.com/rs/zerolog"
)

// Options are the settings of a Server. The zero value of a field stands for the default that its comment names.
type Options struct {
	// Version is the product's version; CONNECTED tells it as server_version "pulsar-tc <version>".
	Version string
	// MaxMessageSize is told in CONNECTED and bounds a frame: the largest one accepted is MaxMessageSize + 10 KiB.
	// Default 5 MiB. Source: broker.conf maxMessageSize; Commands.MESSAGE_SIZE_FRAME_PADDING.
	MaxMessageSize int
	// KeepAlive is the interval of PING; a peer that reads nothing into it is closed after one to two of them. It is also
	// the deadline of the handshake. Negative: no PING, and a handshake deadline of 30 s. Default 30 s.
	// Source: broker.conf keepAliveIntervalSeconds; PulsarHandler.handleKeepAliveTimeout.
	KeepAlive time.Duration
	// LivenessTimeout bounds the probe of a connection whose producer or consumer stands in the way of a new one. Negative:
	// no probe, connections count as alive. Default 5 s. Source: broker.conf connectionLivenessCheckTimeoutMillis.
	LivenessTimeout time.Duration
	// WriteTimeout is how long a peer may take to make room for the next 256 KiB. Default 30 s.
	WriteTimeout time.Duration
	// HighWater is the number of outgoing bytes above which the connection's consumers are Full, until half of it is left.
	// Above twice HighWater the connection is not read, until HighWater is left. Default 1 MiB.
	HighWater int
	// MaxOutgoing is the number of outgoing bytes above which the connection is closed. Default 64 MiB, and room for eight
	// of the largest messages.
	MaxOutgoing int
	// MaxPendingRequests is the number of unanswered requests, sends excepted, above which the connection is not read.
	// Default 10000.
	MaxPendingRequests int
	// MaxPendingSends is the same for sends. Default 1000. Source: broker.conf maxPendingPublishRequestsPerConnection.
	MaxPendingSends int
	// MaxPendingRequestBytes is the number of bytes of unanswered requests above which the connection is not read; a single
	// request may have more. A request that gets a goroutine counts 16 KiB more. Default 16 MiB.
	MaxPendingRequestBytes int
	// MaxPendingSendBytes is the same for sends. Default 32 MiB.
	MaxPendingSendBytes int
	// MaxAttachedBytes is the number of bytes of the commands of a connection's producers and consumers, each counted with 4 KiB
	// more, above which no more are attached. Default 256 MiB.
	MaxAttachedBytes int
	// MaxPublishBytes is the number of bytes of unanswered sends on all connections, with the large frames being read behind the
	// handshake, above which a connection that has unanswered sends is not read. Negative: no bound. Default 256 MiB.
	// Source: broker.conf maxMessagePublishBufferSizeInMB.
	MaxPublishBytes int
	// MaxConnections bounds the open connections, MaxConnectionsPerIP those of one address. 0: no bound.
	// Source: broker.conf brokerMaxConnections, brokerMaxConnectionsPerIp.
	MaxConnections      int
	MaxConnectionsPerIP int
	// MaxConcurrentLookups bounds LOOKUP and PARTITIONED_METADATA being answered on all connections; more get
	// TooManyRequests. Default 50000. Source: broker.conf maxConcurrentLookupRequest.
	MaxConcurrentLookups int
	// MaxPatternLength is the length in characters of the longest topic pattern that is matched here, for lists and for watches.
	// Negative: none is, and there are no watches. Default 50.
	// Source: broker.conf enableBrokerSideSubscriptionPatternEvaluation, subscriptionPatternMaxLength.
	MaxPatternLength int
	// Authenticator decides who connects. Nil: authentication is off and every Caller is unknown.
	Authenticator Authenticator
	// Instances admits the other instances of the cluster, behind Authenticator. Nil: this is the only one.
	Instances Instances
	// AuthRefresh is how long before the end of its credentials a client is asked for fresh ones, where they last at least
	// twice as long. Default 60 s. Source: broker.conf authenticationRefreshCheckSeconds.
	AuthRefresh time.Duration
	// Authorizer decides what callers may do. Nil: everything.
	Authorizer Authorizer
	// Log gets connections at debug level and, up to ten lines a second, the faults of peers at info level.
	Log zerolog.Logger
	// Events feed metrics; nil functions are not called.
	Events Events
}

// handshakeTimeout is the deadline of the handshake where keep-alive is off.
const handshakeTimeout = 30 * time.Second

// withDefaults returns o with every zero field replaced by its default.
func (o Options) withDefaults() Options {
	setDefault(&o.MaxMessageSize, 5<<20)
	setDefault(&o.KeepAlive, 30*time.Second)
	setDefault(&o.LivenessTimeout, 5*time.Second)
	setDefault(&o.AuthRefresh, time.Minute)
	setDefault(&o.WriteTimeout, 30*time.Second)
	setDefault(&o.HighWater, 1<<20)
	setDefault(&o.MaxOutgoing, max(64<<20, 8*o.MaxMessageSize))
	setDefault(&o.MaxPendingRequests, 10000)
	setDefault(&o.MaxPendingSends, 1000)
	setDefault(&o.MaxPendingRequestBytes, 16<<20)
	setDefault(&o.MaxPendingSendBytes, 32<<20)
	setDefault(&o.MaxAttachedBytes, 256<<20)
	setDefault(&o.MaxPublishBytes, 256<<20)
	setDefault(&o.MaxConcurrentLookups, 50000)
	setDefault(&o.MaxPatternLength, 50)
	return o
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
