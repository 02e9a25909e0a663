package topic

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
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

// TestEndedTransaction holds FC-17: nothing is stored, nothing is pending, and plain messages pass.
func TestEndedTransaction(t *testing.T) {
	for _, action := range []txn.Action{txn.Commit, txn.Abort} {
		for _, restart := range []bool{false, true} {
			t.Run(fmt.Sprint(action, restart), func(t *testing.T) {
				w := newWorld(t)
				p := w.produce("a")
				c := w.subscribe("a", "s")
				m := p.send(message(0, "m"))
				c.want("m")
				id := w.coord.begin()
				p.send(inTxn(id, message(1, "in time")))
				w.end(id, action, "a", "")
				if restart {
					w.restart()
					p, c = w.produce("a"), w.subscribe("a", "s")
					c.want("m")
				}
				for name, late := range map[string]txn.ID{"ended": id, "never issued": {Least: 1 << 40}, "no such coordinator": {Most: 99, Least: 1}} {
					p.Send(inTxn(late, message(2, "late")))
					if r := p.receipt(); !errors.Is(r.err, txn.ErrNotAllowed) || r.err.Error() == "" {
						t.Fatalf("%s: send answered %+v, want not allowed", name, r)
					}
					if err := c.ackIn(late, m); !errors.Is(err, txn.ErrNotAllowed) || err.Error() == "" {
						t.Fatalf("%s: ack answered %v, want not allowed", name, err)
					}
				}
				p.send(message(3, "plain"))
				if action == txn.Commit {
					c.want("in time")
				}
				c.want("plain")
				if id := w.coord.begin(); c.ackIn(id, m) != nil {
					t.Fatal("the refused acknowledgement is pending")
				}
				if n := w.keysUnder(w.space("a").TxnPrefix()); n != 0 {
					t.Fatalf("%d marks, want none", n)
				}
			})
		}
	}
}

// TestRefusedSendAffectsNoOther holds O-5, and the order of the answers of one producer.
func TestRefusedSendAffectsNoOther(t *testing.T) {
	w := newWorld(t)
	p, q := w.produce("a"), w.produce("a")
	c := w.subscribe("a", "s")
	late, open := w.coord.begin(), w.coord.begin()
	w.coord.decide(t, late)
	msgs := []struct {
		id      txn.ID
		in      bool
		refused bool
	}{{open, true, false}, {late, true, true}, {txn.ID{}, false, false}, {late, true, true}, {open, true, false}, {txn.ID{}, false, false}}
	for i, m := range msgs {
		for n, producer := range []*testProducer{p, q} {
			msg := message(uint64(i), fmt.Sprintf("%d%d", n, i))
			if m.in {
				msg = inTxn(m.id, msg)
			}
			producer.Send(msg)
		}
	}
	for _, producer := range []*testProducer{p, q} {
		last := ledger.Position{}
		for i, m := range msgs {
			r := producer.receipt()
			if r.sequence != uint64(i) || (r.err != nil) != m.refused {
				t.Fatalf("answer %d: %+v, refused should be %v", i, r, m.refused)
			}
			if r.err == nil && !last.Before(r.position) {
				t.Fatalf("answer %d: position %v is not behind %v", i, r.position, last)
			}
			if r.err == nil {
				last = r.position
			}
		}
	}
	w.end(open, txn.Commit, "a", "")
	c.wantAny("00", "02", "04", "05", "10", "12", "14", "15")
	c.wantNothing(w, "a")
}

// TestAnswersStayInOrder: many transactions of one producer, registered or not, open or ended, at any time.
func TestAnswersStayInOrder(t *testing.T) {
	w := newWorld(t)
	p := w.produce("a")
	var ids []txn.ID
	for range 6 {
		ids = append(ids, w.coord.begin())
	}
	const sends = 400
	for i := range uint64(sends) {
		switch n := rand.IntN(8); {
		case n == 7:
			p.Send(message(i, "plain"))
		case n == 6 && len(ids) > 1 && rand.IntN(10) == 0:
			w.coord.decide(t, ids[0])
			ids = append(ids[1:], w.coord.begin())
			fallthrough
		default:
			p.Send(inTxn(ids[rand.IntN(len(ids))], message(i, "t")))
		}
	}
	last := ledger.Position{}
	for i := range uint64(sends) {
		r := p.receipt()
		if r.sequence != i || r.err == nil && !last.Before(r.position) {
			t.Fatalf("answer %d: %+v behind position %v", i, r, last)
		}
		if r.err == nil {
			last = r.position
		}
	}
}

