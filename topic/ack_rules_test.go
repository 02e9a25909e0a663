package topic

import (
	"errors"
	"fmt"
	"testing"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// partOf is an acknowledgement of indexes of a batch, by its ack_set: bit 1 is not acknowledged.
func partOf(kind pulsarproto.CommandAck_AckType, p ledger.Position, ackSet ...int64) *pulsarproto.CommandAck {
	cmd := ackOf(kind, p)
	cmd.MessageId[0].AckSet = ackSet
	return cmd
}

const (
	individual = pulsarproto.CommandAck_Individual
	cumulative = pulsarproto.CommandAck_Cumulative
)

// TestTransactionalAckRules walks the rules of transactional acknowledgements on a whole topic: every
// refusal has a text, because clients take an answer without one for success, and leaves nothing behind, over a reload too.
func TestTransactionalAckRules(t *testing.T) {
	type command = func(at []ledger.Position) *pulsarproto.CommandAck
	one := func(i int) command {
		return func(at []ledger.Position) *pulsarproto.CommandAck { return ackOf(individual, at[i]) }
	}
	list := func(is ...int) command {
		return func(at []ledger.Position) *pulsarproto.CommandAck {
			var positions []ledger.Position
			for _, i := range is {
				positions = append(positions, at[i])
			}
			return ackOf(individual, positions...)
		}
	}
	bits := func(ackSet ...int64) command { // of the batch of 4, which is the last
		return func(at []ledger.Position) *pulsarproto.CommandAck {
			return partOf(individual, at[len(at)-1], ackSet...)
		}
	}
	upTo := func(i int) command {
		return func(at []ledger.Position) *pulsarproto.CommandAck { return ackOf(cumulative, at[i]) }
	}
	const x, y, plain = 0, 1, 2
	type step struct {
		in   int
		do   command
		want error
	}
	conflict, notAllowed := txn.ErrConflict, txn.ErrNotAllowed
	for name, steps := range map[string][]step{
		"free":                                    {{x, one(1), nil}},
		"pending in the same transaction":         {{x, one(1), nil}, {x, one(1), conflict}},
		"pending in another transaction":          {{x, one(1), nil}, {y, one(1), conflict}},
		"acknowledged behind the mark-delete":     {{plain, one(2), nil}, {x, one(2), conflict}},
		"at or below the mark-delete":             {{plain, upTo(1), nil}, {x, one(1), conflict}, {x, one(0), conflict}},
		"a list with one pending":                 {{x, one(1), nil}, {y, list(2, 1), conflict}, {y, one(2), nil}},
		"a list with one acknowledged":            {{plain, one(1), nil}, {y, list(2, 1), conflict}, {x, one(2), nil}},
		"the same entry twice in one command":     {{x, list(1, 1), nil}},
		"empty list":                              {{x, list(), nil}},
		"the same index twice in one transaction": {{x, bits(^1), nil}, {x, bits(^1), conflict}},
		"the same index twice in one command":     {{x, twice(bits(^1)), conflict}, {x, bits(^1), nil}},
		"disjoint indexes of two transactions":    {{x, bits(^1), nil}, {y, bits(^2), nil}},
		"overlapping indexes of two transactions": {{x, bits(^3), nil}, {y, bits(^2), conflict}, {y, bits(^4), nil}},
		"an index acknowledged before":            {{plain, bits(^1), nil}, {x, bits(^3), conflict}, {x, bits(^2), nil}},
		"a whole entry over pending indexes":      {{x, bits(^1), nil}, {y, one(5), conflict}},
		"a whole entry over acknowledged indexes": {{plain, bits(^1), nil}, {y, one(5), nil}},
		"an index of a pending entry":             {{x, one(5), nil}, {y, bits(^1), conflict}, {x, bits(^1), conflict}},
		"a plain index of a pending entry":        {{x, one(5), nil}, {plain, bits(^1), nil}},
		"an ack set that is too long":             {{x, bits(^1, -1, -1), nil}, {y, bits(^1), conflict}, {y, bits(^2), nil}},
		"an ack set with bits beyond the batch":   {{x, bits(^0x7fff0001), nil}, {y, bits(^2), nil}},
		"an ack set of zeros is the whole entry":  {{x, bits(0), nil}, {y, bits(^8), conflict}},
		"cumulative: further, equal, lower":       {{x, upTo(1), nil}, {x, upTo(3), nil}, {x, upTo(3), conflict}, {x, upTo(2), conflict}},
		"cumulative in another transaction":       {{x, upTo(1), nil}, {y, upTo(4), conflict}},
		"cumulative at the mark-delete":           {{plain, upTo(1), nil}, {x, upTo(1), conflict}, {x, upTo(0), conflict}},
		"cumulative over another's individual":    {{x, one(1), nil}, {y, upTo(3), nil}},
		"individual below and above a cumulative": {{x, upTo(2), nil}, {y, one(1), nil}, {x, one(3), nil}},
		"a position that does not exist": {{x, func([]ledger.Position) *pulsarproto.CommandAck {
			return ackOf(individual, ledger.Position{Ledger: 1 << 60})
		}, notAllowed}},
		"a plain one of a position that is not": {{plain, func([]ledger.Position) *pulsarproto.CommandAck {
			return ackOf(individual, ledger.Position{Ledger: 1 << 60})
		}, nil}},
		"two positions in one cumulative do nothing": {{x, func(at []ledger.Position) *pulsarproto.CommandAck { return ackOf(cumulative, at[1], at[2]) }, nil}, {y, one(1), nil}},
	} {
		for _, reload := range []bool{false, true} {
			t.Run(fmt.Sprint(name, reload), func(t *testing.T) {
				w := newWorld(t)
				p := w.produce("a")
				at, _ := sendMany(p, 5)
				at = append(at, p.send(batchOf(4, message(5, "b"))))
				ids := []txn.ID{w.coord.begin(), w.coord.begin()}
				c := w.subscribe("a", "s", earliest)
				for i, step := range steps {
					cmd := step.do(at)
					if step.in != plain {
						ackInTxn(ids[step.in], cmd)
					}
					err := c.tryAck(cmd)
					if !errors.Is(err, step.want) || step.want == nil && err != nil {
						t.Fatalf("step %d: %v, want %v", i, err, step.want)
					}
					if err != nil && err.Error() == "" {
						t.Fatalf("step %d: a refusal without text", i)
					}
					if reload {
						w.restart()
						c = w.subscribe("a", "s")
					}
				}
			})
		}
	}
}

// twice repeats the id of a command.
func twice(do func([]ledger.Position) *pulsarproto.CommandAck) func([]ledger.Position) *pulsarproto.CommandAck {
	return func(at []ledger.Position) *pulsarproto.CommandAck {
		cmd := do(at)
		cmd.MessageId = append(cmd.MessageId, cmd.MessageId[0])
		return cmd
	}
}

// TestCumulativeOnSharedDoesNothing: success without effect, in a transaction too.
func TestCumulativeOnSharedDoesNothing(t *testing.T) {
	for _, kind := range []subscribeOption{shared, byKey} {
		w := newWorld(t)
		p := w.produce("a")
		c := w.subscribe("a", "s", kind)
		at, _ := sendMany(p, 2)
		c.want("m0", "m1")
		id := w.coord.begin()
		for _, cmd := range []*pulsarproto.CommandAck{ackOf(cumulative, at[1]), ackInTxn(id, ackOf(cumulative, at[1]))} {
			if err := c.tryAck(cmd); err != nil {
				t.Fatal(err)
			}
		}
		w.end(id, txn.Commit, "a", "s")
		c.Redeliver(redeliver())
		c.want("m0", "m1")
	}
}

// TestWholeBatchAcks: with acknowledgmentAtBatchIndexLevelEnabled=false a part of a batch is acknowledged in transactions only.
func TestWholeBatchAcks(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.WholeBatchAcks = true })
	p := w.produce("a")
	c := w.subscribe("a", "s")
	at := []ledger.Position{p.send(message(0, "m")), p.send(batchOf(4, message(1, "b")))}
	c.want("m", "b")
	redelivered := func(ackSet ...int64) {
		t.Helper()
		c.Redeliver(redeliver())
		if d := c.next(); string(d.Payload) == "m" {
			d = c.next()
		} else if len(d.AckSet) != len(ackSet) || len(ackSet) > 0 && d.AckSet[0] != ackSet[0] {
			t.Fatalf("%s comes with ack set %b, want %b", d.Payload, d.AckSet, ackSet)
		}
		c.wantNothing(w, "a")
	}
	if err := c.tryAck(partOf(individual, at[1], ^1)); err != nil {
		t.Fatal(err)
	}
	redelivered()
	if err := c.tryAck(partOf(cumulative, at[1], ^3)); err != nil { // up to the batch
		t.Fatal(err)
	}
	redelivered()
	id := w.coord.begin()
	if err := c.tryAck(ackInTxn(id, partOf(individual, at[1], ^1))); err != nil {
		t.Fatal(err)
	}
	redelivered(0b1110)
	w.end(id, txn.Commit, "a", "s")
	if err := c.tryAck(partOf(individual, at[1], 0)); err != nil {
		t.Fatal(err)
	}
	c.Redeliver(redeliver())
	c.wantNothing(w, "a")
}

