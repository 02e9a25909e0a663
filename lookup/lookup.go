package lookup

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topicname"
)

// Options say how clients reach this process and what it serves.
type Options struct {
	// ServiceURL is the advertised address, pulsar://host:port; ServiceURLTLS is pulsar+ssl://host:port. At least one is
	// needed. Clients with TLS use only the latter. Source: broker.conf advertisedAddress, brokerServicePort(Tls).
	ServiceURL    string
	ServiceURLTLS string
	// Owner, if set, finds the process that serves a topic. Nil: this one serves all.
	Owner func(ctx context.Context, name topicname.Name) (Address, error)
	// NamespaceExists reports whether tenant/namespace exists. Nil: all do.
	NamespaceExists func(ctx context.Context, namespace string) (bool, error)
}

// Address is how clients reach a process; see Options.
type Address struct{ ServiceURL, ServiceURLTLS string }

// Lookup answers LOOKUP. It is the Lookup of package conn.
type Lookup struct{ options Options }

// New returns a Lookup, or every fault of options at once.
func New(options Options) (*Lookup, error) {
	var faults []error
	if options.ServiceURL == "" && options.ServiceURLTLS == "" {
		faults = append(faults, errors.New("no service URL is advertised"))
	}
	faults = append(faults, checkURL(options.ServiceURL, "pulsar"), checkURL(options.ServiceURLTLS, "pulsar+ssl"))
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("lookup: %w", err)
	}
	return &Lookup{options: options}, nil
}

// checkURL finds what would keep a client from connecting to address.
func checkURL(address, scheme string) error {
	if address == "" {
		return nil
	}
	parsed, err := url.Parse(address)
	if err != nil {
		return fmt.Errorf("service URL: %w", err)
	}
	host, port, err := net.SplitHostPort(parsed.Host)
	if err != nil {
		return fmt.Errorf("service URL %s: %w", address, err)
	}
	if parsed.Scheme != scheme || host == "" || port == "" {
		return fmt.Errorf("service URL %s: want %s://host:port", address, scheme)
	}
	return nil
}

// Topic answers for every name of an existing namespace, and for every name of pulsar/system, the partitions of the
// assignment topic among them: no right and no topic is needed there (TC-8).
// Errors: *NamespaceNotFoundError, those of NamespaceExists and Owner.
//
// Source: Pulsar 4.0.7 standalone answers Connect, authoritative, for any name in an existing namespace.
func (l *Lookup) Topic(ctx context.Context, name topicname.Name, _ cnx.Caller, _ *pulsarproto.CommandLookupTopic) (cnx.LookupAnswer, error) {
	if err := l.checkNamespace(ctx, name.NamespaceName()); err != nil {
		return cnx.LookupAnswer{}, err
	}
	if l.options.Owner == nil {
		return l.here(), nil
	}
	owner, err := l.options.Owner(ctx, name)
	if err != nil {
		return cnx.LookupAnswer{}, fmt.Errorf("look up %s: %w", name, err)
	}
	return cnx.LookupAnswer{ServiceURL: owner.ServiceURL, ServiceURLTLS: owner.ServiceURLTLS, Authoritative: true}, nil
}

// here tells clients to stay at the address they were given instead of connecting to the advertised one: every address that
// leads here leads to this very process.
//
// Source: Pulsar 4.0.7 standalone.
func (l *Lookup) here() cnx.LookupAnswer {
	return cnx.LookupAnswer{
		ServiceURL: l.options.ServiceURL, ServiceURLTLS: l.options.ServiceURLTLS, Authoritative: true, ProxyThroughServiceURL: true,
	}
}

func (l *Lookup) checkNamespace(ctx context.Context, namespace string) error {
	if namespace == topicname.SystemNamespace || l.options.NamespaceExists == nil {
		return nil
	}
	exists, err := l.options.NamespaceExists(ctx, namespace)
	if err != nil {
		return fmt.Errorf("look up namespace %s: %w", namespace, err)
	}
	if !exists {
		return &NamespaceNotFoundError{Namespace: namespace}
	}
	return nil
}

// NamespaceNotFoundError says that a topic's namespace or tenant does not exist.
type NamespaceNotFoundError struct{ Namespace string }

func (e *NamespaceNotFoundError) Error() string { return "Namespace not found: " + e.Namespace }

// ServerError is the code that Pulsar 4.0.7 answers.
func (e *NamespaceNotFoundError) ServerError() pulsarproto.ServerError {
	return pulsarproto.ServerError_TopicNotFound
}
