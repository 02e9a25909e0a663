package topic

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/keyspace"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// Segments of scalable topics (PIP-473). The tests of this file with a finding's number hold what the review of upstream's
// metadata-driven transaction buffer found missing there.
const (
	leftSegment  = "segment://public/default/orders/0000-7fff-1"
	rightSegment = "segment://public/default/orders/8000-ffff-2"
)

// TestSegmentNamesStayApart: a segment is a topic of its own, and has no partitions.
func TestSegmentNamesStayApart(t *testing.T) {
	w := newWorld(t)
	w.produce(leftSegment).send(message(0, "left"))
	w.produce(rightSegment).send(message(0, "right"))
	w.produce("orders").send(message(0, "topic"))
	w.restart()
	for name, want := range map[string]string{leftSegment: "left", rightSegment: "right", "orders": "topic"} {
		c := w.subscribe(name, "s", earliest)
		c.want(want)
		c.wantNothing(w, name)
	}
	if err := w.topics.CreatePartitioned(context.Background(), parse(t, leftSegment), 3, nil); !errors.Is(err, txn.ErrNotAllowed) {
		t.Errorf("a segment got partitions, %v", err)
	}
	names, err := w.topics.TopicsOfNamespace(context.Background(), "public/default", pulsarproto.CommandGetTopicsOfNamespace_ALL)
	if err != nil || fmt.Sprint(names) != "[persistent://public/default/orders]" {
		t.Errorf("the namespace lists %v, %v", names, err)
	}
}

// Finding 1: the text form of an id in a key is lossless for every pair of halves, so two transactions never meet there.
func TestSegmentIDsRoundTrip(t *testing.T) {
	w := newWorld(t)
	halves := []uint64{0, 1, 1<<63 - 1, 1 << 63, 1<<64 - 1}
	keys := map[string]txn.ID{}
	space := keyspace.New("p", "c").Topic(7)
	for _, most := range halves {
		for _, least := range halves {
			id := txn.ID{Most: most, Least: least}
			key := space.Txn(id)
			if other, taken := keys[key]; taken {
				t.Errorf("%v and %v have one key", id, other)
			}
			keys[key] = id
			if got, ok := space.ParseTxn([]byte(key)); !ok || got != id {
				t.Errorf("%v comes back as %v, %t", id, got, ok)
			}
		}
	}
	w.produce(leftSegment).send(message(0, "m"))
	for _, most := range halves[1:] {
		late := txn.ID{Most: most, Least: 1}
		p := w.produce(leftSegment)
		p.Send(inTxn(late, message(0, "no such coordinator")))
		if r := p.receipt(); !errors.Is(r.err, txn.ErrNotAllowed) {
			t.Errorf("%v: %+v", late, r)
		}
	}
}

// Finding 2: a load that fails leaves nothing behind; the next one begins anew. The package's TestMain finds what runs on.
func TestSegmentLoadFails(t *testing.T) {
	broken := &brokenKV{KV: storeClient.KV}
	w := newWorld(t, func(o *Options) { o.KV = broken })
	id := w.coord.begin()
	w.produce(leftSegment).send(inTxn(id, message(0, "m")))
	w.options.LoadTimeout = 2 * time.Second // for the last load, too, which must succeed
	w.restart()
	broken.failures.Store(1 << 30)
	for range 2 {
		if _, err := w.tryProduce(leftSegment, &pulsarproto.CommandProducer{}); !errors.Is(err, txn.ErrNotReady) {
			t.Fatalf("load that cannot succeed: %v", err)
		}
	}
	if len(w.topics.all()) != 0 || w.topics.loaded(leftSegment) != nil {
		t.Error("a topic that was not loaded is known")
	}
	broken.failures.Store(0)
	w.end(id, txn.Commit, leftSegment, "")
	w.subscribe(leftSegment, "s", earliest).want("m")
}

// Finding 3: what ended transactions left is nothing: neither keys nor memory (promise 7).
func TestSegmentForgetsEndedTransactions(t *testing.T) {
	w := newWorld(t)
	p, c := w.produce(leftSegment), w.subscribe(leftSegment, "s", earliest)
	round := func(n uint64, action txn.Action) {
		id := w.coord.begin()
		p.send(inTxn(id, message(n, "m")))
		w.end(id, action, leftSegment, "")
		if action == txn.Commit {
			c.ack(position(c.next()))
		}
	}
	round(0, txn.Commit)
	round(1, txn.Abort)
	w.quiet(leftSegment)
	topic, space := w.topics.loaded(leftSegment), w.space(leftSegment)
	entries, marks := w.keysUnder(space.EntryPrefix()), w.keysUnder(space.TxnPrefix())
	const rounds = 50
	for n := range uint64(rounds) {
		round(2*n+2, txn.Commit)
		round(2*n+3, txn.Abort)
	}
	w.quiet(leftSegment)
	inTopic(t, topic, func() {
		if n := topic.buffer.Len(); n != 0 {
			t.Errorf("the buffer holds %d transactions", n)
		}
	})
	// Committed entries stay for retention; an aborted one is gone, and so is every mark.
	if got := w.keysUnder(space.EntryPrefix()); got > entries+rounds {
		t.Errorf("%d blocks after %d commits and aborts, %d before", got, rounds, entries)
	}
	if got := w.keysUnder(space.TxnPrefix()); got != marks {
		t.Errorf("%d marks, %d before", got, marks)
	}
}

