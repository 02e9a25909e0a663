package server

import (
	"context"
	"testing"
	"time"

	"github.com/pulsar-tc/pulsar-tc/internal/etcdtest"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// Two servers share an etcd: what one of them began the other ends when the first is gone, and ids go on (promise 5, FC-10).
func TestTwoOnOneEtcd(t *testing.T) {
	etcd := etcdtest.Serve(t, "http", nil)
	set := []string{"metadataStoreUrl=etcd:" + etcd.Endpoint, "initialNumTransactionCoordinators=2"}
	first, err := Start(t.Context(), load(t, set...))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	client := dialTC(ctx, t, first)
	id, err := client.Begin(ctx, 0, 60_000, "")
	if err != nil {
		t.Fatal(err)
	}
	second := start(t, load(t, set...))
	stop(t, first)
	client = dialTC(ctx, t, second)
	later, err := client.Begin(ctx, 0, 60_000, "")
	if err != nil || later.Least <= id.Least {
		t.Fatalf("%s, %v: want an id behind %s", later, err, id)
	}
	if err := client.End(ctx, id, txn.Commit, ""); err != nil {
		t.Error(err)
	}
}

// Clients are told of the messages that the etcd has room for.
func TestMessagesThatFitEtcd(t *testing.T) {
	options := load(t, "metadataStoreUrl=etcd:http://localhost:1")
	if got := options.limits(128, 3<<19).messageSize; got != 3<<19-64<<10-9<<10 {
		t.Errorf("messages of %d bytes", got)
	}
	options = load(t, "maxMessageSize=1000", "metadataStoreUrl=etcd:http://localhost:1")
	if got := options.limits(128, 3<<19).messageSize; got != 1000 {
		t.Errorf("messages of %d bytes, want maxMessageSize", got)
	}
	options = load(t)
	if got := options.limits(maxTxnOps, options.store().MaxRequestBytes()).messageSize; got != 5<<20 {
		t.Errorf("embedded: messages of %d bytes, want maxMessageSize", got)
	}
}
