package server

import (
	"context"
	"strings"
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

// The largest message that clients are told of fits etcd, in a transaction and outside, and is delivered.
func TestLargestMessageOnEtcd(t *testing.T) {
	etcd := etcdtest.Serve(t, "http", nil)
	s := start(t, load(t, "metadataStoreUrl=etcd:"+etcd.Endpoint, "initialNumTransactionCoordinators=1"))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	client := dial(ctx, t, s)
	largest := int(client.Connected().GetMaxMessageSize())
	if largest < 1<<20 || largest > 3<<19 {
		t.Fatalf("messages of up to %d bytes", largest)
	}
	const name = "persistent://public/default/large"
	consumer, err := client.Subscribe(ctx, name, "s")
	if err != nil {
		t.Fatal(err)
	}
	producer, err := client.Produce(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	id, err := client.Begin(ctx, 0, 60_000, "")
	if err != nil {
		t.Fatal(err)
	}
	content := strings.Repeat("x", largest)
	for _, in := range []*txn.ID{nil, &id} {
		if _, err := producer.Send(ctx, content, in); err != nil {
			t.Fatalf("%v: %v", in, err)
		}
	}
	if err := client.End(ctx, id, txn.Commit, ""); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got, err := consumer.Receive(ctx); err != nil || len(got.Content) != largest {
			t.Fatalf("%d bytes, %v", len(got.Content), err)
		}
	}
}