// inTopic runs check on the topic's goroutine.
func inTopic(t *testing.T, topic *Topic, check func()) {
	t.Helper()
	done := make(chan error, 1)
	topic.ask(func(bool) { check(); done <- nil })
	if err := wait(t, done); err != nil {
		t.Fatal(err)
	}
}

// Finding 4: an end that arrives while the segment is being loaded is applied.
func TestSegmentEndDuringLoad(t *testing.T) {
	for _, action := range []txn.Action{txn.Commit, txn.Abort} {
		gate := &gateKV{KV: storeClient.KV}
		w := newWorld(t, func(o *Options) { o.KV = gate })
		id := w.coord.begin()
		p := w.produce(leftSegment)
		p.send(inTxn(id, message(0, "m")))
		p.send(message(1, "behind"))
		w.restart()
		open := gate.close()
		w.coord.decide(t, id)
		ended := make(chan error, 1)
		go func() { ended <- w.tryEnd(id, action, leftSegment, "") }()
		subscribed := make(chan *testConsumer, 1)
		go func() {
			c, err := w.trySubscribe(leftSegment, "s", earliest)
			if err != nil {
				t.Error(err)
			}
			subscribed <- c
		}()
		open()
		if err := wait(t, ended); err != nil {
			t.Fatal(err)
		}
		c := <-subscribed
		c.Flow(1000)
		if action == txn.Commit {
			c.want("m")
		}
		c.want("behind")
		c.wantNothing(w, leftSegment)
	}
}

// Finding 5: the result of an append that comes late does not open a transaction again that has ended meanwhile.
func TestSegmentLateAppendDoesNotResurrect(t *testing.T) {
	w := newWorld(t)
	p, c := w.produce(leftSegment), w.subscribe(leftSegment, "s", earliest)
	id := w.coord.begin()
	p.send(inTxn(id, message(0, "first")))
	stored, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	w.kv.set(func(commit func() (*clientv3.TxnResponse, error)) (*clientv3.TxnResponse, error) {
		result, err := commit()
		once.Do(func() {
			close(stored)
			<-release
		})
		return result, err
	})
	p.Send(inTxn(id, message(1, "its result comes late")))
	<-stored
	w.coord.decide(t, id)
	ended := make(chan error, 1)
	go func() { ended <- w.tryEnd(id, txn.Abort, leftSegment, "") }()
	close(release)
	if err := wait(t, ended); err != nil {
		t.Fatal(err)
	}
	if r := p.receipt(); r.err != nil {
		t.Fatalf("a send that was stored before the decision: %v", r.err)
	}
	topic := w.topics.loaded(leftSegment)
	inTopic(t, topic, func() {
		if topic.buffer.Get(id) != nil {
			t.Error("the ended transaction is open again")
		}
	})
	p.send(message(2, "plain"))
	c.want("plain")
	c.wantNothing(w, leftSegment)
}

// Finding 6: whether the transaction is open is part of the append: a decision between the check of a send and its write
// refuses the send.
func TestSegmentAppendIsAuthorizedByItself(t *testing.T) {
	w := newWorld(t)
	p, c := w.produce(leftSegment), w.subscribe(leftSegment, "s", earliest)
	id := w.coord.begin()
	p.send(inTxn(id, message(0, "in time")))
	var once sync.Once
	w.kv.set(func(commit func() (*clientv3.TxnResponse, error)) (*clientv3.TxnResponse, error) {
		once.Do(func() { w.coord.decide(t, id) })
		return commit()
	})
	p.Send(inTxn(id, message(1, "behind the decision")))
	if r := p.receipt(); !errors.Is(r.err, txn.ErrNotAllowed) {
		t.Fatalf("a send behind the decision: %+v", r)
	}
	w.kv.set(nil)
	if err := w.tryEnd(id, txn.Commit, leftSegment, ""); err != nil {
		t.Fatal(err)
	}
	c.want("in time")
	c.wantNothing(w, leftSegment)
}

// A sealed segment takes no message any more; a transaction that wrote to it can still be ended, also after a reload, and what is
// committed can be read.
func TestSealedSegment(t *testing.T) {
	for _, restart := range []bool{false, true} {
		for _, action := range []txn.Action{txn.Commit, txn.Abort} {
			w := newWorld(t)
			p := w.produce(leftSegment)
			p.send(message(0, "before"))
			id := w.coord.begin()
			p.send(inTxn(id, message(1, "open when it was sealed")))
			if _, err := w.topics.Terminate(context.Background(), parse(t, leftSegment)); err != nil {
				t.Fatal(err)
			}
			if restart {
				w.restart()
			}
			if _, err := w.tryProduce(leftSegment, &pulsarproto.CommandProducer{}); !errors.Is(err, ErrTopicTerminated) {
				t.Fatalf("a producer of a sealed segment: %v", err)
			}
			c := w.subscribe(leftSegment, "s", earliest)
			c.want("before")
			c.wantNothing(w, leftSegment)
			w.end(id, action, leftSegment, "")
			if action == txn.Commit {
				c.want("open when it was sealed")
			}
			c.wantNothing(w, leftSegment)
			ack := w.coord.begin()
			if err := c.ackIn(ack, w.lastPosition(leftSegment)); action == txn.Commit && err != nil {
				t.Errorf("an acknowledgement on a sealed segment: %v", err)
			}
			w.end(ack, txn.Commit, leftSegment, "s")
		}
	}
}
