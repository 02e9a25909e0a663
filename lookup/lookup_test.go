package lookup

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

func TestNew(t *testing.T) {
	for _, test := range []struct {
		name    string
		options Options
		want    []string // parts of the error; none: no error
	}{
		{"plain", Options{ServiceURL: "pulsar://localhost:6650"}, nil},
		{"IPv6", Options{ServiceURL: "pulsar://[::1]:6650"}, nil},
		{"TLS only", Options{ServiceURLTLS: "pulsar+ssl://broker.example.com:6651"}, nil},
		{"nothing advertised", Options{}, []string{"no service URL"}},
		{"scheme", Options{ServiceURL: "http://localhost:6650"}, []string{"want pulsar://host:port"}},
		{"no port", Options{ServiceURL: "pulsar://localhost"}, []string{"missing port"}},
		{"no host", Options{ServiceURL: "pulsar://:6650"}, []string{"want pulsar://host:port"}},
		{"both wrong", Options{ServiceURL: "localhost:6650", ServiceURLTLS: "pulsar://localhost:6651"},
			[]string{"localhost:6650", "want pulsar+ssl://host:port"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := New(test.options)
			if (err == nil) != (len(test.want) == 0) {
				t.Fatalf("error %v, want one with %q", err, test.want)
			}
			for _, part := range test.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q lacks %q", err, part)
				}
			}
		})
	}
}

func TestTopic(t *testing.T) {
	broken := errors.New("store is away")
	lookup, err := New(Options{
		ServiceURL:    "pulsar://localhost:6650",
		ServiceURLTLS: "pulsar+ssl://localhost:6651",
		NamespaceExists: func(_ context.Context, namespace string) (bool, error) {
			if namespace == "tenant/broken" {
				return false, broken
			}
			return namespace == "public/default", nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	found := cnx.LookupAnswer{
		ServiceURL:             "pulsar://localhost:6650",
		ServiceURLTLS:          "pulsar+ssl://localhost:6651",
		Authoritative:          true,
		ProxyThroughServiceURL: true,
	}
	for _, name := range []string{
		"persistent://pulsar/system/transaction_coordinator_assign-partition-0", // TC-8: no namespace is asked for
		"persistent://pulsar/system/transaction_coordinator_assign",
		"persistent://public/default/orders",
		"persistent://public/default/orders-partition-3",
	} {
		if answer, err := lookup.Topic(t.Context(), parse(t, name), cnx.Caller{}, nil); err != nil || answer != found {
			t.Errorf("%s: %+v, %v; want %+v", name, answer, err, found)
		}
	}

	_, err = lookup.Topic(t.Context(), parse(t, "persistent://public/missing/orders"), cnx.Caller{}, nil)
	var missing *NamespaceNotFoundError
	if !errors.As(err, &missing) || missing.ServerError() != pulsarproto.ServerError_TopicNotFound ||
		!strings.Contains(err.Error(), "Namespace not found") {
		t.Errorf("missing namespace: error %v", err)
	}
	if _, err = lookup.Topic(t.Context(), parse(t, "persistent://tenant/broken/orders"), cnx.Caller{}, nil); !errors.Is(err, broken) {
		t.Errorf("store away: error %v", err)
	}
}

// Where instances share a store, the owner's addresses are answered, and clients connect there.
func TestOwner(t *testing.T) {
	lookup, err := New(Options{ServiceURL: "pulsar://localhost:6650", Owner: func(_ context.Context, name topicname.Name) (Address, error) {
		if name.Local == "orphan" {
			return Address{}, txn.ErrNotReady
		}
		return Address{"pulsar://other:6650", "pulsar+ssl://other:6651"}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	want := cnx.LookupAnswer{ServiceURL: "pulsar://other:6650", ServiceURLTLS: "pulsar+ssl://other:6651", Authoritative: true}
	if answer, err := lookup.Topic(t.Context(), parse(t, "persistent://public/default/orders"), cnx.Caller{}, nil); err != nil || answer != want {
		t.Errorf("%+v, %v; want %+v", answer, err, want)
	}
	if _, err := lookup.Topic(t.Context(), parse(t, "persistent://public/default/orphan"), cnx.Caller{}, nil); !errors.Is(err, txn.ErrNotReady) {
		t.Errorf("%v, want ServiceNotReady", err)
	}
}

func parse(t *testing.T, text string) topicname.Name {
	t.Helper()
	name, err := topicname.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return name
}
