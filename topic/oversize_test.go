package topic

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// TestLengthsOfNames: one byte more than the bound is refused, by field and number.
func TestLengthsOfNames(t *testing.T) {
	w := newWorld(t)
	fits := strings.Repeat("é", MaxNameBytes/2)
	produce := func(change func(*pulsarproto.CommandProducer)) error {
		cmd := &pulsarproto.CommandProducer{}
		change(cmd)
		_, err := w.tryProduce("a", cmd)
		return err
	}
	cases := []struct {
		field string
		use   func(name string) error
	}{
		{"producer_name", func(name string) error {
			return produce(func(cmd *pulsarproto.CommandProducer) { cmd.ProducerName = &name })
		}},
		{"initial_subscription_name", func(name string) error {
			return produce(func(cmd *pulsarproto.CommandProducer) { cmd.InitialSubscriptionName = &name })
		}},
		{"subscription", func(name string) error { _, err := w.trySubscribe("a", name); return err }},
		{"consumer_name", func(name string) error { _, err := w.trySubscribe("a", "s", named(name)); return err }},
	}
	for _, c := range cases {
		t.Run(c.field, func(t *testing.T) {
			err := c.use(fits + "x")
			if !errors.Is(err, txn.ErrNotAllowed) || !strings.Contains(err.Error(), c.field+" of 1025 bytes, at most 1024") {
				t.Errorf("too long: %v", err)
			}
			if err := c.use(fits); err != nil {
				t.Errorf("as long as it may be: %v", err)
			}
		})
	}
	if err := produce(func(cmd *pulsarproto.CommandProducer) { cmd.InitialSubscriptionName = ptr(reservedSubscription) }); !errors.Is(err, ErrSubscriptionName) {
		t.Errorf("reserved initial subscription: %v", err)
	}
}

// TestManyProducersInATransaction: their names may fill a part of a request, and no more; nobody else notices.
func TestManyProducersInATransaction(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.MaxRequestBytes = 256 << 10 })
	id := w.coord.begin()
	long := strings.Repeat("x", MaxNameBytes-3)
	var refused, stored int
	var last *testProducer
	for i := range 80 {
		p := w.produceAs("a", fmt.Sprintf("%03d%s", i, long))
		p.Send(inTxn(id, message(0, "m")))
		switch r := p.receipt(); {
		case r.err == nil:
			stored++
			last = p
		case errors.Is(r.err, txn.ErrNotAllowed):
			refused++
		default:
			t.Fatal(r.err)
		}
	}
	if stored != 62 || refused != 18 {
		t.Fatalf("%d stored and %d refused", stored, refused)
	}
	last.send(inTxn(id, message(1, "known already")))
	last.Send(inTxn(id, message(2, strings.Repeat("x", 190<<10))))
	if r := last.receipt(); !errors.Is(r.err, txn.ErrNotAllowed) {
		t.Fatalf("message that does not fit beside the names: %+v", r)
	}
	last.send(message(3, strings.Repeat("x", 190<<10)))
	w.restart()
	w.end(id, txn.Commit, "a", "")
	c := w.subscribe("a", "s", earliest)
	for range stored + 2 {
		c.next()
	}
}

// TestTooLargeForTheStore: what the store refuses for its size is refused alone, and the topic stays open.
func TestTooLargeForTheStore(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.MaxRequestBytes = 64 << 20 }) // the store takes 6 MiB
	p := w.produce("a")
	c := w.subscribe("a", "s", shared)
	at := p.send(message(0, "first"))
	huge := strings.Repeat("x", 8<<20)
	id := w.coord.begin()
	done := make(chan error, 2)
	w.topics.loaded(parse(t, "a").String()).ask(func(bool) { // so that all are in one group
		for i, msg := range []cnx.Send{message(1, "a"), message(2, huge), inTxn(id, message(3, "b")), inTxn(id, message(4, huge)), message(5, "c")} {
			p.Send(msg)
			if i == 2 {
				c.Ack(ackOf(pulsarproto.CommandAck_Individual, at), func(err error) { done <- err })
			}
		}
	})
	for i := uint64(1); i <= 5; i++ {
		r := p.receipt()
		if tooLarge := i == 2 || i == 4; r.sequence != i || tooLarge != errors.Is(r.err, txn.ErrNotAllowed) || !tooLarge && r.err != nil {
			t.Fatalf("answer %d: %+v", i, r)
		}
	}
	if err := wait(t, done); err != nil {
		t.Fatal(err)
	}
	p.send(message(6, "d"))
	w.end(id, txn.Commit, "a", "")
	c.want("first", "a", "b", "c", "d")
	select {
	case <-p.disconnected:
		t.Fatal("the producer was disconnected")
	default:
	}
}