// TestAbortThenClose: an abort has given everything back when it is answered. A consumer that closes right behind it leaves
// each message to the next one once; real Pulsar 4.0.7 gives them twice.
func TestAbortThenClose(t *testing.T) {
	for _, kind := range []subscribeOption{shared, byKey, ofType(pulsarproto.CommandSubscribe_Exclusive), failover} {
		w := newWorld(t)
		p := w.produce("a")
		c := w.subscribe("a", "s", kind)
		at, _ := sendMany(p, 3)
		c.want("m0", "m1", "m2")
		id := w.coord.begin()
		if err := c.ackIn(id, at[0], at[2]); err != nil {
			t.Fatal(err)
		}
		w.end(id, txn.Abort, "a", "s")
		c.Close()
		next := w.subscribe("a", "s", kind)
		next.want("m0", "m1", "m2")
		next.wantNothing(w, "a")
	}
}

// TestAbortedIndexesAlone: after an abort exactly the aborted indexes come, and none that the consumer still has; what it does
// with them never acknowledges an index twice (real Pulsar 4.0.7 sends the whole entry again).
func TestAbortedIndexesAlone(t *testing.T) {
	for _, kind := range []subscribeOption{shared, byKey, ofType(pulsarproto.CommandSubscribe_Exclusive)} {
		w := newWorld(t)
		p := w.produce("a")
		c := w.subscribe("a", "s", kind)
		at := p.send(batchOf(4, message(0, "b")))
		c.want("b")
		for round := range 3 {
			x, y := w.coord.begin(), w.coord.begin()
			for id, set := range map[txn.ID]int64{x: ^1, y: ^2} {
				if err := c.tryAck(ackInTxn(id, partOf(individual, at, set))); err != nil {
					t.Fatalf("round %d: %v", round, err)
				}
			}
			w.end(x, txn.Abort, "a", "s")
			if d := c.want("b")[0]; len(d.AckSet) != 1 || d.AckSet[0] != 1 {
				t.Fatalf("ack set %b, want index 0", d.AckSet)
			}
			w.end(y, txn.Abort, "a", "s")
			if d := c.want("b")[0]; len(d.AckSet) != 1 || d.AckSet[0] != 2 {
				t.Fatalf("ack set %b, want index 1", d.AckSet)
			}
			c.wantNothing(w, "a")
		}
	}
}
