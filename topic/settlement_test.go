package topic

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// settlementWorld has topic "out" with a message of x, and topic "in" whose subscription "s" holds its first message for x.
func settlementWorld(t *testing.T, change ...func(*Options)) (w *world, x txn.ID, all []txn.Participant, p *testProducer, c *testConsumer) {
	t.Helper()
	w = newWorld(t, change...)
	at, _ := sendMany(w.produce("in"), 3)
	c = w.subscribe("in", "s", earliest, shared)
	c.want("m0", "m1", "m2")
	x = w.coord.begin()
	p = w.produceAs("out", "p")
	p.send(inTxn(x, message(0, "x")))
	if err := c.ackIn(x, at[0]); err != nil {
		t.Fatal(err)
	}
	return w, x, []txn.Participant{w.participant("out", ""), w.participant("in", "s")}, p, c
}

// wantCommitted demands that x of settlementWorld is committed, and is so behind a restart.
func wantCommitted(t *testing.T, w *world) {
	t.Helper()
	for _, when := range []string{"", "restart", "fold and restart"} {
		if when == "fold and restart" {
			eventually(t, "what made the commit durable is gone", func() bool { return w.pendingKeys("in") == 0 })
		}
		if when != "" {
			w.restart()
		}
		r := w.subscribe("out", "reader", nonDurable, earliest)
		r.want("x")
		r.Close()
		w.dropConsumers("in", "s")
		c := w.subscribe("in", "s", shared)
		c.wantAny("m1", "m2")
		c.wantNothing(w, "in")
		if n := w.keysUnder(w.space("out").TxnPrefix()); n != 0 {
			t.Fatalf("%s: %d marks are left", when, n)
		}
	}
}

// TestSettledCommit: a commit that a coordinator makes durable is done on all topics when these have heard of it, and stays so.
func TestSettledCommit(t *testing.T) {
	w, x, all, p, _ := settlementWorld(t)
	r := w.subscribe("out", "r", earliest)
	r.wantNothing(w, "out")
	w.settle(x, all...)
	r.want("x")
	p.Close()
	if last := w.produceAs("out", "p").info.LastSequenceID; last != -1 {
		t.Errorf("last sequence id %d, of a transaction that has ended", last)
	}
	if w.pendingKeys("in") == 0 {
		t.Fatal("the cursor is stored at once, not with a later write")
	}
	for _, subscription := range []string{"", "s"} {
		if err := w.tryEnd(x, txn.Commit, "in", subscription); err != nil {
			t.Fatalf("end again: %v", err)
		}
	}
	wantCommitted(t, w)
}

// TestCumulativeSettledCommit: another transaction may hold the subscription as soon as the commit is answered.
func TestCumulativeSettledCommit(t *testing.T) {
	w := newWorld(t)
	at, _ := sendMany(w.produce("in"), 4)
	c := w.subscribe("in", "s", earliest)
	c.want("m0", "m1", "m2", "m3")
	for i := range 2 {
		x := w.coord.begin()
		if err := c.tryAck(ackInTxn(x, ackOf(pulsarproto.CommandAck_Cumulative, at[1+i]))); err != nil {
			t.Fatal(err)
		}
		w.settle(x, w.participant("in", "s"))
	}
	w.restart()
	w.subscribe("in", "s").want("m3")
}

// TestSettledCommitOfUnknownFate: the topics close, and the next load tells. What the store applies later it refuses.
func TestSettledCommitOfUnknownFate(t *testing.T) {
	t.Run("applied", func(t *testing.T) {
		w, x, all, p, c := settlementWorld(t)
		commit := w.mustPrepare(x, all...)
		if err := commit.write(); err != nil {
			t.Fatal(err)
		}
		commit.settled(fmt.Errorf("%w: lost", txn.ErrUnknownResult))
		happens(t, p.disconnected)
		happens(t, c.disconnected)
		wantCommitted(t, w)
	})
	t.Run("late", func(t *testing.T) {
		w, x, all, p, c := settlementWorld(t)
		commit := w.mustPrepare(x, all...)
		commit.settled(fmt.Errorf("%w: lost", txn.ErrUnknownResult))
		happens(t, p.disconnected)
		happens(t, c.disconnected)
		w.subscribe("out", "r", earliest).wantNothing(w, "out")
		if err := commit.write(); !errors.Is(err, txn.ErrFenced) {
			t.Fatalf("behind the next load of one of the topics: %v", err)
		}
		w.end(x, txn.Abort, "out", "")
		w.end(x, txn.Abort, "in", "s")
		w.subscribe("in", "s", shared).wantAny("m0", "m1", "m2")
	})
}

