package topic

import (
	"context"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

// TestUnloadWithSlowStore: an unload does not wait for a store that hangs, and what the store does late is neither lost nor there
// twice when the producer sends again in its transaction.
func TestUnloadWithSlowStore(t *testing.T) {
	w := newWorld(t)
	w.kv.detached = true
	p := w.produceAs("t", "p")
	c := w.subscribe("t", "s", earliest)
	id := w.coord.begin()
	p.send(inTxn(id, message(0, "first")))
	asked, release, applied := make(chan struct{}), make(chan struct{}), make(chan struct{})
	w.kv.set(func(commit func() (*clientv3.TxnResponse, error)) (*clientv3.TxnResponse, error) {
		close(asked)
		<-release
		defer close(applied)
		return commit()
	})
	p.Send(inTxn(id, message(1, "second")))
	happens(t, asked)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := w.topics.Unload(ctx, parse(t, "t")); err != nil {
		t.Fatal(err)
	}
	happens(t, p.disconnected)
	happens(t, c.disconnected)
	if len(p.receipts) != 0 {
		t.Fatal("a receipt for what the store has not answered")
	}
	w.kv.set(nil)
	close(release)
	happens(t, applied)
	p = w.produceAs("t", "p")
	p.Send(inTxn(id, message(1, "second")))
	if r := p.receipt(); r.err != nil {
		t.Fatal(r.err)
	}
	w.end(id, txn.Commit, "t", "")
	w.subscribe("t", "s").want("first", "second")
}

// TestDeletionGivesUp: a deletion that does not wait for a store that hangs leaves the topic as it was.
func TestDeletionGivesUp(t *testing.T) {
	w := newWorld(t)
	p := w.produce("t")
	release := make(chan struct{})
	w.kv.set(func(commit func() (*clientv3.TxnResponse, error)) (*clientv3.TxnResponse, error) {
		<-release
		return commit()
	})
	p.Send(message(0, "first"))
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := w.topics.DeleteTopic(ctx, parse(t, "t"), true); err == nil {
		t.Fatal("deleted while the store hangs")
	}
	close(release)
	if r := p.receipt(); r.err != nil {
		t.Fatal(r.err)
	}
	w.produce("t").send(message(0, "second"))
	w.subscribe("t", "s", earliest).want("first", "second")
}
