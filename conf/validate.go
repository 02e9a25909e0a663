package conf

import (
	"net"
	"strings"
)

// checkStore judges metadataStoreUrl. A ZooKeeper in one of Pulsar's files is passed over with a warning; an etcd was meant for
// us, and a store of its own in its place would split one coordinator into two.
func checkStore(config *Config, report *Report, l *loader) {
	origin := report.Origin("metadataStoreUrl")
	switch {
	case config.MetadataStoreURL == "":
	case strings.HasPrefix(config.MetadataStoreURL, "etcd:"):
		l.fault(assignment{"metadataStoreUrl", config.MetadataStoreURL, origin}, "must not be an etcd: this version has its embedded store only")
	default:
		report.warn("metadataStoreUrl=%s (%s) is not used: the store is embedded", config.MetadataStoreURL, origin)
	}
}

// checkTransactions warns where a file of Pulsar's, whose default is off, turns off what the product is for.
func checkTransactions(config *Config, report *Report) {
	if !config.TransactionCoordinatorEnabled {
		report.warn("transactionCoordinatorEnabled=false (%s): transactions are off; --set transactionCoordinatorEnabled=true turns them on",
			report.Origin("transactionCoordinatorEnabled"))
	}
}

// checkBind warns of a server that others can reach and that asks nobody who he is.
func checkBind(config *Config, report *Report) {
	if config.BindAddress == "localhost" || config.AuthenticationEnabled {
		return
	}
	if ip := net.ParseIP(config.BindAddress); ip != nil && ip.IsLoopback() {
		return
	}
	report.warn("bindAddress=%s (%s): without authentication everybody who reaches this address may produce, consume and end transactions",
		config.BindAddress, report.Origin("bindAddress"))
}