// TestRefusedSettlement: nothing has happened, and the transaction goes on.
func TestRefusedSettlement(t *testing.T) {
	w, x, all, p, _ := settlementWorld(t)
	commit := w.mustPrepare(x, all...)
	p.Send(inTxn(x, message(1, "y")))
	stillWaits(t, w, "out", "a receipt", p.receipts)
	commit.settled(txn.ErrFenced)
	if r := p.receipt(); r.err != nil {
		t.Fatal(r.err)
	}
	w.settle(x, all...)
	w.subscribe("out", "r", earliest).want("x", "y")
}

// TestNothingIsWrittenBesideASettlement: while a commit is being settled nothing of its transaction is written, and what came in
// between is behind the end then.
func TestNothingIsWrittenBesideASettlement(t *testing.T) {
	w, x, all, p, c := settlementWorld(t)
	commit := w.mustPrepare(x, all...)
	p.Send(inTxn(x, message(1, "late")))
	acked, ended := make(chan error, 1), make(chan error, 1)
	c.Ack(ackInTxn(x, ackOf(pulsarproto.CommandAck_Individual, w.lastPosition("in"))), func(err error) { acked <- err })
	w.topics.EndTxn(context.Background(), x, all[1], txn.Abort, 0, func(err error) { ended <- err })
	stillWaits(t, w, "out", "a receipt", p.receipts)
	stillWaits(t, w, "in", "an answer to an acknowledgement", acked)
	stillWaits(t, w, "in", "an answer to an end", ended)
	if err := commit.commit(); err != nil {
		t.Fatal(err)
	}
	if r := p.receipt(); !errors.Is(r.err, txn.ErrNotAllowed) {
		t.Fatalf("a send behind the commit: %+v", r)
	}
	if err := wait(t, acked); !errors.Is(err, txn.ErrNotAllowed) {
		t.Fatalf("an acknowledgement behind the commit: %v", err)
	}
	if err := wait(t, ended); err != nil {
		t.Fatalf("an abort of what is gone: %v", err)
	}
	wantCommitted(t, w)
}

// TestNoSettlementBesideAWrite: while the topic writes about a transaction, its commit has to be driven.
func TestNoSettlementBesideAWrite(t *testing.T) {
	end := func(action txn.Action, name, subscription string) func(*world, txn.ID) {
		return func(w *world, x txn.ID) {
			w.topics.EndTxn(context.Background(), x, w.participant(name, subscription), action, 0, func(error) {})
		}
	}
	for name, write := range map[string]func(w *world, x txn.ID){
		"send":                     nil,
		"acknowledgement":          nil,
		"abort":                    end(txn.Abort, "out", ""),
		"commit":                   end(txn.Commit, "out", ""),
		"abort on a subscription":  end(txn.Abort, "in", "s"),
		"commit on a subscription": end(txn.Commit, "in", "s"),
	} {
		t.Run(name, func(t *testing.T) {
			w, x, all, p, c := settlementWorld(t)
			last := w.lastPosition("in")
			switch name {
			case "send":
				write = func(_ *world, x txn.ID) { p.Send(inTxn(x, message(1, "y"))) }
			case "acknowledgement":
				write = func(_ *world, x txn.ID) {
					c.Ack(ackInTxn(x, ackOf(pulsarproto.CommandAck_Individual, last)), func(error) {})
				}
			}
			other := w.coord.begin()
			p.send(inTxn(other, message(10, "other")))
			release := w.hold()
			write(w, x)
			eventually(t, "a write is under way", func() bool { return w.writes("in") || w.writes("out") })
			w.unsettled("beside the write", x, all...)
			commit := w.mustPrepare(other, w.participant("out", ""))
			release()
			w.quiet("in")
			w.quiet("out")
			if err := commit.commit(); err != nil {
				t.Fatal(err)
			}
			w.settle(x, all...)
		})
	}
}

// writes reports whether a loaded topic has a write in flight.
func (w *world) writes(name string) bool {
	w.t.Helper()
	t, answer := w.topics.loaded(parse(w.t, name).String()), make(chan bool, 1)
	t.ask(func(bool) { answer <- t.writing != nil })
	return <-answer
}

