package conf

import (
	"math"
	"time"
)

// Config holds every setting that pulsar-tc honours. Tags: conf is the key as broker.conf spells it, also lists other
// spellings, unit is the unit of the value in a file, range is least and greatest value (inclusive, in that unit), oneof the
// allowed words, external the default where the store is an etcd cluster.
//
// Keys and defaults of Pulsar are those of its conf/broker.conf and ServiceConfiguration.java, unless doc says otherwise.
type Config struct {
	// Listening and identity.
	ClusterName           string        `conf:"clusterName" default:"standalone" doc:"Name of this cluster: part of every key in the store and the label cluster of all metrics. With an etcd cluster without a /."`
	MetadataStoreURL      string        `conf:"metadataStoreUrl" doc:"Empty: the store is embedded. etcd:http://h1:2379,http://h2:2379, or https://: an etcd cluster, which any number of processes of one clusterName share. Another store in a file of Pulsar (zk:...) is passed over with a warning; command coordinator refuses it."`
	DataDir               string        `conf:"dataDir" default:"./data" doc:"Directory of the embedded store; not used with an etcd cluster."`
	BindAddress           string        `conf:"bindAddress" default:"0.0.0.0" doc:"Address to listen on. Without a configuration file the default is 127.0.0.1."`
	AdvertisedAddress     string        `conf:"advertisedAddress" doc:"Host name in lookup answers; empty means the name of this host. Without a configuration file the default is localhost."`
	BrokerServicePort     int           `conf:"brokerServicePort" also:"servicePort" default:"6650" range:"-1,65535" doc:"Port of the binary protocol; 0 takes a free one, -1 is off. Given and empty is off, too, where brokerServicePortTls is set."`
	BrokerServicePortTLS  int           `conf:"brokerServicePortTls" also:"servicePortTls" default:"-1" range:"-1,65535" doc:"Port of the binary protocol over TLS; 0 takes a free one, -1 is off."`
	WebServicePort        int           `conf:"webServicePort" default:"8080" range:"-1,65535" doc:"Port of HTTP: transactions, metrics, health; 0 takes a free one, -1 is off. Given and empty is off, too, where webServicePortTls is set."`
	WebServicePortTLS     int           `conf:"webServicePortTls" default:"-1" range:"-1,65535" doc:"Port of HTTPS; 0 takes a free one, -1 is off."`
	BrokerShutdownTimeout time.Duration `conf:"brokerShutdownTimeoutMs" unit:"ms" default:"60000" range:"0," doc:"Longest orderly shutdown; then the process ends anyway."`

	// Connections.
	KeepAlive                              time.Duration `conf:"keepAliveIntervalSeconds" unit:"s" default:"30" range:"-2147483648,2147483647" doc:"PING a silent connection after this long, close it after one more; 0 or less is off."`
	MaxMessageSize                         int           `conf:"maxMessageSize" unit:"bytes" default:"5242880" range:"1,1073741824" doc:"Largest message; the largest frame accepted is this plus 10240. With an etcd cluster, clients are told what fits etcdMaxRequestBytes if that is less."`
	ConnectionLivenessCheckTimeout         time.Duration `conf:"connectionLivenessCheckTimeoutMillis" unit:"ms" default:"5000" range:"0," doc:"Time that an old connection has to answer when a new producer or consumer conflicts with it; 0 is off."`
	BrokerMaxConnections                   int           `conf:"brokerMaxConnections" also:"maxConcurrentInboundConnections" default:"0" range:"0," doc:"Most connections in total; 0 is no limit."`
	BrokerMaxConnectionsPerIP              int           `conf:"brokerMaxConnectionsPerIp" also:"maxConcurrentInboundConnectionsPerIp" default:"0" range:"0," doc:"Most connections of one address; 0 is no limit."`
	MaxConcurrentLookupRequest             int           `conf:"maxConcurrentLookupRequest" also:"maxConcurrentLookupRequests" default:"50000" range:"0," doc:"Lookups and partition metadata requests under way at once; beyond it TooManyRequests."`
	MaxPendingPublishRequestsPerConnection int           `conf:"maxPendingPublishRequestsPerConnection" default:"1000" range:"1," doc:"Unanswered sends of one connection before it is read no further."`
	MaxMessagePublishBufferSize            int           `conf:"maxMessagePublishBufferSizeInMB" unit:"MiB" default:"256" range:"-1,1048576" doc:"Unanswered sends of all connections together before those that have any are read no further; 0 or less is no limit. Pulsar's default is half of its direct memory, at least 64."`

	// TLS.
	TLSCertificateFilePath               string        `conf:"tlsCertificateFilePath" doc:"The server's certificate and those between it and its authority, PEM."`
	TLSKeyFilePath                       string        `conf:"tlsKeyFilePath" doc:"The private key of the certificate, PEM."`
	TLSTrustCertsFilePath                string        `conf:"tlsTrustCertsFilePath" doc:"Authorities that stand behind client certificates, PEM. Empty: no client certificate is valid."`
	TLSAllowInsecureConnection           bool          `conf:"tlsAllowInsecureConnection" default:"false" doc:"Let in clients whose certificate is not valid; it authenticates nobody."`
	TLSRequireTrustedClientCertOnConnect bool          `conf:"tlsRequireTrustedClientCertOnConnect" default:"false" doc:"Let in nobody without a valid client certificate, on the TLS ports."`
	TLSCertRefreshCheckDuration          time.Duration `conf:"tlsCertRefreshCheckDurationSec" unit:"s" default:"300" range:"0,2147483647" doc:"How often new connections make the files above be read again; 0: each does."`
	TLSProtocols                         string        `conf:"tlsProtocols" doc:"Versions of TLS on the binary port, such as TLSv1.3,TLSv1.2; empty is the choice of Go's library."`
	TLSCiphers                           string        `conf:"tlsCiphers" doc:"Cipher suites on the binary port by their IANA names, for TLS up to 1.2; empty is the choice of Go's library."`
	WebServiceTLSProtocols               string        `conf:"webServiceTlsProtocols" doc:"tlsProtocols of HTTPS."`
	WebServiceTLSCiphers                 string        `conf:"webServiceTlsCiphers" doc:"tlsCiphers of HTTPS."`

	// Authentication and authorization.
	AuthenticationEnabled               bool          `conf:"authenticationEnabled" default:"false" doc:"Demand credentials."`
	AuthenticationProviders             string        `conf:"authenticationProviders" doc:"Ways to authenticate: AuthenticationProviderToken, AuthenticationProviderTls, AuthenticationProviderBasic, with or without org.apache.pulsar.broker.authentication before it."`
	AuthenticationRefreshCheck          time.Duration `conf:"authenticationRefreshCheckSeconds" unit:"s" default:"60" range:"1,2147483647" doc:"How long before its credentials end a client is asked for fresh ones; a connection ends with them."`
	AuthenticateOriginalAuthData        bool          `conf:"authenticateOriginalAuthData" default:"false" doc:"Check the credentials that a proxy passes on, not only the name."`
	AnonymousUserRole                   string        `conf:"anonymousUserRole" doc:"Role of clients without credentials; empty: they are refused."`
	ProxyRoles                          string        `conf:"proxyRoles" doc:"Roles that must name the client that they speak for; both need the right."`
	TokenSecretKey                      string        `conf:"tokenSecretKey" doc:"Key of tokens signed by HMAC: file:///path, data:;base64,..., a path, or base64; the key itself, at least 32 bytes."`
	TokenPublicKey                      string        `conf:"tokenPublicKey" doc:"Key of tokens signed by RSA or ECDSA, in the same forms, DER or PEM. Not used beside tokenSecretKey."`
	TokenPublicAlg                      string        `conf:"tokenPublicAlg" default:"RS256" oneof:"RS256|RS384|RS512|PS256|PS384|PS512|ES256|ES384|ES512" doc:"Tells the kind of tokenPublicKey: RS and PS are RSA, ES is ECDSA."`
	TokenAuthClaim                      string        `conf:"tokenAuthClaim" doc:"Claim that names the role; empty: sub."`
	TokenAudienceClaim                  string        `conf:"tokenAudienceClaim" doc:"Claim that must hold tokenAudience; empty: none is checked."`
	TokenAudience                       string        `conf:"tokenAudience" doc:"What that claim must be, or have among others."`
	TokenAllowedClockSkew               time.Duration `conf:"tokenAllowedClockSkewSeconds" unit:"s" default:"0" range:"0,86400" doc:"By how much the clock of who issues tokens may differ."`
	BasicAuthConf                       string        `conf:"basicAuthConf" doc:"htpasswd file with bcrypt, MD5 or SHA hashes: a path, file:///path, data:;base64,..., or its content in base64."`
	AuthorizationEnabled                bool          `conf:"authorizationEnabled" default:"false" doc:"Enforce permissions; needs authenticationEnabled."`
	AuthorizationAllowWildcardsMatching bool          `conf:"authorizationAllowWildcardsMatching" default:"false" doc:"A role that is granted something may begin or end with *."`
	SuperUserRoles                      string        `conf:"superUserRoles" doc:"Roles that may do everything, where permissions are enforced."`
	BrokerClientAuthenticationPlugin    string        `conf:"brokerClientAuthenticationPlugin" doc:"How this process authenticates to others that share its etcd cluster: AuthenticationToken, AuthenticationTls or AuthenticationBasic, with or without org.apache.pulsar.client.impl.auth before it. Needed where authenticationEnabled is true."`
	BrokerClientAuthenticationParams    string        `conf:"brokerClientAuthenticationParameters" doc:"Its credentials: token:<token> or file://<path>; tlsCertFile:<path>,tlsKeyFile:<path>; {\"userId\":\"...\",\"password\":\"...\"}."`
	BrokerClientTLSEnabled              bool          `conf:"brokerClientTlsEnabled" default:"false" doc:"Connect over TLS to others that share the etcd cluster."`
	BrokerClientTrustCertsFilePath      string        `conf:"brokerClientTrustCertsFilePath" doc:"Authorities that stand behind their certificates, PEM; empty: those of this host."`
	AuthenticateMetricsEndpoint         bool          `conf:"authenticateMetricsEndpoint" default:"false" doc:"Demand credentials for /metrics, too."`

	// Transactions.
	TransactionCoordinatorEnabled        bool          `conf:"transactionCoordinatorEnabled" default:"true" doc:"Run transaction coordinators. Absent means true, unlike Pulsar; an explicit false is honoured."`
	InitialNumTransactionCoordinators    int           `conf:"initialNumTransactionCoordinators" default:"1" external:"16" range:"1,4096" doc:"Coordinators that a new store gets; no effect on an existing one."`
	MaxActiveTransactionsPerCoordinator  int64         `conf:"maxActiveTransactionsPerCoordinator" default:"0" range:"0," doc:"Transactions of one coordinator that have not ended; 0 is no limit."`
	TooManyTransactionsPause             time.Duration `conf:"tooManyTransactionsPauseMs" unit:"ms" default:"1000" range:"0,3600000" doc:"Wait before a new transaction over that limit is refused, so that clients do not spin."`
	TransactionMaxTTL                    time.Duration `conf:"transactionMaxTtlMs" unit:"ms" default:"604800000" range:"1," doc:"Longest timeout that a transaction may ask for; longer ones are refused, never shortened."`
	TransactionMaxParticipants           int           `conf:"transactionMaxParticipants" default:"10000" range:"1,1000000" doc:"Partitions and subscriptions of one transaction."`
	TransactionMaxParticipantBytes       int           `conf:"transactionMaxParticipantBytes" unit:"bytes" default:"1048576" external:"262144" range:"1024,1073741824" doc:"Bytes of the names of one transaction's participants; with an etcd cluster at most a quarter of etcdMaxRequestBytes."`
	TransactionMaxNamesPerOwner          int           `conf:"transactionMaxNamesPerOwner" default:"10000" range:"1," doc:"Client names that one role may have kept outcomes under, in one coordinator."`
	TransactionEndWait                   time.Duration `conf:"transactionEndWaitMs" unit:"ms" default:"0" range:"0," doc:"An end that takes longer is answered ServiceNotReady and goes on; 0 waits for the end."`
	TransactionLateSendPolicy            string        `conf:"transactionLateSendPolicy" default:"reject" oneof:"reject|drop" doc:"A message that arrives after the end of its transaction is rejected, or dropped with a receipt."`
	TransactionMetaPersistCount          int           `conf:"transactionMetaPersistCount" also:"TransactionMetaPersistCount" default:"1000" range:"0," doc:"Outcomes kept per client name and coordinator (PIP-255 proposes 0); 0 keeps none."`
	TransactionMetaPersistUnnamedCount   int           `conf:"transactionMetaPersistUnnamedCount" default:"10000" range:"0," doc:"Outcomes kept for clients without a name, per role and coordinator; 0 keeps none."`
	TransactionMetaPersistTime           time.Duration `conf:"transactionMetaPersistTimeInHour" also:"TransactionMetaPersistTimeInHour" unit:"h" default:"72" range:"1,2562047788015" doc:"An outcome older than this is forgotten. More than 292 years count as 292 years."`
	TransactionMetaExpireCheckInterval   time.Duration `conf:"transactionMetaExpireCheckIntervalInSecond" also:"TransactionMetaExpireCheckIntervalInSecond" unit:"s" default:"300" range:"1," doc:"Pause between two removals of forgotten outcomes from the store."`
	TransactionMetaPersistMinTime        time.Duration `conf:"transactionMetaPersistMinTimeInSecond" unit:"s" default:"120" range:"0," doc:"The counts above evict no outcome younger than this; 0 turns the protection off."`
	TransactionMetaPersistMaxPerCoord    int           `conf:"transactionMetaPersistMaxPerCoordinator" default:"1000000" range:"1," doc:"Outcomes that one coordinator keeps at most, whatever their age."`
	AllowAutoTopicCreation               bool          `conf:"allowAutoTopicCreation" default:"true" doc:"Topics are created on first use."`
	AllowAutoTopicCreationType           string        `conf:"allowAutoTopicCreationType" default:"non-partitioned" oneof:"non-partitioned|partitioned" doc:"Kind of a topic created on first use."`
	DefaultNumPartitions                 int           `conf:"defaultNumPartitions" default:"1" range:"1,100000" doc:"Partitions of a partitioned topic created on first use; at most 2729, with an etcd cluster a third of etcdMaxTxnOps."`
	AllowAutoSubscriptionCreationEnabled bool          `conf:"allowAutoSubscriptionCreation" default:"true" doc:"Subscriptions are created on first use."`

	// Policies of topics, where neither the topic nor its namespace says otherwise.
	BrokerDeduplicationEnabled          bool          `conf:"brokerDeduplicationEnabled" default:"false" doc:"Deduplicate what producers send again."`
	DeduplicationMaxProducers           int           `conf:"brokerDeduplicationMaxNumberOfProducers" default:"10000" range:"1,1000000" doc:"Producer names that deduplication remembers for a topic; those that are not connected and were used longest ago are forgotten first."`
	DeduplicationInactivityMinutes      int           `conf:"brokerDeduplicationProducerInactivityTimeoutMinutes" unit:"min" default:"360" range:"1,5256000" doc:"How long deduplication remembers a producer name at least that is not connected; at most half as long again."`
	TTLDurationDefault                  time.Duration `conf:"ttlDurationDefaultInSeconds" unit:"s" default:"0" range:"0," doc:"Age at which messages count as acknowledged; 0 is never."`
	DefaultRetentionTimeInMinutes       int           `conf:"defaultRetentionTimeInMinutes" unit:"min" default:"0" range:"-1," doc:"How long acknowledged messages are kept; -1 is for ever."`
	DefaultRetentionSizeInMB            int           `conf:"defaultRetentionSizeInMB" unit:"MiB" default:"0" range:"-1," doc:"How many acknowledged messages a topic keeps; -1 is without limit."`
	BacklogQuotaDefaultLimitBytes       int64         `conf:"backlogQuotaDefaultLimitBytes" unit:"bytes" default:"-1" doc:"Largest backlog of a topic; 0 or less is no limit."`
	BacklogQuotaDefaultLimitSecond      time.Duration `conf:"backlogQuotaDefaultLimitSecond" unit:"s" default:"-1" range:"-2147483648,2147483647" doc:"Greatest age of a backlog; 0 or less is no limit."`
	BacklogQuotaDefaultRetentionPolicy  string        `conf:"backlogQuotaDefaultRetentionPolicy" default:"producer_request_hold" oneof:"producer_request_hold|producer_exception|consumer_backlog_eviction" doc:"What happens beyond these limits."`
	BacklogQuotaCheckEnabled            bool          `conf:"backlogQuotaCheckEnabled" default:"true" doc:"Look at backlogs at all."`
	BacklogQuotaCheckInterval           time.Duration `conf:"backlogQuotaCheckIntervalInSeconds" unit:"s" default:"60" range:"1," doc:"How often backlogs are looked at."`
	MessageExpiryCheckMinutes           int           `conf:"messageExpiryCheckIntervalInMinutes" unit:"min" default:"5" range:"1," doc:"How often expired messages are looked for, at least."`
	SubscriptionExpirationTimeMinutes   int           `conf:"subscriptionExpirationTimeMinutes" unit:"min" default:"0" range:"0," doc:"A subscription without consumers for this long is deleted; 0 is never."`
	BrokerDeleteInactiveTopicsEnabled   bool          `conf:"brokerDeleteInactiveTopicsEnabled" default:"true" doc:"Delete topics that nobody uses and nobody is subscribed to. A topic that has messages stays until retention has deleted them; Pulsar deletes it with them."`
	BrokerDeleteInactiveTopicsMode      string        `conf:"brokerDeleteInactiveTopicsMode" default:"delete_when_no_subscriptions" oneof:"delete_when_no_subscriptions|delete_when_subscriptions_caught_up" doc:"Which of them: the second deletes subscriptions, too, that have no consumers and have acknowledged everything."`
	BrokerDeleteInactiveTopicsFrequency time.Duration `conf:"brokerDeleteInactiveTopicsFrequencySeconds" unit:"s" default:"60" range:"1," doc:"How long a topic is unused before it leaves memory and, with the setting above, is deleted."`
	BrokerDeleteInactiveTopicsMaxAge    time.Duration `conf:"brokerDeleteInactiveTopicsMaxInactiveDurationSeconds" unit:"s" default:"0" range:"0," doc:"How long it is unused before it is deleted; 0 or empty is the setting above."`
	DelayedDeliveryEnabled              bool          `conf:"delayedDeliveryEnabled" default:"true" doc:"Deliver delayed messages when they are due."`
	MaxProducersPerTopic                int           `conf:"maxProducersPerTopic" default:"0" range:"0," doc:"Most producers of a topic; 0 is no limit."`
	MaxConsumersPerTopic                int           `conf:"maxConsumersPerTopic" default:"0" range:"0," doc:"Most consumers of a topic; 0 is no limit."`
	MaxConsumersPerSubscription         int           `conf:"maxConsumersPerSubscription" default:"0" range:"0," doc:"Most consumers of a subscription; 0 is no limit."`
	MaxSubscriptionsPerTopic            int           `conf:"maxSubscriptionsPerTopic" default:"0" range:"0," doc:"Most subscriptions of a topic; 0 is no limit."`
	CompactionThreshold                 int64         `conf:"brokerServiceCompactionThresholdInBytes" unit:"bytes" default:"0" range:"0," doc:"Backlog of a topic's compaction at which it starts by itself; 0 is never."`
	TopicCompactionRetainNullKey        bool          `conf:"topicCompactionRetainNullKey" default:"false" doc:"Compaction keeps messages without a key."`
	SchemaCompatibilityStrategy         string        `conf:"schemaCompatibilityStrategy" default:"FULL" oneof:"UNDEFINED|ALWAYS_INCOMPATIBLE|ALWAYS_COMPATIBLE|BACKWARD|FORWARD|FULL|BACKWARD_TRANSITIVE|FORWARD_TRANSITIVE|FULL_TRANSITIVE" doc:"What a new schema of a topic is held against."`
	SystemTopicSchemaStrategy           string        `conf:"systemTopicSchemaCompatibilityStrategy" default:"ALWAYS_COMPATIBLE" oneof:"UNDEFINED|ALWAYS_INCOMPATIBLE|ALWAYS_COMPATIBLE|BACKWARD|FORWARD|FULL|BACKWARD_TRANSITIVE|FORWARD_TRANSITIVE|FULL_TRANSITIVE" doc:"The same for topics of pulsar/system."`
	IsSchemaValidationEnforced          bool          `conf:"isSchemaValidationEnforced" default:"false" doc:"Refuse producers without a schema on topics that have one."`
	IsAllowAutoUpdateSchemaEnabled      bool          `conf:"isAllowAutoUpdateSchemaEnabled" default:"true" doc:"Producers and consumers add their schema to a topic if it is compatible."`
	SubscriptionPatternEvaluation       bool          `conf:"enableBrokerSideSubscriptionPatternEvaluation" default:"true" doc:"Match the patterns of pattern consumers here, and tell those that watch of topics that come and go."`
	SubscriptionPatternMaxLength        int           `conf:"subscriptionPatternMaxLength" default:"50" range:"0,1000" doc:"Longest pattern that is matched here, in characters; clients match longer ones themselves."`

	// Delivery.
	ActiveConsumerFailoverDelay       time.Duration `conf:"activeConsumerFailoverDelayTimeMillis" unit:"ms" default:"1000" range:"0," doc:"A new active consumer of a Failover subscription is given messages this much later, so that acknowledgements of the one before count."`
	AcknowledgmentAtBatchIndexLevel   bool          `conf:"acknowledgmentAtBatchIndexLevelEnabled" default:"true" doc:"Single messages of a batch can be acknowledged. Pulsar's default is false; in transactions it is always so."`
	DelayedDeliveryTick               time.Duration `conf:"delayedDeliveryTickTimeMillis" unit:"ms" default:"1000" range:"0," doc:"Least time between two looks at what is due."`
	MaxUnackedMessagesPerConsumer     int           `conf:"maxUnackedMessagesPerConsumer" default:"50000" range:"0," doc:"Messages that a consumer of a Shared or Key_Shared subscription has without acknowledging them, before it is given no more until half are left; 0 is no limit."`
	MaxUnackedMessagesPerSubscription int           `conf:"maxUnackedMessagesPerSubscription" default:"200000" range:"0," doc:"The same for all consumers of a subscription together."`
	SubscriptionKeySharedEnable       bool          `conf:"subscriptionKeySharedEnable" default:"true" doc:"Subscriptions of type Key_Shared are allowed."`
	KeySharedUseConsistentHashing     bool          `conf:"subscriptionKeySharedUseConsistentHashing" default:"true" doc:"Keys of Key_Shared go to consumers by a ring of their names; false splits the range of hashes instead."`
	KeySharedReplicaPoints            int           `conf:"subscriptionKeySharedConsistentHashingReplicaPoints" default:"100" range:"1,10000" doc:"Points of each consumer on that ring."`

	// Metrics.
	ExposeTopicLevelMetricsInPrometheus bool `conf:"exposeTopicLevelMetricsInPrometheus" default:"true" doc:"Show metrics of each loaded topic, up to 10000 of them, and not of namespaces."`

	// The store.
	EtcdQuotaBytes          int64         `conf:"etcdQuotaBytes" unit:"bytes" default:"8589934592" range:"67108864," doc:"Bytes that the embedded store may use on disk. Data is refused first, then new transactions; ends go on from a reserve."`
	EtcdTrustCertsFilePath  string        `conf:"etcdTrustCertsFilePath" doc:"Authorities that stand behind the certificates of the etcd cluster, PEM; empty: those of this host."`
	EtcdCertificateFilePath string        `conf:"etcdCertificateFilePath" doc:"Certificate that the etcd cluster is shown, PEM."`
	EtcdKeyFilePath         string        `conf:"etcdKeyFilePath" doc:"The private key of that certificate, PEM. Both are read again for each connection."`
	EtcdUser                string        `conf:"etcdUser" doc:"User of the etcd cluster; it needs to read and write below /pulsar-tc/<clusterName>/."`
	EtcdPassword            string        `conf:"etcdPassword" doc:"Password of that user."`
	CoordinatorLease        time.Duration `conf:"coordinatorLeaseSeconds" unit:"s" default:"6" range:"2,3600" doc:"With an etcd cluster: for how long a process that died keeps its coordinators."`
	CoordinatorGiveUp       time.Duration `conf:"coordinatorGiveUpSeconds" unit:"s" default:"30" range:"0,3600" doc:"With an etcd cluster: for how long a process may fail to load a coordinator or to store for it before it leaves it to another process; 0: it never does."`
	EtcdMaxTxnOps           int           `conf:"etcdMaxTxnOps" default:"128" range:"128,1048576" doc:"Operations that the etcd cluster takes in one transaction: its --max-txn-ops, or less. Tried at the start."`
	EtcdMaxRequestBytes     int           `conf:"etcdMaxRequestBytes" unit:"bytes" default:"1572864" range:"1048576,536870912" doc:"Bytes that it takes in one request: its --max-request-bytes, or less. Tried at the start."`
	EtcdManageStore         bool          `conf:"etcdManageStore" default:"false" doc:"Compact the history of the etcd cluster, and defragment and unlock it when it ran out of space. Only for a cluster that nobody else uses."`
}

// saturatedDuration is n units; what does not fit is the longest duration there is, or its negative.
func saturatedDuration(n int64, unit time.Duration) time.Duration {
	if n > math.MaxInt64/int64(unit) {
		return math.MaxInt64
	}
	if n < -(math.MaxInt64 / int64(unit)) {
		return -math.MaxInt64
	}
	return time.Duration(n) * unit
}
