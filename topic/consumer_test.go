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

func redeliver(positions ...ledger.Position) *pulsarproto.CommandRedeliverUnacknowledgedMessages {
	cmd := &pulsarproto.CommandRedeliverUnacknowledgedMessages{}
	for _, p := range positions {
		cmd.MessageIds = append(cmd.MessageIds, idOf(p))
	}
	return cmd
}

// sendMany sends n messages m0, m1, ... and returns their positions and payloads.
func sendMany(p *testProducer, n int) (at []ledger.Position, payloads []string) {
	p.t.Helper()
	for i := range n {
		payloads = append(payloads, fmt.Sprint("m", i))
		at = append(at, p.send(message(uint64(i), payloads[i])))
	}
	return at, payloads
}

func TestFilteredEntriesCostNoPermits(t *testing.T) { // FC-23
	w := newWorld(t, func(o *Options) { o.CacheBytes = 1 })
	p := w.produce("a")
	c, err := w.trySubscribe("a", "s")
	if err != nil {
		t.Fatal(err)
	}
	c.Flow(10)
	commit := func(payload string) {
		id := w.coord.begin()
		p.send(inTxn(id, message(0, payload)))
		w.end(id, txn.Commit, "a", "")
	}
	for range 3 {
		commit("c")
	}
	id := w.coord.begin()
	for range 200 {
		p.Send(inTxn(id, message(0, "aborted")))
	}
	for range 200 {
		p.receipt()
	}
	w.end(id, txn.Abort, "a", "")
	for range 3 {
		commit("c")
	}
	c.want("c", "c", "c", "c", "c", "c")
	c.Close()

	p = w.produce("b")
	at, payloads := sendMany(p, 200)
	c = w.subscribe("b", "s", earliest)
	c.want(payloads...)
	if err := c.ackIn(w.coord.begin(), at...); err != nil {
		t.Fatal(err)
	}
	c.Close()
	sendMany(p, 5)
	if c, err = w.trySubscribe("b", "s"); err != nil {
		t.Fatal(err)
	}
	c.Flow(10)
	c.want("m0", "m1", "m2", "m3", "m4")
}

func TestPermits(t *testing.T) {
	w := newWorld(t)
	p := w.produce("a")
	c, err := w.trySubscribe("a", "s")
	if err != nil {
		t.Fatal(err)
	}
	p.send(batchOf(5, message(0, "batch")))
	p.send(message(5, "one"))
	p.send(message(6, "two"))
	c.wantNothing(w, "a")
	c.Flow(2)
	c.want("batch")
	c.wantNothing(w, "a") // 3 below zero
	c.Flow(3)
	c.wantNothing(w, "a")
	c.Flow(1)
	c.want("one")
	c.wantNothing(w, "a")
	c.setFull(true)
	c.Flow(5)
	c.wantNothing(w, "a")
	c.setFull(false)
	c.Resume()
	c.want("two")
}

// TestCatchUp reads a long backlog from the store in pages, over three ledgers with holes, plain and in transactions.
func TestCatchUp(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.CacheBytes = 1 })
	var want []string
	for load := range 3 {
		p := w.produce("a")
		for i := range 300 {
			payload := fmt.Sprintf("%d-%d", load, i)
			if i%50 == 7 {
				id := w.coord.begin()
				p.send(inTxn(id, message(uint64(i), "aborted")))
				w.end(id, txn.Abort, "a", "")
			}
			p.Send(message(uint64(i), payload))
			p.receipt()
			want = append(want, payload)
		}
		w.restart()
	}
	c := w.subscribe("a", "s", earliest)
	c.want(want[:900]...)
	c.wantNothing(w, "a")
	cmd := ackOf(pulsarproto.CommandAck_Cumulative, w.lastPosition("a"))
	if err := c.tryAck(cmd); err != nil {
		t.Fatal(err)
	}
	c.Close()
	c = w.subscribe("a", "s")
	c.wantNothing(w, "a")
	w.produce("a").send(message(0, "new"))
	c.want("new")
}

