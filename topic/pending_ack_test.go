package topic

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

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

// TestRefusedAcknowledgementHoldsNothing holds FC-17: what was passed over while the acknowledgement of an ended transaction was
// being written is given again when that is refused, and its key is free.
func TestRefusedAcknowledgementHoldsNothing(t *testing.T) {
	const all = 0
	for what, test := range map[string]struct {
		kind              subscribeOption
		ackSet            int64   // of the acknowledgement
		meanwhile, behind []int64 // ack_set of what is given while the write is in flight, and when it is refused
	}{
		"Shared":              {kind: shared, behind: []int64{all}},
		"Shared, of a batch":  {kind: shared, ackSet: 0b10, meanwhile: []int64{0b10}, behind: []int64{0b01}},
		"Key_Shared":          {kind: ofType(pulsarproto.CommandSubscribe_Key_Shared), behind: []int64{all}},
		"Failover, redeliver": {kind: ofType(pulsarproto.CommandSubscribe_Failover), behind: []int64{all}},
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t)
			c := w.subscribe("a", "s", test.kind, named("a"))
			at := w.produce("a").send(batchOf(2, message(0, "m")))
			c.want("m")
			other := c
			if what != "Failover, redeliver" {
				other = w.subscribe("a", "s", test.kind, named("b"))
			}
			id := w.coord.begin()
			w.coord.decide(t, id)
			release := w.hold()
			ack := ackOf(pulsarproto.CommandAck_Individual, at)
			if test.ackSet != 0 {
				ack.MessageId[0].AckSet = []int64{test.ackSet}
			}
			refused := make(chan error, 1)
			c.Ack(ackInTxn(id, ack), func(err error) { refused <- err })
			if other == c {
				c.Redeliver(&pulsarproto.CommandRedeliverUnacknowledgedMessages{})
			} else {
				c.Close()
			}
			w.posted("a")
			want := func(sets []int64) {
				t.Helper()
				for _, set := range sets {
					d := other.want("m")[0]
					if set == all && d.AckSet != nil || set != all && !slices.Equal(d.AckSet, []int64{set}) {
						t.Fatalf("given with ack_set %b, want %b", d.AckSet, set)
					}
				}
			}
			want(test.meanwhile)
			if len(other.messages) > 0 {
				t.Fatal("what the transaction holds is given")
			}
			release()
			if err := wait(t, refused); !errors.Is(err, txn.ErrNotAllowed) {
				t.Fatal(err)
			}
			want(test.behind)
			other.wantNothing(w, "a")
			last := w.produce("a").send(message(1, "last"))
			other.want("last")
			other.ack(last)
		})
	}
}
