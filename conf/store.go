package conf

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

const (
	etcdScheme = "etcd:"
	// etcdPort is where etcd listens unless told otherwise.
	etcdPort = "2379"
	// storeKey is the setting that says which store is used.
	storeKey = "metadataStoreUrl"
)

// EtcdEndpoints are the URLs of the etcd cluster that metadataStoreUrl names; nil: the store is embedded.
func (c *Config) EtcdEndpoints() []string {
	endpoints, _ := etcdEndpoints(c.MetadataStoreURL) // Load has refused what has a fault
	return endpoints
}

// etcdEndpoints reads etcd:http://host:port,host:port. A scheme holds for the elements behind it too; all must have the same.
// A value that names no etcd gives nothing.
func etcdEndpoints(value string) ([]string, error) {
	list, is := strings.CutPrefix(value, etcdScheme)
	if !is {
		return nil, nil
	}
	scheme := ""
	var endpoints []string
	for _, element := range List(list) {
		if !strings.Contains(element, "://") {
			element = cmp.Or(scheme, "http") + "://" + element
		}
		parsed, err := url.Parse(element)
		if err != nil {
			return nil, errors.New("must be etcd: and URLs, separated by commas")
		}
		switch {
		case parsed.Scheme != "http" && parsed.Scheme != "https":
			return nil, fmt.Errorf("must name http:// or https:// endpoints, not %s://", parsed.Scheme)
		case scheme != "" && parsed.Scheme != scheme:
			return nil, errors.New("must not mix http:// and https://")
		case parsed.User != nil:
			return nil, errors.New("must not have a user in it: etcdUser and etcdPassword are for that")
		case parsed.Hostname() == "" || strings.Trim(parsed.Path, "/") != "" || parsed.RawQuery != "" || parsed.Fragment != "":
			return nil, errors.New("must have a host and a port in each endpoint, and nothing else")
		case !validPort(parsed.Port()):
			return nil, fmt.Errorf("must not have port %s", parsed.Port())
		}
		scheme = parsed.Scheme
		endpoint := scheme + "://" + net.JoinHostPort(parsed.Hostname(), cmp.Or(parsed.Port(), etcdPort))
		if !slices.Contains(endpoints, endpoint) {
			endpoints = append(endpoints, endpoint)
		}
	}
	if len(endpoints) == 0 {
		return nil, errors.New("must name at least one endpoint, as in etcd:http://host:2379")
	}
	return endpoints, nil
}

func validPort(port string) bool {
	if port == "" {
		return true
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0
}

// external reports whether the store is an etcd cluster. Defaults depend on it, so it is asked before there is a Config.
func (l *loader) external() bool {
	url, given := l.winner(canonicalKeys()[storeKey])
	return given && strings.HasPrefix(url.value, etcdScheme)
}

// checkStore judges metadataStoreUrl and what belongs to it. A ZooKeeper in one of Pulsar's files is passed over with a
// warning, unless the command needs an etcd: a store of its own in its place would split one coordinator into two.
func (l *loader) checkStore(config *Config, needsEtcd bool) {
	origin := l.report.Origin(storeKey)
	endpoints, err := etcdEndpoints(config.MetadataStoreURL)
	switch {
	case err != nil:
		l.fault(assignment{storeKey, config.MetadataStoreURL, origin}, err.Error())
	case endpoints != nil:
		l.checkEtcd(config, endpoints)
	case needsEtcd:
		l.fault(assignment{storeKey, config.MetadataStoreURL, origin}, "must name an etcd cluster, as in etcd:http://host:2379")
	case config.MetadataStoreURL != "":
		l.report.warn("%s=%s (%s) is not used: the store is embedded", storeKey, shown(storeKey, config.MetadataStoreURL), origin)
	}
}

// checkEtcd finds what keeps settings of the connection to etcd from being honoured.
func (l *loader) checkEtcd(config *Config, endpoints []string) {
	tls := strings.HasPrefix(endpoints[0], "https:")
	if strings.Contains(config.ClusterName, "/") {
		l.fault(assignment{"clusterName", config.ClusterName, l.report.Origin("clusterName")},
			"must not have a / in it: its keys would be among those of another cluster on the same etcd")
	}
	for _, file := range []struct{ key, value string }{
		{"etcdTrustCertsFilePath", config.EtcdTrustCertsFilePath}, {"etcdCertificateFilePath", config.EtcdCertificateFilePath},
		{"etcdKeyFilePath", config.EtcdKeyFilePath},
	} {
		if file.value != "" && !tls {
			l.fault(assignment{file.key, file.value, l.report.Origin(file.key)}, "must not be set for endpoints without TLS: metadataStoreUrl has http://")
		}
	}
	if config.EtcdCertificateFilePath != "" || config.EtcdKeyFilePath != "" {
		l.require("etcdCertificateFilePath", config.EtcdCertificateFilePath, "must be set beside etcdKeyFilePath")
		l.require("etcdKeyFilePath", config.EtcdKeyFilePath, "must be set beside etcdCertificateFilePath")
	}
	if config.EtcdUser != "" || config.EtcdPassword != "" {
		l.require("etcdUser", config.EtcdUser, "must be set beside etcdPassword")
		l.require("etcdPassword", config.EtcdPassword, "must be set beside etcdUser")
		if !tls {
			l.report.warn("etcdPassword (%s) goes over the network in clear: metadataStoreUrl has http://", l.report.Origin("etcdPassword"))
		}
	}
	l.checkOthers(config)
	if most := config.EtcdMaxRequestBytes / 4; config.TransactionMaxParticipantBytes > most {
		key := "transactionMaxParticipantBytes"
		l.fault(assignment{key, strconv.Itoa(config.TransactionMaxParticipantBytes), l.report.Origin(key)},
			fmt.Sprintf("must be at most %d, a quarter of etcdMaxRequestBytes", most))
	}
}