func (w *world) lastPosition(name string) ledger.Position {
	w.t.Helper()
	c := w.subscribe(name, "last", nonDurable)
	defer c.Close()
	last, _ := c.lastMessageID()
	return last
}

func TestShared(t *testing.T) {
	w := newWorld(t)
	p := w.produce("a")
	a, b := w.subscribe("a", "s", shared), w.subscribe("a", "s", shared)
	at, payloads := sendMany(p, 10)
	w.quiet("a")
	if len(a.messages) != 5 || len(b.messages) != 5 {
		t.Fatalf("%d and %d messages, want 5 each", len(a.messages), len(b.messages))
	}
	var ofA []string
	for range 5 {
		ofA = append(ofA, string(a.next().Payload))
	}
	for range 5 {
		b.next()
	}
	// Whoever has it may be asked to acknowledge it, others may do it too.
	mine := at[slices.Index(payloads, ofA[0])]
	b.ack(mine)
	// Only what a consumer has is taken back.
	b.Redeliver(redeliver(mine, at[slices.Index(payloads, ofA[1])]))
	a.wantNothing(w, "a")
	again := at[slices.Index(payloads, ofA[2])]
	a.Redeliver(redeliver(again))
	w.quiet("a")
	taker := a
	if len(b.messages) > 0 {
		taker = b
	}
	if d := taker.next(); position(d) != again || d.RedeliveryCount != 1 {
		t.Fatalf("redelivered %v with count %d", position(d), d.RedeliveryCount)
	}
	a.Close()
	w.quiet("a")
	got := len(b.messages)
	if taker == b {
		got++
	}
	if got != 4 {
		t.Fatalf("%d messages of a closed consumer went to the other, want 4", got)
	}
}

func TestExclusive(t *testing.T) {
	w := newWorld(t)
	p := w.produce("a")
	at, _ := sendMany(p, 3)
	c := w.subscribe("a", "s", earliest)
	if _, err := w.trySubscribe("a", "s"); !errors.Is(err, ErrConsumerBusy) {
		t.Fatalf("second consumer: %v", err)
	}
	if _, err := w.trySubscribe("a", "s", shared); !errors.Is(err, ErrConsumerBusy) {
		t.Fatalf("consumer of another type: %v", err)
	}
	c.want("m0", "m1", "m2")
	c.ack(at[1])
	c.Redeliver(redeliver(at[0])) // ids do not count
	c.want("m0", "m2")
	epoch := uint64(4)
	all := redeliver()
	all.ConsumerEpoch = &epoch
	c.Redeliver(all)
	for _, d := range c.want("m0", "m2") {
		if !d.HasConsumerEpoch || d.ConsumerEpoch != 4 || d.RedeliveryCount != 0 {
			t.Fatalf("redelivered as %+v", d)
		}
	}
	c.dead = true
	next := w.subscribe("a", "s")
	next.want("m0", "m2")
	if err := c.tryAck(ackOf(pulsarproto.CommandAck_Individual, at[0])); err != nil {
		t.Fatalf("acknowledgement of a consumer that was taken away: %v", err)
	}
}

func TestSubscriptionTypesAndNames(t *testing.T) {
	w := newWorld(t)
	if _, err := w.trySubscribe("a", "s", ofType(4)); !errors.Is(err, txn.ErrNotAllowed) {
		t.Errorf("type 4: %v", err)
	}
	for _, name := range []string{"", "pulsar.dedup"} {
		if _, err := w.trySubscribe("a", name); !errors.Is(err, ErrSubscriptionName) {
			t.Errorf("subscription %q: %v", name, err)
		}
	}
	if _, err := w.trySubscribe("a", "s", func(cmd *pulsarproto.CommandSubscribe) { cmd.ForceTopicCreation = ptr(false) }); !errors.Is(err, ErrTopicNotFound) {
		t.Errorf("topic that is not to be created: %v", err)
	}
	w.options.AllowAutoSubscriptionCreation = false
	w.restart()
	if _, err := w.trySubscribe("a", "s"); !errors.Is(err, ErrSubscriptionNotFound) {
		t.Errorf("subscription that is not to be created: %v", err)
	}
	w.subscribe("a", "reader", nonDurable)
}

