package etcdstore

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/pulsar-tc/pulsar-tc/keyspace"
)

const (
	// Defaults of etcd. Source: server/embed, DefaultMaxTxnOps and DefaultMaxRequestBytes.
	defaultClusterOps      = 128
	defaultClusterBytes    = 3 * mebibyte / 2
	defaultClusterInitials = 16
	defaultPatience        = 5 * time.Second
)

// ClusterOptions say which etcd cluster to use, and how. The zero value of a number means its default.
type ClusterOptions struct {
	// Endpoints are URLs of members, all http or all https. They may be fewer than the cluster has.
	Endpoints []string
	// TrustFile has the authorities that stand behind the members' certificates. Empty: those of this host.
	TrustFile string
	// CertificateFile and KeyFile are what the members are shown, read again for each connection; both or none.
	CertificateFile, KeyFile string
	// User and Password are for a cluster with authentication; both or none.
	User, Password string
	// Space is the key space whose layout version is checked and created.
	Space keyspace.Space
	// InitialCoordinators is the number of transaction coordinators of a space that has none yet. Default 16.
	InitialCoordinators uint64
	// MaxTxnOps is how many operations the members take in one transaction. Default 128.
	MaxTxnOps int
	// MaxRequestBytes is how large a request they take. Default 1.5 MiB.
	MaxRequestBytes int
	// Patience is for how long no member may answer at the start. Default 5 s.
	Patience time.Duration
	// Manage compacts history, and clears alarms for lack of space. Else nothing is done to a cluster that others look after.
	Manage bool
}

func (o ClusterOptions) withDefaults() ClusterOptions {
	if o.InitialCoordinators == 0 {
		o.InitialCoordinators = defaultClusterInitials
	}
	if o.MaxTxnOps == 0 {
		o.MaxTxnOps = defaultClusterOps
	}
	if o.MaxRequestBytes == 0 {
		o.MaxRequestBytes = defaultClusterBytes
	}
	if o.Patience == 0 {
		o.Patience = defaultPatience
	}
	return o
}

// tlsConfig is nil where the endpoints have no TLS. The files are read once now, so that a start tells what is wrong with them.
func (o *ClusterOptions) tlsConfig() (*tls.Config, error) {
	if len(o.Endpoints) == 0 {
		return nil, errors.New("no endpoint of an etcd cluster")
	}
	if !strings.HasPrefix(o.Endpoints[0], "https:") {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.TrustFile != "" {
		content, err := os.ReadFile(o.TrustFile)
		if err != nil {
			return nil, fmt.Errorf("authorities of etcd: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(content) {
			return nil, fmt.Errorf("authorities of etcd: %s holds no certificate in PEM", o.TrustFile)
		}
	}
	if o.CertificateFile == "" {
		return config, nil
	}
	if _, err := o.certificate(); err != nil {
		return nil, err
	}
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return o.certificate() }
	return config, nil
}

func (o *ClusterOptions) certificate() (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(o.CertificateFile, o.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("certificate for etcd, %s and %s: %w", o.CertificateFile, o.KeyFile, err)
	}
	return &pair, nil
}
