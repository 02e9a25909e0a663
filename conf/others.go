package conf

import "strings"

// clientPluginPackage is where the classes of brokerClientAuthenticationPlugin are in Pulsar.
const clientPluginPackage = "org.apache.pulsar.client.impl.auth."

// checkOthers finds what would keep the processes that share an etcd cluster from reaching each other. Their settings are taken to be
// those of this one.
func (l *loader) checkOthers(config *Config) {
	plugin := strings.TrimPrefix(config.BrokerClientAuthenticationPlugin, clientPluginPackage)
	if plugin == "AuthenticationDisabled" {
		plugin = ""
	}
	if config.AuthenticationEnabled && config.AnonymousUserRole == "" {
		l.require("brokerClientAuthenticationPlugin", plugin, "must be set where authenticationEnabled is true and processes share an etcd cluster: else they do not let each other in")
	}
	if config.BrokerClientTLSEnabled && config.BrokerServicePortTLS < 0 {
		l.require("brokerServicePortTls", "", "must be set where brokerClientTlsEnabled is true: others connect to that port")
	}
	if !config.BrokerClientTLSEnabled && config.BrokerServicePort < 0 {
		l.require("brokerClientTlsEnabled", "", "must be true where brokerServicePort is off: others have no other port to connect to")
	}
	if plugin != "" && !config.BrokerClientTLSEnabled {
		l.report.warn("brokerClientAuthenticationParameters (%s) go over the network in clear: brokerClientTlsEnabled is false",
			l.report.Origin("brokerClientAuthenticationParameters"))
	}
}
