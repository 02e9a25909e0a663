package topic

import (
	"context"
	"errors"
	"fmt"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// TestAbortDeletes: an abort of many entries takes several groups, leaves no key, and nobody sees any of them meanwhile.
func TestAbortDeletes(t *testing.T) {
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprint("restart=", restart), func(t *testing.T) {
			w := newWorld(t, func(o *Options) { o.MaxTxnOps = 16 })
			p := w.produce("a")
			p.send(message(0, "first"))
			id, other := w.coord.begin(), w.coord.begin()
			p.send(inTxn(other, message(1, "other")))
			for i := range 60 {
				p.send(inTxn(id, message(uint64(i+2), "aborted")))
			}
			p.send(message(100, "plain"))
			if restart {
				w.restart()
			}
			c := w.subscribe("a", "s", earliest)
			c.want("first")
			w.end(other, txn.Commit, "a", "")
			c.want("other")
			groups := 0
			w.kv.set(func(commit func() (*clientv3.TxnResponse, error)) (*clientv3.TxnResponse, error) {
				if len(c.messages) > 0 {
					t.Error("something was delivered before the abort was done")
				}
				groups++
				return commit()
			})
			w.end(id, txn.Abort, "a", "")
			w.kv.set(nil)
			if groups < 60/8 {
				t.Errorf("%d groups for 60 deletes of at most 8", groups)
			}
			c.want("plain")
			c.wantNothing(w, "a")
			space := w.space("a")
			if n := w.keysUnder(space.EntryPrefix()); n != 3 {
				t.Errorf("%d blocks are stored, want 3", n)
			}
			if n := w.keysUnder(space.TxnPrefix()); n != 0 {
				t.Errorf("%d marks are stored, want none", n)
			}
		})
	}
}

// TestPlainMessages holds FC-19.
func TestPlainMessages(t *testing.T) {
	w := newWorld(t)
	p := w.produce("a")
	var want []string
	for i := range 26 {
		want = append(want, fmt.Sprint("m", i))
		p.send(message(uint64(i), want[i]))
	}
	w.subscribe("a", "s", earliest).want(want...)
	w.restart()
	c := w.subscribe("a", "s")
	c.want(want...)
	w.produce("a").send(message(0, "again"))
	c.want("again")

	p = w.produce("b")
	id := w.coord.begin()
	for i := range 10 {
		msg := message(uint64(i), fmt.Sprint("m", i))
		if i == 3 {
			msg = inTxn(id, msg)
		}
		p.send(msg)
	}
	w.restart()
	c = w.subscribe("b", "s", earliest)
	c.want("m0", "m1", "m2")
	c.wantNothing(w, "b")
	w.end(id, txn.Commit, "b", "")
	c.want("m3", "m4", "m5", "m6", "m7", "m8", "m9")
}

// TestContraryEnd holds O-6: what a commit made visible stays, and a contrary end is refused or changes nothing.
func TestContraryEnd(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.MaxTxnOps = 16 })
	p := w.produce("a")
	committed, aborted := w.coord.begin(), w.coord.begin()
	p.send(inTxn(committed, message(0, "c")))
	for i := range 30 {
		p.send(inTxn(aborted, message(uint64(i+1), "a")))
	}
	w.end(committed, txn.Commit, "a", "")
	if err := w.tryEnd(committed, txn.Abort, "a", ""); err != nil {
		t.Fatal(err)
	}
	// Hold the first group of the abort back, so that a commit arrives while it is applied.
	reached, release := make(chan struct{}), make(chan struct{})
	first := true
	w.kv.set(func(commit func() (*clientv3.TxnResponse, error)) (*clientv3.TxnResponse, error) {
		if first {
			first = false
			close(reached)
			<-release
		}
		return commit()
	})
	w.coord.decide(t, aborted)
	participant := txn.Participant{Topic: parse(t, "a").String()}
	abort, commit := make(chan error, 1), make(chan error, 1)
	w.topics.EndTxn(context.Background(), aborted, participant, txn.Abort, 0, func(err error) { abort <- err })
	<-reached
	w.topics.EndTxn(context.Background(), aborted, participant, txn.Commit, 0, func(err error) { commit <- err })
	close(release)
	var status *txn.StatusError
	if err := wait(t, commit); !errors.As(err, &status) {
		t.Fatalf("commit while aborting: %v, want a status error", err)
	}
	if err := wait(t, abort); err != nil {
		t.Fatal(err)
	}
	w.kv.set(nil)
	if err := w.tryEnd(aborted, txn.Commit, "a", ""); err != nil {
		t.Fatal(err)
	}
	c := w.subscribe("a", "s", earliest)
	c.want("c")
	c.wantNothing(w, "a")
}

// TestTxnIDOfTheCommandCounts holds O-7: metadata is not looked at, and it stays so after a reload.
func TestTxnIDOfTheCommandCounts(t *testing.T) {
	w := newWorld(t)
	p := w.produce("a")
	id, other := w.coord.begin(), w.coord.begin()
	foreign := message(0, "plain, metadata says transaction")
	foreign.Metadata = &pulsarproto.MessageMetadata{TxnidMostBits: &other.Most, TxnidLeastBits: &other.Least}
	p.send(foreign)
	p.send(inTxn(id, message(1, "no metadata"))) // as the Go client sends
	differ := inTxn(id, message(2, "metadata differs"))
	differ.Metadata = foreign.Metadata
	p.send(differ)
	p.send(message(3, "behind"))
	w.restart()
	c := w.subscribe("a", "s", earliest)
	c.want("plain, metadata says transaction")
	c.wantNothing(w, "a")
	w.end(other, txn.Abort, "a", "")
	c.wantNothing(w, "a")
	w.end(id, txn.Abort, "a", "")
	c.want("behind")
	w.restart()
	w.subscribe("a", "t", earliest).want("plain, metadata says transaction", "behind")
}