// TestLongAbortIsNotSettled: an abort takes several writes, and between them its transaction is not free.
func TestLongAbortIsNotSettled(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.MaxTxnOps = 24 })
	p, x := w.produceAs("a", "p"), w.coord.begin()
	for i := range 40 {
		p.send(inTxn(x, message(uint64(i), "m")))
	}
	writes := 0
	w.kv.set(func(commit func() (*clientv3.TxnResponse, error)) (*clientv3.TxnResponse, error) {
		writes++
		w.unsettled(fmt.Sprintf("write %d of an abort", writes), x, w.participant("a", ""))
		return commit()
	})
	if err := w.tryEnd(x, txn.Abort, "a", ""); err != nil {
		t.Fatal(err)
	}
	w.kv.set(nil)
	if writes < 3 {
		t.Fatalf("the abort is %d writes", writes)
	}
	w.settle(x, w.participant("a", ""))
}

// TestLongCommitIsNotSettled: what a commit acknowledges can take several writes, too.
func TestLongCommitIsNotSettled(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.MaxTxnOps = 24 })
	p, x := w.produce("in"), w.coord.begin()
	c := w.subscribe("in", "s", earliest, shared)
	for i := range 40 {
		at := p.send(batchOf(2, message(uint64(2*i), "b")))
		c.want("b")
		if err := c.tryAck(ackInTxn(x, partOf(individual, at, 1))); err != nil {
			t.Fatal(err)
		}
	}
	writes := 0
	w.kv.set(func(commit func() (*clientv3.TxnResponse, error)) (*clientv3.TxnResponse, error) {
		writes++
		w.unsettled(fmt.Sprintf("write %d of a commit", writes), x, w.participant("in", "s"))
		return commit()
	})
	if err := w.tryEnd(x, txn.Commit, "in", "s"); err != nil {
		t.Fatal(err)
	}
	w.kv.set(nil)
	if writes < 3 {
		t.Fatalf("the commit is %d writes", writes)
	}
}

// TestWhatIsNotSettled: commits that need more than one write of keys, or something that is not here.
func TestWhatIsNotSettled(t *testing.T) {
	w, x, all, _, _ := settlementWorld(t)
	w.subscribe("in", "reader", nonDurable, earliest)
	for what, participants := range map[string][]txn.Participant{
		"a topic that is not loaded":     append([]txn.Participant{w.participant("none", "")}, all...),
		"a subscription that is not":     append([]txn.Participant{w.participant("in", "none")}, all...),
		"a subscription without storage": {w.participant("in", "reader")},
		"too many participants":          append(make([]txn.Participant, maxSettled), all...),
	} {
		w.unsettled(what, x, participants...)
	}
	w.settle(x, all...)

	d := newWorld(t, deduplicating)
	y := d.coord.begin()
	d.produceAs("a", "p").send(inTxn(y, message(0, "m")))
	d.unsettled("a topic that deduplicates", y, d.participant("a", ""))
	d.end(y, txn.Commit, "a", "")
	d.produceAs("a", "q").send(message(0, "m"))
	p, err := d.tryProduce("a", &pulsarproto.CommandProducer{ProducerName: ptr("p")})
	if !errors.Is(err, ErrProducerBusy) {
		t.Fatalf("%v, %v", p, err)
	}
}

// TestOneSettlementOfATransaction at a time.
func TestOneSettlementOfATransaction(t *testing.T) {
	w, x, all, _, _ := settlementWorld(t)
	commit := w.mustPrepare(x, all...)
	w.unsettled("a second time", x, all...)
	commit.settled(txn.ErrFenced)
	w.posted("in")
	w.posted("out")
	w.settle(x, all...)
}

