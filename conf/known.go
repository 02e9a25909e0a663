package conf

import "strings"

// known is a key that matters to a coordinator and that this version does not honour.
type known struct {
	key      string
	harmless string // values that ask for nothing, separated by |; empty always is one
	reason   string
	refuse   bool // any other value stops the start
	secret   bool // the value appears in no output
}

// harmlessValue reports that value asks for nothing that is missing here.
func (k *known) harmlessValue(value string) bool {
	if value == "" {
		return true
	}
	for word := range strings.SplitSeq(k.harmless, "|") {
		if strings.EqualFold(word, value) {
			return true
		}
	}
	return false
}

const (
	superseded     = "superseded by brokerServicePortTls and webServicePortTls"
	pemOnly        = "certificates are read from PEM files: tlsCertificateFilePath, tlsKeyFilePath, tlsTrustCertsFilePath"
	noBrokers      = "other processes on the same etcd are reached with brokerClientTlsEnabled, brokerClientTrustCertsFilePath and brokerClientAuthenticationParameters alone"
	oneKeySet      = "tokens have one set of keys here"
	otherProviders = "belongs to a way to authenticate that is not served"
	javaOnly       = "names a Java class or library; has no meaning here"
	groupCommit    = "every log record is part of a group commit whose size follows the load"
	ownStore       = "the store is etcd; its limits have settings of their own"
	inProcess      = "participants are in this process and have no time limit of their own"
	topicSide      = "this topic keeps its transaction state in the store, without snapshots"
	noSuchLimit    = "HTTP has fixed limits here"
	notCounted     = "not counted here"
	notThrottled   = "nothing is throttled"
	withEntries    = "sequence ids are stored with the entries"
	coarseMetrics  = "metrics end at topics and subscriptions"
)