// TestInitialPosition: Latest with an open transaction starts at the visible end.
func TestInitialPosition(t *testing.T) {
	w := newWorld(t)
	p := w.produce("a")
	p.send(message(0, "old"))
	id := w.coord.begin()
	p.send(inTxn(id, message(1, "t")))
	p.send(message(2, "behind"))
	latest, first := w.subscribe("a", "latest"), w.subscribe("a", "earliest", earliest)
	first.want("old")
	latest.wantNothing(w, "a")
	w.end(id, txn.Commit, "a", "")
	latest.want("t", "behind")
	first.want("t", "behind")
}

// TestPermitsOfPartsOfBatches: what of a batch is not given takes no permits: clients do not give these back.
func TestPermitsOfPartsOfBatches(t *testing.T) {
	for _, kind := range []pulsarproto.CommandSubscribe_SubType{pulsarproto.CommandSubscribe_Exclusive, pulsarproto.CommandSubscribe_Shared} {
		w := newWorld(t)
		p := w.produce("a")
		c, err := w.trySubscribe("a", "s", ofType(kind))
		if err != nil {
			t.Fatal(err)
		}
		at := p.send(batchOf(4, message(0, "batch")))
		c.Flow(4)
		c.want("batch")
		if err := c.tryAck(partOf(pulsarproto.CommandAck_Individual, at, 8)); err != nil { // all but the last
			t.Fatal(err)
		}
		c.Flow(4)
		for range 4 {
			c.Redeliver(redeliver())
			if d := c.want("batch")[0]; len(d.AckSet) != 1 || d.AckSet[0] != 8 {
				t.Fatalf("ack_set %b", d.AckSet)
			}
		}
		c.Redeliver(redeliver())
		c.wantNothing(w, "a")
	}
}

// TestReaderAndSubscriptionOfOneName: of the two that are made in one write the one that came first counts, and the other leaves
// nothing in the store.
func TestReaderAndSubscriptionOfOneName(t *testing.T) {
	w := newWorld(t)
	p := w.produce("a")
	release := w.hold()
	p.Send(message(0, "m"))
	w.posted("a")
	topic := w.topics.loaded(parse(t, "a").String())
	answers := make(chan error, 2)
	for i, options := range [][]subscribeOption{{nonDurable}, {}} {
		go func() {
			_, err := w.trySubscribe("a", "s", options...)
			answers <- err
		}()
		eventually(t, "it waits", func() bool {
			waiting := make(chan int, 1)
			topic.ask(func(bool) { waiting <- len(topic.queue.items) - topic.queue.head })
			return <-waiting == i+1
		})
	}
	release()
	if err := errors.Join(wait(t, answers), wait(t, answers)); !errors.Is(err, txn.ErrNotAllowed) {
		t.Errorf("%v, want that one is refused", err)
	}
	if n := w.keysUnder(w.space("a").SubscriptionsPrefix()); n != 0 {
		t.Errorf("%d keys of a subscription that does not exist", n)
	}
}

// TestReaderComesBackAsItsConnectionEnds: a reader that subscribes again is attached, also if the consumer that it had before goes
// away in the middle, and with it the subscription.
func TestReaderComesBackAsItsConnectionEnds(t *testing.T) {
	w := newWorld(t)
	at := w.produce("a").send(message(0, "m"))
	old := w.subscribe("a", "reader", nonDurable, startAt(at))
	old.want("m")
	release := w.hold()
	type attached struct {
		c   *testConsumer
		err error
	}
	again := make(chan attached, 1)
	go func() {
		c, err := w.trySubscribe("a", "reader", nonDurable, startAt(at))
		again <- attached{c, err}
	}()
	w.waitFor("a", "writes", 1, func(t *Topic) int {
		if t.writing == nil {
			return 0
		}
		return 1
	})
	old.Close()
	release()
	got := <-again
	if got.err != nil {
		t.Fatal(got.err)
	}
	got.c.Flow(1)
	got.c.want("m")
}
