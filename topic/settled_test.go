package topic

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// etcdDefaults is an etcd that takes so few operations at once that a group does not store all cursors of a commit.
func etcdDefaults(o *Options) { o.MaxTxnOps = 128 }

// TestDeletedBeforeItIsFolded: one transaction acknowledges on 16 subscriptions, its commit is settled, and some of the
// subscriptions are deleted before the cursors are stored. MaxTxnOps is etcd's default.
func TestDeletedBeforeItIsFolded(t *testing.T) {
	for range 6 { // which cursors a group stores first depends on the order of a map
		deletedBeforeItIsFolded(t)
	}
}

func deletedBeforeItIsFolded(t *testing.T) {
	w := newWorld(t, etcdDefaults)
	at, _ := sendMany(w.produce("in"), 3)
	x := w.coord.begin()
	var all []txn.Participant
	for i := range maxSettled {
		name := fmt.Sprint("s", i)
		c := w.subscribe("in", name, earliest, shared)
		c.want("m0", "m1", "m2")
		if err := c.ackIn(x, at[1]); err != nil {
			t.Fatal(err)
		}
		all = append(all, w.participant("in", name))
	}
	w.settle(x, all...)
	for i := range 10 {
		if err := w.topics.DeleteSubscription(context.Background(), parse(t, "in"), fmt.Sprint("s", i), true); err != nil {
			t.Fatal(err)
		}
	}
	folded := w.topics.loaded(parse(t, "in").String())
	w.until(func() bool { return len(folded.folding.subscriptions) == 0 }, folded)
	w.quiet("in")
	w.restart()
	c, err := w.trySubscribe("in", "s15", shared)
	if err != nil {
		t.Fatal("the topic cannot be loaded any more: ", err)
	}
	c.Flow(10)
	c.wantAny("m0", "m2")
}

// TestCumulativeBehindUnfolded: x acknowledged cumulatively on 16 subscriptions and is committed at once; y does the same
// further on, in a group that has no room to store the cursors of all of them. Crash. What y holds must stay hidden.
func TestCumulativeBehindUnfolded(t *testing.T) {
	w := newWorld(t, etcdDefaults)
	at, _ := sendMany(w.produce("in"), 4)
	x, y := w.coord.begin(), w.coord.begin()
	var all []txn.Participant
	var consumers []*testConsumer
	for i := range maxSettled {
		name := fmt.Sprint("s", i)
		c := w.subscribe("in", name, earliest)
		c.want("m0", "m1", "m2", "m3")
		if err := c.tryAck(ackInTxn(x, ackOf(pulsarproto.CommandAck_Cumulative, at[0]))); err != nil {
			t.Fatal(err)
		}
		all = append(all, w.participant("in", name))
		consumers = append(consumers, c)
	}
	if err := w.coord.add(context.Background(), y, all); err != nil {
		t.Fatal(err)
	}
	w.settle(x, all...)
	writes := 0
	w.kv.set(func(commit func() (*clientv3.TxnResponse, error)) (*clientv3.TxnResponse, error) {
		if writes++; writes > 1 {
			return nil, errInjected
		}
		return commit()
	})
	answers := make(chan error, len(consumers))
	topic := w.topics.loaded(parse(t, "in").String())
	topic.ask(func(bool) {
		for _, c := range consumers {
			c.Consumer.(*consumer).acknowledge(ackInTxn(y, ackOf(pulsarproto.CommandAck_Cumulative, at[2])), func(err error) { answers <- err })
		}
	})
	for range consumers {
		if err := wait(t, answers); err != nil {
			t.Fatal(err)
		}
	}
	w.restart()
	w.kv.set(nil)
	for i := range maxSettled {
		c := w.subscribe("in", fmt.Sprint("s", i))
		if d := c.next(); string(d.Payload) != "m3" {
			t.Errorf("s%d is given %q, which an open transaction holds", i, d.Payload)
		}
	}
}

// TestAnsweredCommitIsSeen: a commit that was answered can be seen, though another write of the topic is in flight.
func TestAnsweredCommitIsSeen(t *testing.T) {
	w := newWorld(t)
	p := w.produceAs("out", "p")
	p.send(message(0, "a"))
	x := w.coord.begin()
	at := p.send(inTxn(x, message(1, "x")))
	r := w.subscribe("out", "r", earliest)
	r.want("a")
	gate := make(chan struct{})
	var held atomic.Bool
	w.kv.set(func(commit func() (*clientv3.TxnResponse, error)) (*clientv3.TxnResponse, error) {
		if held.CompareAndSwap(false, true) {
			<-gate
		}
		return commit()
	})
	p.Send(message(2, "b"))
	eventually(t, "a write is under way", func() bool { return w.writes("out") })
	w.settle(x, w.participant("out", "")) // END is answered with success behind this
	w.posted("out")
	last, _ := r.lastMessageID()
	close(gate)
	p.receipt()
	if last != at {
		t.Errorf("last message id behind the answered commit is %v, want %v", last, at)
	}
}

// TestStaleTopicClosesBehindARefusedCommit: a commit that is refused because the topic was loaded again elsewhere closes the topic, so
// that the commit is not tried with it again and again.
func TestStaleTopicClosesBehindARefusedCommit(t *testing.T) {
	w := newWorld(t)
	p := w.produce("out")
	x := w.coord.begin()
	p.send(inTxn(x, message(0, "m")))
	commit := w.mustPrepare(x, w.participant("out", ""))
	if _, err := storeClient.Put(t.Context(), w.space("out").Owner(), "another"); err != nil {
		t.Fatal(err)
	}
	if err := commit.commit(); !errors.Is(err, txn.ErrFenced) {
		t.Fatalf("commit: %v", err)
	}
	happens(t, p.disconnected)
}

// TestConflictWithWhatWasRefused: an acknowledgement does not conflict with another one of its group that was refused.
func TestConflictWithWhatWasRefused(t *testing.T) {
	w := newWorld(t)
	at := w.produce("in").send(message(0, "m"))
	c := w.subscribe("in", "s", earliest)
	c.want("m")
	ended, open := w.coord.begin(), w.coord.begin()
	if err := w.coord.add(t.Context(), open, []txn.Participant{w.participant("in", "s")}); err != nil {
		t.Fatal(err)
	}
	w.coord.decide(t, ended)
	first, second := make(chan error, 1), make(chan error, 1)
	ack := func(id txn.ID, answer chan error) {
		c.Consumer.(*consumer).acknowledge(ackInTxn(id, ackOf(pulsarproto.CommandAck_Individual, at)), func(err error) { answer <- err })
	}
	w.topics.loaded(parse(t, "in").String()).ask(func(bool) { // so that both are in one group
		ack(ended, first)
		ack(open, second)
	})
	if err := wait(t, first); !errors.Is(err, txn.ErrNotAllowed) {
		t.Errorf("in a transaction that has ended: %v", err)
	}
	if err := wait(t, second); err != nil {
		t.Errorf("in an open transaction: %v", err)
	}
}