// TestLateSendDropped: transactionLateSendPolicy=drop gives a receipt and stores nothing.
func TestLateSendDropped(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.LateSend = LateDrop })
	p := w.produce("a")
	c := w.subscribe("a", "s")
	id := w.coord.begin()
	w.coord.decide(t, id)
	if at := p.send(inTxn(id, message(0, "late"))); at.Ledger != none || at.Entry != none {
		t.Fatalf("receipt with %v, want -1:-1", at)
	}
	p.send(message(1, "plain"))
	c.want("plain")
	if s := w.topics.Stats(context.Background()); len(s) != 1 || s[0].LateSends != 1 {
		t.Fatalf("stats %+v, want one late send", s)
	}
}

// TestLateSendRace holds FC-18: sends race with the decision. Each is part of the outcome or refused, and plain messages
// behind always pass.
func TestLateSendRace(t *testing.T) {
	w := newWorld(t)
	p := w.produce("a")
	c := w.subscribe("a", "s")
	sequence := uint64(0)
	for round := range 60 {
		if round%20 == 19 {
			w.restart()
			p, c = w.produce("a"), w.subscribe("a", "s")
		}
		id := w.coord.begin()
		action := txn.Action(round % 2)
		ended := make(chan struct{})
		decideAt := rand.IntN(20)
		for i := range 20 {
			if i == decideAt {
				go func() {
					defer close(ended)
					w.end(id, action, "a", "")
				}()
			}
			p.Send(inTxn(id, message(sequence, fmt.Sprint(round))))
			sequence++
		}
		stored := 0
		for range 20 {
			if r := p.receipt(); r.err == nil {
				stored++
			} else if !errors.Is(r.err, txn.ErrNotAllowed) {
				t.Fatal(r.err)
			}
		}
		<-ended
		end := p.send(message(sequence, "p"))
		sequence++
		if action == txn.Commit {
			for range stored {
				c.want(fmt.Sprint(round))
			}
		}
		c.want("p")
		if err := c.tryAck(ackOf(pulsarproto.CommandAck_Cumulative, end)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestClientDiesWithPendingAcks holds FC-08.
func TestClientDiesWithPendingAcks(t *testing.T) {
	w := newWorld(t)
	p := w.produce("a")
	at := p.send(message(0, "m1"))
	c := w.subscribe("a", "s", earliest)
	c.want("m1")
	x := w.coord.begin()
	if err := c.ackIn(x, at); err != nil {
		t.Fatal(err)
	}
	c.Close()
	for range 2 {
		c = w.subscribe("a", "s")
		c.wantNothing(w, "a")
		if err := c.ackIn(w.coord.begin(), at); !errors.Is(err, txn.ErrConflict) {
			t.Fatalf("%v, want a conflict", err)
		}
		w.restart()
	}
	c = w.subscribe("a", "s")
	w.end(x, txn.Abort, "a", "s") // the deadline
	c.want("m1")
	z := w.coord.begin()
	if err := c.ackIn(z, at); err != nil {
		t.Fatal(err)
	}
	w.end(z, txn.Commit, "a", "s")
	w.restart()
	w.subscribe("a", "s").wantNothing(w, "a")
	if n := w.keysUnder(w.space("a").Subscription(0).PendingPrefix(z)); n != 0 {
		t.Fatalf("%d pending keys are left", n)
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

// TestPendingAckGivesBackExactly holds O-8 on every type of subscription.
func TestPendingAckGivesBackExactly(t *testing.T) {
	for _, kind := range []pulsarproto.CommandSubscribe_SubType{
		pulsarproto.CommandSubscribe_Exclusive, pulsarproto.CommandSubscribe_Failover, pulsarproto.CommandSubscribe_Shared,
	} {
		t.Run(kind.String(), func(t *testing.T) {
			w := newWorld(t)
			p := w.produce("a")
			c := w.subscribe("a", "s", ofType(kind))
			var at []ledger.Position
			var all []string
			for i := range 6 {
				all = append(all, fmt.Sprint("m", i))
				at = append(at, p.send(message(uint64(i), all[i])))
			}
			c.want(all...)
			id := w.coord.begin()
			if err := c.ackIn(id, at[1], at[3]); err != nil {
				t.Fatal(err)
			}
			c.Redeliver(&pulsarproto.CommandRedeliverUnacknowledgedMessages{})
			c.wantAny("m0", "m2", "m4", "m5")
			c.wantNothing(w, "a")
			w.end(id, txn.Abort, "a", "s")
			c.wantAny("m1", "m3")
			c.wantNothing(w, "a")
		})
	}
}

// TestAbortWithoutConsumer: the next consumer is given what the transaction held, counted as redelivered, and the rest anew.
func TestAbortWithoutConsumer(t *testing.T) {
	w := newWorld(t)
	p := w.produce("a")
	c := w.subscribe("a", "s", shared)
	at, _ := sendMany(p, 3)
	c.want("m0", "m1", "m2")
	c.Redeliver(redeliver())
	c.wantAny("m0", "m1", "m2")
	id := w.coord.begin()
	if err := c.ackIn(id, at[0]); err != nil {
		t.Fatal(err)
	}
	c.Close()
	w.end(id, txn.Abort, "a", "s")
	for _, d := range w.subscribe("a", "s", shared).want("m0", "m1", "m2") {
		if held := position(d) == at[0]; held != (d.RedeliveryCount == 1) || d.RedeliveryCount > 1 {
			t.Fatalf("%s comes with redelivery count %d", d.Payload, d.RedeliveryCount)
		}
	}
}

// TestCumulativePendingAck holds O-8 for cumulative acknowledgements, whole entries and inside a batch, over a restart.
func TestCumulativePendingAck(t *testing.T) {
	w := newWorld(t)
	p := w.produce("a")
	c := w.subscribe("a", "s")
	var at []ledger.Position
	for i := range 4 {
		at = append(at, p.send(batchOf(3, message(uint64(3*i), fmt.Sprint("b", i)))))
	}
	c.want("b0", "b1", "b2", "b3")
	id := w.coord.begin()
	cmd := ackOf(pulsarproto.CommandAck_Cumulative, at[2])
	cmd.MessageId[0].AckSet = []int64{0b100} // the first two of the batch are acknowledged
	if err := c.tryAck(ackInTxn(id, cmd)); err != nil {
		t.Fatal(err)
	}
	rest := func(c *testConsumer) {
		t.Helper()
		got := c.want("b2", "b3")
		if len(got[0].AckSet) != 1 || got[0].AckSet[0] != 0b100 || got[1].AckSet != nil {
			t.Fatalf("ack sets %v and %v", got[0].AckSet, got[1].AckSet)
		}
		c.wantNothing(w, "a")
	}
	c.Redeliver(&pulsarproto.CommandRedeliverUnacknowledgedMessages{})
	rest(c)
	w.restart()
	c = w.subscribe("a", "s")
	rest(c)
	if err := c.tryAck(ackInTxn(w.coord.begin(), ackOf(pulsarproto.CommandAck_Cumulative, at[3]))); !errors.Is(err, txn.ErrConflict) {
		t.Fatalf("cumulative in another transaction: %v, want a conflict", err)
	}
	w.end(id, txn.Abort, "a", "s")
	got := c.wantAny("b0", "b1", "b2")
	for _, d := range got {
		if string(d.Payload) == "b2" && (len(d.AckSet) != 1 || d.AckSet[0] != 0b011) {
			t.Fatalf("given back with ack set %v, want the two indexes that were held", d.AckSet)
		}
	}
	c.wantNothing(w, "a")
	id = w.coord.begin()
	if err := c.tryAck(ackInTxn(id, ackOf(pulsarproto.CommandAck_Cumulative, at[1]))); err != nil {
		t.Fatal(err)
	}
	w.end(id, txn.Commit, "a", "s")
	w.restart()
	w.subscribe("a", "s").want("b2", "b3")
}

// TestBatchIndexAcks: disjoint indexes of one entry by two transactions; an abort sends exactly its own again (FC-25).
func TestBatchIndexAcks(t *testing.T) {
	w := newWorld(t)
	p := w.produce("a")
	c := w.subscribe("a", "s", shared)
	at := p.send(batchOf(4, message(0, "b")))
	c.want("b")
	ack := func(id *txn.ID, acked int64) error {
		cmd := ackOf(pulsarproto.CommandAck_Individual, at)
		cmd.MessageId[0].AckSet = []int64{^acked}
		if id != nil {
			ackInTxn(*id, cmd)
		}
		return c.tryAck(cmd)
	}
	x, y := w.coord.begin(), w.coord.begin()
	if err := ack(&x, 0b0001); err != nil {
		t.Fatal(err)
	}
	if err := ack(&y, 0b0011); !errors.Is(err, txn.ErrConflict) {
		t.Fatalf("overlapping indexes: %v, want a conflict", err)
	}
	if err := ack(&y, 0b0010); err != nil {
		t.Fatal(err)
	}
	if err := ack(nil, 0b0100); err != nil {
		t.Fatal(err)
	}
	w.end(x, txn.Abort, "a", "s")
	if d := c.want("b")[0]; len(d.AckSet) != 1 || d.AckSet[0] != 0b0001 {
		t.Fatalf("given back with ack set %b, want index 0", d.AckSet)
	}
	w.end(y, txn.Commit, "a", "s")
	w.restart()
	c = w.subscribe("a", "s", shared)
	if d := c.want("b")[0]; len(d.AckSet) != 1 || d.AckSet[0] != 0b1001 {
		t.Fatalf("after a restart ack set %b, want indexes 0 and 3", d.AckSet)
	}
	if err := ack(nil, 0b1001); err != nil {
		t.Fatal(err)
	}
	w.restart()
	w.subscribe("a", "s", shared).wantNothing(w, "a")
}

// TestAcksOfWhatDoesNotExist holds O-9.
func TestAcksOfWhatDoesNotExist(t *testing.T) {
	w := newWorld(t)
	p := w.produce("a")
	c := w.subscribe("a", "s", shared)
	var at []ledger.Position
	for i := range 4 {
		at = append(at, p.send(message(uint64(i), fmt.Sprint("m", i))))
	}
	c.want("m0", "m1", "m2", "m3")
	c.ack(at[0])
	beyond, nowhere := ledger.Position{Ledger: at[3].Ledger, Entry: 4}, ledger.Position{Ledger: at[0].Ledger - 1, Entry: 7}
	id := w.coord.begin()
	for name, step := range map[string]struct {
		positions []ledger.Position
		want      error
	}{
		"beyond the end":              {[]ledger.Position{at[1], beyond}, txn.ErrNotAllowed},
		"far beyond the end":          {[]ledger.Position{{Ledger: 1 << 62, Entry: 1 << 62}}, txn.ErrNotAllowed},
		"acknowledged before":         {[]ledger.Position{at[1], at[0]}, txn.ErrConflict},
		"before the mark-delete":      {[]ledger.Position{nowhere}, txn.ErrConflict},
		"valid, none of them is held": {[]ledger.Position{at[1], at[2]}, nil},
	} {
		if step.want == nil {
			continue
		}
		if err := c.ackIn(id, step.positions...); !errors.Is(err, step.want) || err.Error() == "" {
			t.Fatalf("%s: %v, want %v", name, err, step.want)
		}
	}
	c.ack(beyond, nowhere)
	if err := c.tryAck(ackOf(pulsarproto.CommandAck_Cumulative, at[1], at[2])); err != nil {
		t.Fatalf("cumulative on Shared: %v, want success without effect", err)
	}
	if err := c.ackIn(id, at[1], at[2]); err != nil {
		t.Fatalf("a refused list left something pending: %v", err)
	}
	p.send(message(4, "m4")) // at the position that was acknowledged beyond the end
	c.want("m4")
	w.end(id, txn.Abort, "a", "s")
	c.wantAny("m1", "m2")
}

// TestPlainAckOfAPendingMessage: it is accepted and stands whatever the transaction does.
func TestPlainAckOfAPendingMessage(t *testing.T) {
	for _, restart := range []bool{false, true} {
		w := newWorld(t)
		p := w.produce("a")
		c := w.subscribe("a", "s", shared)
		at := []ledger.Position{p.send(message(0, "m0")), p.send(message(1, "m1"))}
		c.want("m0", "m1")
		id := w.coord.begin()
		if err := c.ackIn(id, at...); err != nil {
			t.Fatal(err)
		}
		c.ack(at[0])
		if restart {
			w.restart()
			c = w.subscribe("a", "s", shared)
		}
		w.end(id, txn.Abort, "a", "s")
		c.want("m1")
		c.wantNothing(w, "a")
	}
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

// TestUnregisteredParticipant: the coordinator is asked once, then the commands go through.
func TestUnregisteredParticipant(t *testing.T) {
	w := newWorld(t)
	p := w.produce("a")
	c := w.subscribe("a", "s")
	at := p.send(message(0, "m"))
	id := w.coord.begin()
	for i := range 10 {
		p.Send(inTxn(id, message(uint64(i+1), "t")))
	}
	for i := range 10 {
		if r := p.receipt(); r.err != nil || r.sequence != uint64(i+1) {
			t.Fatalf("answer %d: %+v", i, r)
		}
	}
	c.want("m")
	if err := c.ackIn(id, at); err != nil {
		t.Fatal(err)
	}
	if w.coord.asks < 2 || w.coord.asks > 4 {
		t.Fatalf("the coordinator was asked %d times for two participants", w.coord.asks)
	}
}
