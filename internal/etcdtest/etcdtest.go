// Package etcdtest opens embedded stores for tests.
package etcdtest

import (
	"testing"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/pulsar-tc/pulsar-tc/etcdstore"
	"github.com/pulsar-tc/pulsar-tc/keyspace"
)

// Space is the key space of test stores.
var Space = keyspace.New("pulsar-tc", "test")

// Open starts a store in a directory of its own and closes it with the test. change, which may be nil, edits its options.
func Open(t testing.TB, change func(*etcdstore.Options)) *etcdstore.Store {
	t.Helper()
	options := etcdstore.Options{Dir: t.TempDir(), Space: Space}
	if change != nil {
		change(&options)
	}
	store, err := etcdstore.Open(t.Context(), options, zerolog.New(zerolog.NewTestWriter(t)))
	if err != nil {
		t.Fatalf("open store: %v", err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Errorf("close store: %v", err)
		}
	})
	return store
}

// IgnoreCluster are the goroutines that members of a cluster leave behind: connections between them that etcd never closes.
// A store of package etcdstore leaves none.
func IgnoreCluster() []goleak.Option {
	return []goleak.Option{
		goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
		goleak.IgnoreAnyFunction("net/http.(*conn).serve"),
		goleak.IgnoreAnyFunction("net/http.(*connReader).backgroundRead"),
	}
}
