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
	noTLS            = "this version speaks no TLS"
	noAuthentication = "this version authenticates nobody"
	noAuthorization  = "this version enforces no permissions"
	javaOnly         = "names a Java class or library; has no meaning here"
	groupCommit      = "every log record is part of a group commit whose size follows the load"
	ownStore         = "the store is etcd; its limits have settings of their own"
	noExternal       = "this version has its embedded store only"
	inProcess        = "participants are in this process and have no time limit of their own"
	topicSide        = "this topic keeps its transaction state in the store, without snapshots"
	noSuchLimit      = "HTTP has fixed limits here"
)

// notHonoured lists them with their defaults: Pulsar's are those of conf/broker.conf, conf/proxy.conf and
// ServiceConfiguration.java.
var notHonoured = []known{
	{key: "configurationMetadataStoreUrl", reason: ownStore},
	{key: "metadataStoreConfigPath", reason: ownStore},
	{key: "metadataStoreSessionTimeoutMillis", harmless: "30000", reason: ownStore},
	{key: "metadataStoreOperationTimeoutSeconds", harmless: "30", reason: ownStore},
	{key: "coordinatorLeaseSeconds", harmless: "6", reason: noExternal},
	{key: "etcdMaxTxnOps", harmless: "128", reason: noExternal},
	{key: "etcdMaxRequestBytes", harmless: "1572864", reason: noExternal},
	{key: "etcdManageStore", harmless: "false", reason: noExternal},
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

	{key: "brokerServicePortTls", reason: noTLS, refuse: true},
	{key: "webServicePortTls", reason: noTLS, refuse: true},
	{key: "servicePortTls", reason: noTLS, refuse: true},
	{key: "tlsEnabled", harmless: "false", reason: noTLS, refuse: true},
	{key: "tlsEnabledInProxy", harmless: "false", reason: noTLS, refuse: true},
	{key: "tlsEnabledWithBroker", harmless: "false", reason: noTLS, refuse: true},
	{key: "tlsCertificateFilePath", reason: noTLS, refuse: true},
	{key: "tlsKeyFilePath", reason: noTLS, refuse: true},
	{key: "tlsTrustCertsFilePath", reason: noTLS, refuse: true},
	{key: "tlsAllowInsecureConnection", harmless: "false", reason: noTLS, refuse: true},
	{key: "tlsRequireTrustedClientCertOnConnect", harmless: "false", reason: noTLS, refuse: true},
	{key: "tlsHostnameVerificationEnabled", harmless: "false", reason: noTLS, refuse: true},
	{key: "tlsProtocols", reason: noTLS, refuse: true},
	{key: "tlsCiphers", reason: noTLS, refuse: true},
	{key: "tlsCertRefreshCheckDurationSec", harmless: "300", reason: noTLS, refuse: true},
	{key: "tlsProvider", reason: javaOnly},
	{key: "tlsEnabledWithKeyStore", harmless: "false", reason: noTLS, refuse: true},
	{key: "tlsKeyStoreType", harmless: "JKS", reason: noTLS, refuse: true},
	{key: "tlsKeyStore", reason: noTLS, refuse: true},
	{key: "tlsKeyStorePassword", reason: noTLS, refuse: true, secret: true},
	{key: "tlsTrustStoreType", harmless: "JKS", reason: noTLS, refuse: true},
	{key: "tlsTrustStore", reason: noTLS, refuse: true},
	{key: "tlsTrustStorePassword", reason: noTLS, refuse: true, secret: true},
	{key: "sslFactoryPlugin", harmless: "org.apache.pulsar.common.util.DefaultPulsarSslFactory", reason: noTLS, refuse: true},
	{key: "sslFactoryPluginParams", reason: noTLS, refuse: true, secret: true},
	{key: "webServiceTlsProtocols", reason: noTLS, refuse: true},
	{key: "webServiceTlsCiphers", reason: noTLS, refuse: true},
	{key: "webServiceTlsProvider", harmless: "Conscrypt", reason: javaOnly},
	{key: "brokerClientTlsEnabled", harmless: "false", reason: noTLS, refuse: true},
	{key: "brokerClientTlsEnabledWithKeyStore", harmless: "false", reason: noTLS, refuse: true},
	{key: "brokerClientSslProvider", reason: javaOnly},
	{key: "brokerClientTrustCertsFilePath", reason: noTLS, refuse: true},
	{key: "brokerClientCertificateFilePath", reason: noTLS, refuse: true},
	{key: "brokerClientKeyFilePath", reason: noTLS, refuse: true},
	{key: "brokerClientTlsProtocols", reason: noTLS, refuse: true},
	{key: "brokerClientTlsCiphers", reason: noTLS, refuse: true},
	{key: "brokerClientTlsKeyStoreType", harmless: "JKS", reason: noTLS, refuse: true},
	{key: "brokerClientTlsKeyStore", reason: noTLS, refuse: true},
	{key: "brokerClientTlsKeyStorePassword", reason: noTLS, refuse: true, secret: true},
	{key: "brokerClientTlsTrustStoreType", harmless: "JKS", reason: noTLS, refuse: true},
	{key: "brokerClientTlsTrustStore", reason: noTLS, refuse: true},
	{key: "brokerClientTlsTrustStorePassword", reason: noTLS, refuse: true, secret: true},
	{key: "brokerClientSslFactoryPlugin", harmless: "org.apache.pulsar.common.util.DefaultPulsarSslFactory", reason: noTLS, refuse: true},
	{key: "brokerClientSslFactoryPluginParams", reason: noTLS, refuse: true, secret: true},

	{key: "authenticationEnabled", harmless: "false", reason: noAuthentication, refuse: true},
	{key: "authenticationProviders", reason: noAuthentication, refuse: true},
	{key: "authenticationRefreshCheckSeconds", harmless: "60", reason: noAuthentication, refuse: true},
	{key: "authenticateOriginalAuthData", harmless: "false", reason: noAuthentication, refuse: true},
	{key: "forwardAuthorizationCredentials", harmless: "false", reason: noAuthentication, refuse: true},
	{key: "anonymousUserRole", reason: noAuthentication, refuse: true},
	{key: "proxyRoles", reason: noAuthentication, refuse: true},
	{key: "tokenSecretKey", reason: noAuthentication, refuse: true, secret: true},
	{key: "tokenPublicKey", reason: noAuthentication, refuse: true},
	{key: "tokenAuthClaim", reason: noAuthentication, refuse: true},
	{key: "tokenAudienceClaim", reason: noAuthentication, refuse: true},
	{key: "tokenAudience", reason: noAuthentication, refuse: true},
	{key: "basicAuthConf", reason: noAuthentication, refuse: true, secret: true},
	{key: "athenzDomainNames", reason: noAuthentication, refuse: true},
	{key: "saslJaasServerRoleTokenSignerSecretPath", reason: noAuthentication, refuse: true},
	{key: "brokerClientAuthenticationPlugin", harmless: "org.apache.pulsar.client.impl.auth.AuthenticationDisabled", reason: noAuthentication, refuse: true},
	{key: "brokerClientAuthenticationParameters", reason: noAuthentication, refuse: true, secret: true},
	{key: "authorizationEnabled", harmless: "false", reason: noAuthorization, refuse: true},
	{key: "authorizationProvider", harmless: "org.apache.pulsar.broker.authorization.PulsarAuthorizationProvider", reason: noAuthorization, refuse: true},
	{key: "authorizationAllowWildcardsMatching", harmless: "false", reason: noAuthorization, refuse: true},
	{key: "superUserRoles", reason: noAuthorization, refuse: true},
	// The proxy's file has true; Pulsar too lets everybody read the metrics while authentication is off.
	{key: "authenticateMetricsEndpoint", harmless: "false", reason: "without authentication the metrics are open to whoever reaches the port"},

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
	{key: "systemTopicSchemaCompatibilityStrategy", harmless: "ALWAYS_COMPATIBLE", reason: "the store takes the place of system topics"},
	{key: "brokerServiceCompactionMonitorIntervalInSeconds", harmless: "60", reason: "this version compacts no topics"},
	{key: "brokerServiceCompactionPhaseOneLoopTimeInSeconds", harmless: "30", reason: "this version compacts no topics"},
	{key: "topicCompactionRetainNullKey", harmless: "false|true", reason: "this version compacts no topics"},
	{key: "managedLedgerMaxUnackedRangesToPersist", harmless: "10000", reason: ownStore},
	{key: "managedLedgerMaxEntriesPerLedger", harmless: "50000", reason: ownStore},
	{key: "managedLedgerMinLedgerRolloverTimeMinutes", harmless: "10", reason: ownStore},
	{key: "managedLedgerMaxLedgerRolloverTimeMinutes", harmless: "240", reason: ownStore},
	{key: "managedLedgerDefaultEnsembleSize", harmless: "1|2", reason: ownStore},
	{key: "managedLedgerDefaultWriteQuorum", harmless: "1|2", reason: ownStore},
	{key: "managedLedgerDefaultAckQuorum", harmless: "1|2", reason: ownStore},

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
