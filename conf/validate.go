package conf

import (
	"net"
	"net/url"
)

// checkStore judges metadataStoreUrl beyond its syntax.
func checkStore(config *Config, report *Report, l *loader) {
	if config.MetadataStoreURL == "" {
		return
	}
	endpoints := config.EtcdEndpoints()
	if endpoints == nil {
		report.warn("metadataStoreUrl=%s (%s) is no etcd: the embedded store is used instead",
			config.MetadataStoreURL, report.Origin("metadataStoreUrl"))
		return
	}
	for _, endpoint := range endpoints {
		u, err := url.Parse(endpoint)
		if err == nil && u.Scheme == "http" && u.Host != "" {
			continue
		}
		l.fault(assignment{"metadataStoreUrl", config.MetadataStoreURL, report.Origin("metadataStoreUrl")},
			"must be etcd:http://host:port, further endpoints behind commas")
		return
	}
}

// checkBind warns of a server that others can reach: this version authenticates nobody.
func checkBind(config *Config, report *Report) {
	if config.BindAddress == "localhost" {
		return
	}
	if ip := net.ParseIP(config.BindAddress); ip != nil && ip.IsLoopback() {
		return
	}
	report.warn("bindAddress=%s (%s): without authentication everybody who reaches this address may produce, consume and end transactions",
		config.BindAddress, report.Origin("bindAddress"))
}
