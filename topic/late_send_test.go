package topic

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

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

// TestHeldSendThatHasToWaitAgain: it stays before what the producer has held all the time.
func TestHeldSendThatHasToWaitAgain(t *testing.T) {
	w := newWorld(t)
	p := w.produce("a")
	x, y, z := w.coord.begin(), w.coord.begin(), w.coord.begin()
	p.send(inTxn(z, message(0, "registers z")))
	heldX, heldY := make(chan struct{}), make(chan struct{})
	w.coord.held = map[txn.ID]chan struct{}{x: heldX, y: heldY}
	loaded := w.topics.loaded(parse(t, "a").String())
	loaded.ask(func(bool) { // so that all are in one group
		p.Send(inTxn(x, message(1, "x")))
		p.Send(inTxn(z, message(2, "z, ended meanwhile")))
		p.Send(inTxn(y, message(3, "y")))
	})
	w.until(func() bool { return len(loaded.asking) == 2 }, loaded)
	w.coord.decide(t, z)
	close(heldX)
	if r := p.receipt(); r.sequence != 1 || r.err != nil {
		t.Fatalf("first answer %+v", r)
	}
	if r := p.receipt(); r.sequence != 2 || !errors.Is(r.err, txn.ErrNotAllowed) {
		t.Fatalf("second answer %+v, want that it is not allowed", r)
	}
	close(heldY)
	if r := p.receipt(); r.sequence != 3 || r.err != nil {
		t.Fatalf("third answer %+v", r)
	}
}

// A client that attaches a producer again, on the same connection, sends again what it has no receipt for, and it is stored once: also
// what is stored behind the first attachment, and only once it is known what is.
func TestRepeatsBehindASecondAttachment(t *testing.T) {
	w := newWorld(t)
	p, c := w.produce("a"), w.subscribe("a", "s")
	id, held := w.coord.begin(), make(chan struct{})
	w.coord.held = map[txn.ID]chan struct{}{id: held}
	again := func() error {
		answer := make(chan error, 1)
		p.Again(func(err error) { answer <- err })
		return <-answer
	}
	sendAll := func(n uint64) {
		for i := range n {
			p.Send(inTxn(id, message(i, fmt.Sprint(i))))
		}
	}
	sendAll(3)
	loaded := w.topics.loaded(parse(t, "a").String())
	w.until(func() bool { return len(loaded.asking) == 1 }, loaded)
	if err := again(); err == nil {
		t.Error("attached again although it is not known whether its sends are stored")
	}
	close(held)
	for range 3 {
		p.receipt()
	}
	if err := again(); err != nil {
		t.Fatal(err)
	}
	sendAll(4)
	for i := range uint64(4) {
		if r := p.receipt(); r.err != nil || r.sequence != i || (r.position == ledger.Position{Ledger: none, Entry: none}) != (i < 3) {
			t.Errorf("answer %d: %+v", i, r)
		}
	}
	w.end(id, txn.Commit, "a", "")
	c.want("0", "1", "2", "3")
	c.wantNothing(w, "a")
}

// until returns when what is true in a topic.
func (w *world) until(what func() bool, in *Topic) {
	w.t.Helper()
	for deadline := time.Now().Add(patience); ; {
		answer := make(chan bool, 1)
		in.ask(func(bool) { answer <- what() })
		if <-answer {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatal("it does not become true")
		}
	}
}

// TestLongAbortHoldsUpNothing: neither a late send nor a plain one waits until many entries are deleted.
func TestLongAbortHoldsUpNothing(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.MaxTxnOps = 16 })
	p := w.produce("a")
	id := w.coord.begin()
	for i := range 100 {
		p.send(inTxn(id, message(uint64(i), "a")))
	}
	reached, step := w.stepwise()
	w.coord.decide(t, id)
	ended := make(chan error, 1)
	w.topics.EndTxn(context.Background(), id, txn.Participant{Topic: parse(t, "a").String()}, txn.Abort, 0, func(err error) { ended <- err })
	<-reached
	p.Send(inTxn(id, message(100, "late")))
	p.Send(message(101, "plain"))
	for range 2 { // the group in flight, and the one behind it
		step <- struct{}{}
		<-reached
	}
	if r := p.receipt(); r.sequence != 100 || !errors.Is(r.err, txn.ErrNotAllowed) {
		t.Fatalf("late send: %+v", r)
	}
	if r := p.receipt(); r.sequence != 101 || r.err != nil {
		t.Fatalf("plain send: %+v", r)
	}
	if len(ended) > 0 {
		t.Fatal("the abort took two groups only: the test shows nothing")
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
