package etcdstore_test

import (
	"errors"
	"testing"

	"github.com/rs/zerolog"
	"go.etcd.io/etcd/server/v3/embed"

	"github.com/pulsar-tc/pulsar-tc/etcdstore"
	"github.com/pulsar-tc/pulsar-tc/internal/etcdtest"
	"github.com/pulsar-tc/pulsar-tc/keyspace"
)

var quiet = zerolog.Nop()

func optionsFor(endpoints ...string) etcdstore.ClusterOptions {
	return etcdstore.ClusterOptions{Endpoints: endpoints, Space: etcdtest.Space}
}

func connect(t *testing.T, options etcdstore.ClusterOptions) *etcdstore.Store {
	t.Helper()
	store, err := etcdstore.Connect(t.Context(), options, zerolog.New(zerolog.NewTestWriter(t)))
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return store
}

func connectError(t *testing.T, options etcdstore.ClusterOptions) error {
	t.Helper()
	store, err := etcdstore.Connect(t.Context(), options, quiet)
	if err == nil {
		t.Fatal(errors.Join(errors.New("connected"), store.Close()))
	}
	return err
}

// Several processes share one etcd; the number of coordinators is written once.
func TestConnectTwice(t *testing.T) {
	server := etcdtest.Serve(t, "http", nil)
	first := connect(t, optionsFor(server.Endpoint))
	other := optionsFor(server.Endpoint)
	other.InitialCoordinators = 3
	second := connect(t, other)
	if first.Coordinators() != 16 || second.Coordinators() != 16 {
		t.Errorf("%d and %d coordinators, want 16", first.Coordinators(), second.Coordinators())
	}
	if _, err := first.Client().Put(t.Context(), "key", "value"); err != nil {
		t.Fatal(err)
	}
	if got, err := second.Client().Get(t.Context(), "key"); err != nil || len(got.Kvs) != 1 {
		t.Errorf("%v, %v", got, err)
	}
	if first.MaxTxnOps() != 128 || first.MaxRequestBytes() != 3<<19 || first.Space() != etcdstore.Normal {
		t.Errorf("limits %d, %d; space %s", first.MaxTxnOps(), first.MaxRequestBytes(), first.Space())
	}
	first.Pin(1)()
	first.Wrote(1 << 30)
}

// Two clusters of different names share an etcd and do not meet.
func TestTwoClusterNames(t *testing.T) {
	server := etcdtest.Serve(t, "http", nil)
	connect(t, optionsFor(server.Endpoint))
	other := optionsFor(server.Endpoint)
	other.Space, other.InitialCoordinators = keyspace.New("pulsar-tc", "test2"), 3
	if got := connect(t, other).Coordinators(); got != 3 {
		t.Errorf("%d coordinators, want 3", got)
	}
}

// An etcd with smaller limits than the settings say is refused, with the setting and etcd's flag.
func TestSmallerLimits(t *testing.T) {
	server := etcdtest.Serve(t, "http", func(cfg *embed.Config) { cfg.MaxTxnOps, cfg.MaxRequestBytes = 200, 2<<20 })
	for _, test := range []struct {
		ops, bytes int
		setting    string // empty: taken
	}{
		{200, 2 << 20, ""}, {201, 2 << 20, "etcdMaxTxnOps"}, {200_000, 2 << 20, "etcdMaxTxnOps"}, {200, 2<<20 + 8<<10, "etcdMaxRequestBytes"}, {200, 64 << 20, "etcdMaxRequestBytes"},
	} {
		options := optionsFor(server.Endpoint)
		options.MaxTxnOps, options.MaxRequestBytes = test.ops, test.bytes
		if test.setting == "" {
			connect(t, options)
			continue
		}
		var limit *etcdstore.LimitError
		if err := connectError(t, options); !errors.As(err, &limit) || limit.Setting != test.setting {
			t.Errorf("%d operations, %d bytes: %v", test.ops, test.bytes, err)
		}
	}
}