// TestClosingWaitsForASettlement: what takes a topic or a subscription away waits for the commits that are being settled there,
// and lets no other begin.
func TestClosingWaitsForASettlement(t *testing.T) {
	name := func(w *world) topicname.Name { return parse(w.t, "in") }
	for what, c := range map[string]struct {
		run  func(w *world, c *testConsumer) error
		gone bool // with what it had
	}{
		"unsubscribe": {func(w *world, c *testConsumer) error {
			done := make(chan error, 1)
			c.Unsubscribe(true, func(err error) { done <- err })
			return <-done
		}, true},
		"delete": {func(w *world, _ *testConsumer) error {
			return w.topics.DeleteTopic(context.Background(), name(w), true)
		}, true},
		"unload": {func(w *world, _ *testConsumer) error { return w.topics.Unload(context.Background(), name(w)) }, false},
		"stop": {func(w *world, _ *testConsumer) error {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			w.topics.Close(ctx)
			return ctx.Err()
		}, false},
	} {
		t.Run(what, func(t *testing.T) {
			w, x, all, _, consumer := settlementWorld(t)
			y := w.coord.begin()
			commit := w.mustPrepare(x, all...)
			done := make(chan error, 1)
			go func() { done <- c.run(w, consumer) }()
			eventually(t, "no other commit begins", func() bool {
				other := w.prepare(y, w.participant("in", "s"))
				if other != nil {
					other.settled(txn.ErrFenced)
				}
				return other == nil
			})
			stillWaits(t, w, "in", what, done)
			if err := commit.commit(); err != nil {
				t.Fatal(err)
			}
			if err := wait(t, done); err != nil {
				t.Fatal(err)
			}
			if c.gone {
				w.subscribe("out", "r", earliest).want("x")
				return
			}
			if what == "stop" {
				w.topics = New(w.options)
			}
			wantCommitted(t, w)
		})
	}
}

// TestSettlementsGoOnBehindARefusedRemoval: a topic that is not deleted after all settles commits again.
func TestSettlementsGoOnBehindARefusedRemoval(t *testing.T) {
	w, x, all, _, _ := settlementWorld(t)
	if err := w.topics.DeleteTopic(context.Background(), parse(t, "in"), false); !errors.Is(err, ErrTopicBusy) {
		t.Fatal(err)
	}
	if err := w.topics.DeleteSubscription(context.Background(), parse(t, "in"), "s", false); !errors.Is(err, ErrSubscriptionBusy) {
		t.Fatal(err)
	}
	w.settle(x, all...)
	wantCommitted(t, w)
}

// TestIdleTopicWaitsForASettlement: it does not leave memory below a commit.
func TestIdleTopicWaitsForASettlement(t *testing.T) {
	w, pass := idleWorld(t)
	p, x := w.produceAs("a", "p"), w.coord.begin()
	w.subscribe("a", "s").Close()
	p.send(inTxn(x, message(0, "x")))
	p.Close()
	commit := w.mustPrepare(x, w.participant("a", ""))
	pass(time.Hour)
	pass(time.Hour)
	if !w.isLoaded("a") {
		t.Fatal("the topic is unloaded below a commit")
	}
	if err := commit.commit(); err != nil {
		t.Fatal(err)
	}
	w.posted("a")
	pass(time.Hour)
	pass(time.Hour)
	if w.isLoaded("a") {
		t.Fatal("the topic stays")
	}
	w.subscribe("a", "s").want("x")
}

// TestSeekBehindASettledCommit: what the commit acknowledged comes again, and behind a crash at once, too.
func TestSeekBehindASettledCommit(t *testing.T) {
	w, x, all, _, c := settlementWorld(t)
	w.settle(x, all...)
	done := make(chan error, 1)
	c.Seek(&pulsarproto.CommandSeek{MessagePublishTime: ptr(uint64(0))}, func(err error) { done <- err })
	if err := wait(t, done); err != nil {
		t.Fatal(err)
	}
	w.restart()
	w.subscribe("in", "s", shared).wantAny("m0", "m1", "m2")
}

// TestSeekBehindManySettledCommits: the cursor does not go back before all of them are stored with it.
func TestSeekBehindManySettledCommits(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.MaxTxnOps = 24 })
	at, payloads := sendMany(w.produce("in"), 8)
	c := w.subscribe("in", "s", earliest, shared)
	var all []txn.ID
	for i := range at {
		all = append(all, w.coord.begin())
		if err := c.ackIn(all[i], at[i]); err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range all {
		w.settle(x, w.participant("in", "s"))
	}
	done := make(chan error, 1)
	c.Seek(&pulsarproto.CommandSeek{MessagePublishTime: ptr(uint64(0))}, func(err error) { done <- err })
	if err := wait(t, done); err != nil {
		t.Fatal(err)
	}
	w.restart()
	w.subscribe("in", "s", shared).wantAny(payloads...)
}

// TestSettledCommitsDoNotPileUp: they are stored with the cursor by the next write of the topic, whatever it is about.
func TestSettledCommitsDoNotPileUp(t *testing.T) {
	w, x, all, _, _ := settlementWorld(t)
	w.settle(x, all...)
	w.produceAs("in", "other").send(message(0, "m3"))
	if n := w.pendingKeys("in"); n != 0 {
		t.Fatalf("%d keys behind a write", n)
	}
	w.restart()
	c := w.subscribe("in", "s", shared)
	c.wantAny("m1", "m2", "m3")
	c.wantNothing(w, "in")
}

