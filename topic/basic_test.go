package topic

import (
	"errors"
	"fmt"
	"testing"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

func TestProduceAndConsume(t *testing.T) {
	w := newWorld(t)
	p := w.produce("a")
	c := w.subscribe("a", "s")
	var positions []ledger.Position
	for i := range 10 {
		positions = append(positions, p.send(message(uint64(i), fmt.Sprint("m", i))))
	}
	for i := range 10 {
		if d := c.want(fmt.Sprint("m", i))[0]; position(d) != positions[i] {
			t.Fatalf("received at %v, want %v", position(d), positions[i])
		}
	}
	c.ack(positions[:5]...)
	w.restart()
	c = w.subscribe("a", "s")
	c.want("m5", "m6", "m7", "m8", "m9")
	if err := c.tryAck(ackOf(pulsarproto.CommandAck_Cumulative, positions[8])); err != nil {
		t.Fatal(err)
	}
	c.Close()
	c = w.subscribe("a", "s")
	c.want("m9")
	c.wantNothing(w, "a")
	w.subscribe("a", "other", earliest).want("m0", "m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8", "m9")
}

func TestReadCommitted(t *testing.T) {
	w := newWorld(t)
	p := w.produce("a")
	c := w.subscribe("a", "s")
	p.send(message(0, "before"))
	committed, aborted := w.coord.begin(), w.coord.begin()
	p.send(inTxn(committed, message(1, "c1")))
	p.send(inTxn(aborted, message(2, "a1")))
	p.send(message(3, "behind"))
	p.send(inTxn(committed, message(4, "c2")))
	c.want("before")
	c.wantNothing(w, "a")
	w.end(aborted, txn.Abort, "a", "")
	c.wantNothing(w, "a")
	w.end(committed, txn.Commit, "a", "")
	c.want("c1", "behind", "c2")
	c.wantNothing(w, "a")
	w.restart()
	w.subscribe("a", "other", earliest).want("before", "c1", "behind", "c2")
}

func TestTransactionalAck(t *testing.T) {
	w := newWorld(t)
	p := w.produce("a")
	c := w.subscribe("a", "s", shared)
	var at []ledger.Position
	for i := range 4 {
		at = append(at, p.send(message(uint64(i), fmt.Sprint("m", i))))
	}
	c.want("m0", "m1", "m2", "m3")
	x, y := w.coord.begin(), w.coord.begin()
	if err := c.ackIn(x, at[0], at[1]); err != nil {
		t.Fatal(err)
	}
	if err := c.ackIn(y, at[1]); !errors.Is(err, txn.ErrConflict) {
		t.Fatalf("second transaction: %v, want a conflict", err)
	}
	if err := c.ackIn(y, at[2]); err != nil {
		t.Fatal(err)
	}
	w.end(x, txn.Abort, "a", "s")
	for _, d := range c.wantAny("m0", "m1") {
		if d.RedeliveryCount != 1 {
			t.Fatalf("redelivery count %d, want 1", d.RedeliveryCount)
		}
	}
	w.end(y, txn.Commit, "a", "s")
	w.restart()
	w.subscribe("a", "s", shared).wantAny("m0", "m1", "m3")
}
