package topic

import (
	"errors"
	"testing"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// TestUnackedLimitOfAConsumer: delivery stops at the limit and goes on at half of it; permits that come meanwhile count.
func TestUnackedLimitOfAConsumer(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.MaxUnackedMessages = 4 })
	p := w.produce("a")
	c := w.subscribe("a", "s", shared)
	at, _ := sendMany(p, 8)
	c.want("m0", "m1", "m2", "m3")
	c.wantNothing(w, "a")
	c.Flow(10)
	c.ack(at[1])
	c.wantNothing(w, "a")
	c.ack(at[0])
	c.want("m4", "m5")
	c.wantNothing(w, "a")
}

// TestUnackedLimitOfASubscription: the limit counts all consumers together.
func TestUnackedLimitOfASubscription(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.MaxUnackedMessagesPerSubscription = 4 })
	p := w.produce("a")
	a, b := w.subscribe("a", "s", shared), w.subscribe("a", "s", shared)
	at, _ := sendMany(p, 8)
	w.quiet("a")
	if len(a.messages) != 2 || len(b.messages) != 2 {
		t.Fatalf("%d and %d messages, want 2 each", len(a.messages), len(b.messages))
	}
	a.ack(at[0])
	w.quiet("a")
	if n := len(a.messages) + len(b.messages); n != 4 {
		t.Fatalf("%d messages after one acknowledgement, want 4", n)
	}
	b.ack(at[1])
	w.quiet("a")
	if n := len(a.messages) + len(b.messages); n != 6 {
		t.Fatalf("%d messages after two acknowledgements, want 6", n)
	}
	b.Close() // what it had goes to the other, and counts no more for it
	w.quiet("a")
	if n := len(a.messages); n > 6 {
		t.Fatalf("%d messages", n)
	}
}

// TestUnackedCountsOverATransaction: a pending acknowledgement is neither unacknowledged nor done; an abort restores the count.
func TestUnackedCountsOverATransaction(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.MaxUnackedMessages = 2 })
	p := w.produce("a")
	c := w.subscribe("a", "s", shared)
	at, _ := sendMany(p, 6)
	c.want("m0", "m1")
	id := w.coord.begin()
	if err := c.ackIn(id, at[0], at[1]); err != nil {
		t.Fatal(err)
	}
	c.want("m2", "m3")
	c.wantNothing(w, "a")
	w.end(id, txn.Abort, "a", "s")
	c.wantNothing(w, "a")
	c.ack(at[2], at[3])
	c.want("m0", "m1")
	c.wantNothing(w, "a")
}

// TestUnackedCountsOfBatchIndexes: indexes count one by one, and none twice, however often they come back.
func TestUnackedCountsOfBatchIndexes(t *testing.T) {
	w := newWorld(t)
	p := w.produce("a")
	c := w.subscribe("a", "s", shared)
	at := p.send(batchOf(4, message(0, "b")))
	c.want("b")
	ack := func(id *txn.ID, acked int64) {
		t.Helper()
		cmd := ackOf(pulsarproto.CommandAck_Individual, at)
		cmd.MessageId[0].AckSet = []int64{^acked}
		if id != nil {
			ackInTxn(*id, cmd)
		}
		if err := c.tryAck(cmd); err != nil {
			t.Fatal(err)
		}
	}
	want := func(n int) {
		t.Helper()
		if got := w.unackedOf("a", "s"); got != n {
			t.Fatalf("%d messages are unacknowledged, want %d", got, n)
		}
	}
	want(4)
	x := w.coord.begin()
	ack(&x, 0b0011)
	want(2)
	ack(nil, 0b0100)
	want(1)
	w.end(x, txn.Abort, "a", "s")
	if d := c.want("b")[0]; len(d.AckSet) != 1 || d.AckSet[0] != 0b0011 {
		t.Fatalf("given back with ack set %b", d.AckSet)
	}
	want(3)
	ack(nil, 0b1011)
	want(0)
}

// unackedOf returns what the subscription counts, which must be the sum over its consumers.
func (w *world) unackedOf(name, subscription string) int {
	w.t.Helper()
	counts := make(chan [2]int, 1)
	t := w.topics.loaded(parse(w.t, name).String())
	t.ask(func(bool) {
		s, sum := t.subscriptions[subscription], 0
		for _, c := range s.consumers {
			for _, u := range c.unacked {
				sum += int(u.messages)
			}
		}
		counts <- [2]int{s.unackedMessages, sum}
	})
	got := <-counts
	if got[0] != got[1] {
		w.t.Fatalf("the subscription counts %d unacknowledged messages, its consumers have %d", got[0], got[1])
	}
	return got[0]
}

func TestLimitsOfPolicies(t *testing.T) {
	policies := Policies{MaxConsumersPerSubscription: 2}
	w := newWorld(t, func(o *Options) { o.Policies = func(topicname.Name) Policies { return policies } })
	w.subscribe("a", "s", shared)
	c := w.subscribe("a", "s", shared)
	if _, err := w.trySubscribe("a", "s", shared); !errors.Is(err, ErrSubscriptionFull) {
		t.Fatalf("third consumer: %v", err)
	}
	policies = Policies{MaxConsumers: 2}
	if _, err := w.trySubscribe("a", "other", shared); !errors.Is(err, ErrTopicFull) {
		t.Fatalf("third consumer of the topic: %v", err)
	}
	c.Close()
	w.subscribe("a", "other", shared)
	policies = Policies{MaxSubscriptions: 2}
	if _, err := w.trySubscribe("a", "third", shared); !errors.Is(err, txn.ErrNotAllowed) {
		t.Fatalf("third subscription: %v", err)
	}
	w.subscribe("a", "reader", nonDurable)
	w.subscribe("a", "other", shared)
}