// TestManySettledCommits: more than one write can store with the cursor.
func TestManySettledCommits(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.MaxTxnOps = 24 })
	const commits = 60
	at, _ := sendMany(w.produce("in"), commits+1)
	c := w.subscribe("in", "s", earliest, shared)
	for i := range commits {
		x := w.coord.begin()
		if err := c.ackIn(x, at[i]); err != nil {
			t.Fatal(err)
		}
		s := w.mustPrepare(x, w.participant("in", "s"))
		if err := s.write(); err != nil {
			t.Fatal(err)
		}
		defer s.settled(nil)
	}
	w.restart() // it finds all of them
	c = w.subscribe("in", "s", shared)
	c.want(fmt.Sprint("m", commits))
	eventually(t, "all are stored with the cursor", func() bool { return w.pendingKeys("in") == 0 })
	w.restart()
	c = w.subscribe("in", "s", shared)
	c.want(fmt.Sprint("m", commits))
	c.wantNothing(w, "in")
}

// TestSettlingIsBounded: a subscription whose cursor cannot be stored takes no more commits than a load should find.
func TestSettlingIsBounded(t *testing.T) {
	s := newSettling()
	s.add("a", newWorld(t).keys.Topic(1).Subscription(0))
	s.fold(maxUnfolded - 1)
	if _, ok := s.begin(txn.ID{Least: 1}, []string{"a"}); !ok {
		t.Error("one less than the bound is refused")
	}
	s.fold(1)
	if _, ok := s.begin(txn.ID{Least: 2}, []string{"a"}); ok {
		t.Error("the bound is passed")
	}
	s.fold(-maxUnfolded)
	if _, ok := s.begin(txn.ID{Least: 2}, []string{"a"}); !ok {
		t.Error("behind the bound")
	}
}

// TestSettledBesideACursorWrite: what a commit acknowledges while the cursor is being stored is stored with it the next time.
func TestSettledBesideACursorWrite(t *testing.T) {
	w := newWorld(t)
	at, _ := sendMany(w.produce("in"), 3)
	c := w.subscribe("in", "s", earliest, shared)
	c.want("m0", "m1", "m2")
	x := w.coord.begin()
	if err := c.ackIn(x, at[1]); err != nil {
		t.Fatal(err)
	}
	commit := w.mustPrepare(x, w.participant("in", "s"))
	if err := commit.write(); err != nil {
		t.Fatal(err)
	}
	release, acked := w.hold(), make(chan error, 1)
	c.Ack(ackOf(pulsarproto.CommandAck_Individual, at[2]), func(err error) { acked <- err })
	eventually(t, "the cursor is being stored", func() bool { return w.writes("in") })
	commit.settled(nil)
	w.posted("in")
	release()
	if err := wait(t, acked); err != nil {
		t.Fatal(err)
	}
	eventually(t, "what made the commit durable is gone", func() bool { return w.pendingKeys("in") == 0 })
	w.restart()
	c = w.subscribe("in", "s", shared)
	c.want("m0")
	c.wantNothing(w, "in")
}

// TestSeekIsNotHeldUp: commits that are settled all the time do not keep a seek, and what came behind it, waiting.
func TestSeekIsNotHeldUp(t *testing.T) {
	w := newWorld(t)
	p := w.produce("in")
	at, payloads := sendMany(p, 2)
	c := w.subscribe("in", "s", earliest)
	c.want(payloads...)
	x := w.coord.begin()
	if err := c.ackIn(x, at[0]); err != nil {
		t.Fatal(err)
	}
	w.settle(x, w.participant("in", "s"))
	var writes atomic.Int32
	w.kv.set(func(commit func() (*clientv3.TxnResponse, error)) (*clientv3.TxnResponse, error) {
		if writes.Add(1) < 50 { // a commit without acknowledgements
			if another := w.prepare(w.coord.begin(), w.participant("in", "s")); another != nil {
				another.settled(another.writeTo(storeClient.KV))
			}
		}
		return commit()
	})
	c.seek(&pulsarproto.CommandSeek{MessageId: idOf(at[0])})
	if n := writes.Load(); n > 10 {
		t.Errorf("the seek was done behind %d writes", n)
	}
	w.kv.set(nil)
	w.quiet("in")
	w.settle(w.coord.begin(), w.participant("in", "s"))
}
