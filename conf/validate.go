package conf

import (
	"net"
	"strings"
)

// checkTransactions warns where a file of Pulsar's, whose default is off, turns off what the product is for.
func checkTransactions(config *Config, report *Report) {
	if !config.TransactionCoordinatorEnabled {
		report.warn("transactionCoordinatorEnabled=false (%s): transactions are off; --set transactionCoordinatorEnabled=true turns them on",
			report.Origin("transactionCoordinatorEnabled"))
	}
}

// checkAdvertised refuses what is no host, because it becomes a part of the URLs that clients are told.
func (l *loader) checkAdvertised(config *Config) {
	host := config.AdvertisedAddress
	if net.ParseIP(host) == nil && strings.ContainsAny(host, " \t:/\\@?#%[],") {
		l.fault(assignment{"advertisedAddress", host, l.report.Origin("advertisedAddress")},
			"must be one host name or IP address, without scheme and port")
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