// notHonoured lists them with their defaults: Pulsar's are those of conf/broker.conf, conf/proxy.conf and
// ServiceConfiguration.java.
var notHonoured = []known{
	{key: "configurationMetadataStoreUrl", reason: ownStore},
	{key: "metadataStoreConfigPath", reason: "the connection to etcd has settings of its own, which begin with etcd"},
	{key: "metadataStoreSessionTimeoutMillis", harmless: "30000", reason: ownStore},
	{key: "metadataStoreOperationTimeoutSeconds", harmless: "30", reason: ownStore},
	{key: "bindAddresses", reason: "this version has one listener"},
	{key: "advertisedListeners", reason: "this version has one listener"},
	{key: "internalListenerName", reason: "this version has one listener"},
	{key: "haProxyProtocolEnabled", harmless: "false", reason: "this version does not read the PROXY header"},
	{key: "numIOThreads", reason: "Go has no network threads to count"},
	{key: "statusFilePath", harmless: "/usr/local/apache/htdocs", reason: "the health answer says whether the coordinators serve"},
	{key: "maxConcurrentTopicLoadRequest", harmless: "5000", reason: "loading a topic replays no history"},
	{key: "clientLibraryVersionCheckEnabled", harmless: "false", reason: "no client library is refused"},
	{key: "brokerServiceURL", reason: "this version reaches no participants in a Pulsar cluster; it would serve topics of its own instead", refuse: true},
	{key: "brokerServiceURLTLS", reason: "this version reaches no participants in a Pulsar cluster; it would serve topics of its own instead", refuse: true},

	{key: "tlsEnabled", harmless: "false", reason: superseded},
	{key: "tlsEnabledInProxy", harmless: "false", reason: superseded},
	{key: "tlsEnabledWithBroker", harmless: "false", reason: noBrokers},
	{key: "tlsHostnameVerificationEnabled", harmless: "false", reason: noBrokers},
	{key: "tlsProvider", reason: javaOnly},
	{key: "tlsEnabledWithKeyStore", harmless: "false", reason: pemOnly, refuse: true},
	{key: "tlsKeyStoreType", harmless: "JKS", reason: pemOnly, refuse: true},
	{key: "tlsKeyStore", reason: pemOnly, refuse: true},
	{key: "tlsKeyStorePassword", reason: pemOnly, refuse: true, secret: true},
	{key: "tlsTrustStoreType", harmless: "JKS", reason: pemOnly, refuse: true},
	{key: "tlsTrustStore", reason: pemOnly, refuse: true},
	{key: "tlsTrustStorePassword", reason: pemOnly, refuse: true, secret: true},
	{key: "sslFactoryPlugin", harmless: "org.apache.pulsar.common.util.DefaultPulsarSslFactory", reason: pemOnly, refuse: true},
	{key: "sslFactoryPluginParams", reason: pemOnly, refuse: true, secret: true},
	{key: "webServiceTlsProvider", harmless: "Conscrypt", reason: javaOnly},
	{key: "brokerClientTlsEnabledWithKeyStore", harmless: "false", reason: noBrokers},
	{key: "brokerClientSslProvider", reason: javaOnly},
	{key: "brokerClientCertificateFilePath", reason: noBrokers},
	{key: "brokerClientKeyFilePath", reason: noBrokers},
	{key: "brokerClientTlsProtocols", reason: noBrokers},
	{key: "brokerClientTlsCiphers", reason: noBrokers},
	{key: "brokerClientTlsKeyStoreType", harmless: "JKS", reason: noBrokers},
	{key: "brokerClientTlsKeyStore", reason: noBrokers},
	{key: "brokerClientTlsKeyStorePassword", reason: noBrokers, secret: true},
	{key: "brokerClientTlsTrustStoreType", harmless: "JKS", reason: noBrokers},
	{key: "brokerClientTlsTrustStore", reason: noBrokers},
	{key: "brokerClientTlsTrustStorePassword", reason: noBrokers, secret: true},
	{key: "brokerClientSslFactoryPlugin", harmless: "org.apache.pulsar.common.util.DefaultPulsarSslFactory", reason: noBrokers},
	{key: "brokerClientSslFactoryPluginParams", reason: noBrokers, secret: true},

	{key: "forwardAuthorizationCredentials", harmless: "false", reason: noBrokers},
	{key: "tokenSettingPrefix", reason: oneKeySet, refuse: true},
	{key: "athenzDomainNames", reason: otherProviders, refuse: true},
	{key: "saslJaasServerRoleTokenSignerSecretPath", reason: otherProviders, refuse: true},
	{key: "authorizationProvider", harmless: "org.apache.pulsar.broker.authorization.PulsarAuthorizationProvider", reason: "permissions are enforced by PulsarAuthorizationProvider's rules alone", refuse: true},

	{key: "transactionMetadataStoreProviderClassName", harmless: "org.apache.pulsar.transaction.coordinator.impl.MLTransactionMetadataStoreProvider", reason: javaOnly},
	{key: "transactionBufferProviderClassName", harmless: "org.apache.pulsar.broker.transaction.buffer.impl.TopicTransactionBufferProvider", reason: javaOnly},
	{key: "transactionPendingAckStoreProviderClassName", harmless: "org.apache.pulsar.broker.transaction.pendingack.impl.MLPendingAckStoreProvider", reason: javaOnly},
	{key: "transactionBufferClientMaxConcurrentRequests", harmless: "1000", reason: inProcess},
	{key: "transactionBufferClientOperationTimeoutInMills", harmless: "3000", reason: inProcess},
	{key: "transactionLogBatchedWriteEnabled", harmless: "false", reason: groupCommit},
	{key: "transactionLogBatchedWriteMaxRecords", harmless: "512", reason: groupCommit},
	{key: "transactionLogBatchedWriteMaxSize", harmless: "4194304", reason: groupCommit},
	{key: "transactionLogBatchedWriteMaxDelayInMillis", harmless: "1", reason: groupCommit},
	{key: "transactionPendingAckBatchedWriteEnabled", harmless: "false", reason: groupCommit},
	{key: "transactionPendingAckBatchedWriteMaxRecords", harmless: "512", reason: groupCommit},
	{key: "transactionPendingAckBatchedWriteMaxSize", harmless: "4194304", reason: groupCommit},
	{key: "transactionPendingAckBatchedWriteMaxDelayInMillis", harmless: "1", reason: groupCommit},
	{key: "transactionPendingAckLogIndexMinLag", harmless: "500", reason: topicSide},
	{key: "transactionBufferSnapshotMaxTransactionCount", harmless: "1000", reason: topicSide},
	{key: "transactionBufferSnapshotMinTimeInMillis", harmless: "5000", reason: topicSide},
	{key: "transactionBufferSegmentedSnapshotEnabled", harmless: "false", reason: topicSide},
	{key: "transactionBufferSnapshotSegmentSize", harmless: "262144", reason: topicSide},
	{key: "numTransactionReplayThreadPoolSize", reason: topicSide},

	{key: "allowAutoTopicCreationWithLegacyNamingScheme", harmless: "true", reason: "names with a cluster part are not served"},
	{key: "systemTopicEnabled", harmless: "true", reason: "the store takes the place of system topics"},
	{key: "topicLevelPoliciesEnabled", harmless: "true", reason: "policies of topics are always in force"},
	{key: "topicsPatternRegexImplementation", harmless: "RE2J_WITH_JDK_FALLBACK", reason: "patterns are RE2 expressions; clients match others themselves"},
	{key: "brokerServiceCompactionMonitorIntervalInSeconds", harmless: "60", reason: "topics are looked at every 30 seconds"},
	{key: "brokerServiceCompactionPhaseOneLoopTimeInSeconds", harmless: "30", reason: "a read of the store has a time of its own"},
	{key: "managedLedgerMaxUnackedRangesToPersist", harmless: "10000", reason: ownStore},
	{key: "managedLedgerMaxEntriesPerLedger", harmless: "50000", reason: ownStore},
	{key: "managedLedgerMinLedgerRolloverTimeMinutes", harmless: "10", reason: ownStore},
	{key: "managedLedgerMaxLedgerRolloverTimeMinutes", harmless: "240", reason: ownStore},
	{key: "managedLedgerDefaultEnsembleSize", harmless: "1|2", reason: ownStore},
	{key: "managedLedgerDefaultWriteQuorum", harmless: "1|2", reason: ownStore},
	{key: "managedLedgerDefaultAckQuorum", harmless: "1|2", reason: ownStore},

	{key: "zookeeperServers", reason: ownStore},
	{key: "globalZookeeperServers", reason: ownStore},
	{key: "configurationStoreServers", reason: ownStore},
	{key: "backlogQuotaDefaultLimitGB", harmless: "-1|-1.0|10", reason: "superseded by backlogQuotaDefaultLimitBytes"},
	{key: "brokerServicePurgeInactiveFrequencyInSeconds", harmless: "60", reason: "superseded by brokerDeleteInactiveTopicsFrequencySeconds"},
	{key: "maxTenants", harmless: "0", reason: notCounted},
	{key: "maxNamespacesPerTenant", harmless: "0", reason: notCounted},
	{key: "maxTopicsPerNamespace", harmless: "0", reason: notCounted},
	{key: "maxUnackedMessagesPerBroker", harmless: "0", reason: notCounted},
	{key: "maxSameAddressProducersPerTopic", harmless: "0", reason: notCounted},
	{key: "maxSameAddressConsumersPerTopic", harmless: "0", reason: notCounted},
	{key: "maxNumPartitionsPerPartitionedTopic", harmless: "0", reason: "a partitioned topic has at most 2729 partitions, with an etcd cluster a third of etcdMaxTxnOps"},
	{key: "brokerPublisherThrottlingMaxMessageRate", harmless: "0", reason: notThrottled},
	{key: "brokerPublisherThrottlingMaxByteRate", harmless: "0", reason: notThrottled},
	{key: "maxPublishRatePerTopicInMessages", harmless: "0", reason: notThrottled},
	{key: "maxPublishRatePerTopicInBytes", harmless: "0", reason: notThrottled},
	{key: "subscribeThrottlingRatePerConsumer", harmless: "0", reason: notThrottled},
	{key: "dispatchThrottlingRateInMsg", harmless: "0", reason: notThrottled},
	{key: "dispatchThrottlingRateInByte", harmless: "0", reason: notThrottled},
	{key: "dispatchThrottlingRatePerTopicInMsg", harmless: "0", reason: notThrottled},
	{key: "dispatchThrottlingRatePerTopicInByte", harmless: "0", reason: notThrottled},
	{key: "dispatchThrottlingRatePerSubscriptionInMsg", harmless: "0", reason: notThrottled},
	{key: "dispatchThrottlingRatePerSubscriptionInByte", harmless: "0", reason: notThrottled},
	{key: "brokerDeduplicationSnapshotFrequencyInSeconds", harmless: "120", reason: withEntries},
	{key: "brokerDeduplicationSnapshotIntervalSeconds", harmless: "120", reason: withEntries},
	{key: "brokerDeduplicationEntriesInterval", harmless: "1000", reason: withEntries},
	{key: "delayedDeliveryMaxDelayInMillis", harmless: "0", reason: "a delay may be as long as a client asks for"},
	{key: "activeConsumerFailoverConsistentHashing", harmless: "false", reason: "the active consumer is chosen by priority, name and partition"},
	{key: "subscriptionTypesEnabled", harmless: "Exclusive,Shared,Failover,Key_Shared|Failover,Shared,Key_Shared,Exclusive", reason: "subscriptionKeySharedEnable turns Key_Shared off; the others are always allowed"},
	{key: "enablePersistentTopics", harmless: "true", reason: "both kinds of topics are served"},
	{key: "enableNonPersistentTopics", harmless: "true", reason: "both kinds of topics are served"},
	{key: "encryptionRequireOnProducer", harmless: "false", reason: "what is encrypted is the client's choice"},
	{key: "entryFilterNames", reason: javaOnly},
	{key: "brokerInterceptors", reason: javaOnly},
	{key: "messagingProtocols", reason: javaOnly},
	{key: "exposeConsumerLevelMetricsInPrometheus", harmless: "false", reason: coarseMetrics},
	{key: "exposeProducerLevelMetricsInPrometheus", harmless: "false", reason: coarseMetrics},
	{key: "metricsServletTimeoutMs", harmless: "30000", reason: noSuchLimit},
	{key: "httpMaxRequestSize", harmless: "-1", reason: noSuchLimit},
	{key: "httpMaxRequestHeaderSize", harmless: "8192", reason: noSuchLimit},
	{key: "httpRequestsLimitEnabled", harmless: "false", reason: noSuchLimit},
	{key: "httpRequestsMaxPerSecond", harmless: "100.0", reason: noSuchLimit},
	{key: "maxHttpServerConnections", harmless: "2048", reason: noSuchLimit},
	{key: "maxConcurrentHttpRequests", harmless: "1024", reason: noSuchLimit},
	{key: "disableHttpDebugMethods", harmless: "false|true", reason: "TRACE and TRACK are always refused"},
}

// notHonouredKeys maps key to its row.
var notHonouredKeys = func() map[string]*known {
	keys := make(map[string]*known, len(notHonoured))
	for i := range notHonoured {
		keys[notHonoured[i].key] = &notHonoured[i]
	}
	return keys
}()