// TestEndWhereNothingIs holds O-10 and O-4: an unloaded topic is loaded, a missing one is not created.
func TestEndWhereNothingIs(t *testing.T) {
	w := newWorld(t)
	id := w.coord.begin()
	w.produce("a").send(inTxn(id, message(0, "m")))
	w.restart()
	w.end(id, txn.Commit, "a", "")
	w.subscribe("a", "s", earliest).want("m")
	before := w.keysUnder(w.keys.Topics())
	for _, participant := range []txn.Participant{
		{Topic: "persistent://public/default/missing"}, {Topic: "persistent://no/such/topic"}, {Topic: "non-persistent://public/default/x"},
		{Topic: "persistent://public/default/a", Subscription: "missing", Kind: txn.AckedSubscription},
		{Topic: "persistent://public/default/missing", Subscription: "s", Kind: txn.AckedSubscription},
		{Topic: "persistent://pulsar/system/transaction_coordinator_assign-partition-0"},
		{Topic: "persistent://public/default/a"},
	} {
		for _, action := range []txn.Action{txn.Commit, txn.Abort} {
			done := make(chan error, 1)
			w.topics.EndTxn(context.Background(), txn.ID{Least: 99}, participant, action, 0, func(err error) { done <- err })
			if err := wait(t, done); err != nil {
				t.Errorf("%v: %v, want success", participant, err)
			}
		}
	}
	if after := w.keysUnder(w.keys.Topics()); after != before {
		t.Errorf("%d keys, want %d: an end created something", after, before)
	}
	done := make(chan error, 1)
	w.topics.EndTxn(context.Background(), id, txn.Participant{Topic: "foo://x"}, txn.Commit, 0, func(err error) { done <- err })
	if err := wait(t, done); !errors.Is(err, txn.ErrInvalidTopicName) {
		t.Errorf("invalid name: %v", err)
	}
}

// TestResentInTransaction: what a producer sends again behind a reconnect is stored once, also over a restart; sequence ids
// that only an aborted transaction used are free; ids set out of order by the application are all stored.
func TestResentInTransaction(t *testing.T) {
	w := newWorld(t)
	id := w.coord.begin()
	p := w.produceAs("a", "p")
	p.send(inTxn(id, message(5, "five")))
	p.send(inTxn(id, message(3, "three, out of order")))
	p.Close()
	for range 2 {
		p = w.produceAs("a", "p")
		if p.info.LastSequenceID != 5 {
			t.Fatalf("last sequence id %d, want 5", p.info.LastSequenceID)
		}
		if at := p.send(inTxn(id, message(5, "five"))); at.Ledger != none {
			t.Fatalf("resent and stored at %v", at)
		}
		w.restart()
	}
	p = w.produceAs("a", "p")
	p.send(inTxn(id, message(6, "six")))
	w.end(id, txn.Abort, "a", "")
	p.Close()
	p = w.produceAs("a", "p")
	if p.info.LastSequenceID != -1 {
		t.Fatalf("last sequence id %d after the abort, want -1", p.info.LastSequenceID)
	}
	id = w.coord.begin()
	p.send(inTxn(id, message(5, "five again")))
	w.end(id, txn.Commit, "a", "")
	w.subscribe("a", "s", earliest).want("five again")
}

// TestEndOfBoth: the ends of one transaction on a topic and on its subscription arrive together, in either order.
func TestEndOfBoth(t *testing.T) {
	for _, action := range []txn.Action{txn.Commit, txn.Abort} {
		for _, topicFirst := range []bool{false, true} {
			w := newWorld(t)
			p := w.produce("a")
			c := w.subscribe("a", "s", shared)
			at := p.send(message(0, "in"))
			c.want("in")
			id := w.coord.begin()
			if err := c.ackIn(id, at); err != nil {
				t.Fatal(err)
			}
			p.send(inTxn(id, message(1, "out")))
			w.coord.decide(t, id)
			on := []txn.Participant{{Topic: parse(t, "a").String(), Subscription: "s", Kind: txn.AckedSubscription}, {Topic: parse(t, "a").String()}}
			if topicFirst {
				on[0], on[1] = on[1], on[0]
			}
			done := make(chan error, 2)
			loaded := w.topics.loaded(parse(t, "a").String())
			loaded.ask(func(bool) { // so that both wait when the group is made
				for _, participant := range on {
					w.topics.EndTxn(context.Background(), id, participant, action, 0, func(err error) { done <- err })
				}
			})
			for range on {
				if err := wait(t, done); err != nil {
					t.Fatal(err)
				}
			}
			want := []string{"in"}
			if action == txn.Commit {
				want = []string{"out"}
			}
			c.want(want...)
			if s := w.topics.Stats(context.Background())[0]; s.PendingAckEntries != 0 || s.TransactionsOpen != 0 {
				t.Fatalf("%v: left behind: %+v", action, s)
			}
			if n := w.keysUnder(loaded.keys.TxnPrefix()) + w.keysUnder(loaded.keys.Subscription(0).PendingPrefix(id)); n != 0 {
				t.Fatalf("%v: %d keys of the transaction are left", action, n)
			}
			w.restart()
			w.subscribe("a", "s", shared).want(want...)
		}
	}
}
