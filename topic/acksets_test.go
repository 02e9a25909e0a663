package topic

import (
	"errors"
	"testing"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// ackSetOf acknowledges the first index of each of the batches at positions.
func ackSetOf(positions ...ledger.Position) *pulsarproto.CommandAck {
	cmd := ackOf(pulsarproto.CommandAck_Individual, positions...)
	for _, id := range cmd.MessageId {
		id.AckSet = []int64{-2}
	}
	return cmd
}

// TestAckSetsTooLargeTogether: a short command that names large batches takes no more memory than a message may.
func TestAckSetsTooLargeTogether(t *testing.T) {
	const size = 1 << 20 // 128 KiB for each set
	w := newWorld(t, func(o *Options) { o.MaxMessageSize = 1 << 20 })
	p := w.produce("a")
	c := w.subscribe("a", "s", shared)
	c.Flow(2 * size)
	at := p.send(batchOf(size, message(0, "b")))
	check := func(c *testConsumer) {
		t.Helper()
		same := make([]ledger.Position, 9)
		for i := range same {
			same[i] = at
		}
		for _, cmd := range []*pulsarproto.CommandAck{ackSetOf(same...), ackInTxn(w.coord.begin(), ackSetOf(same...))} {
			if err := c.tryAck(cmd); !errors.Is(err, txn.ErrNotAllowed) {
				t.Errorf("nine sets of 128 KiB: %v", err)
			}
		}
		long := ackSetOf(at)
		long.MessageId[0].AckSet = append(make([]int64, size/64), 0, 0, -1)
		long.MessageId[0].AckSet[0] = -1
		if err := c.tryAck(long); err != nil {
			t.Errorf("a set with words beyond the batch: %v", err)
		}
	}
	c.want("b")
	check(c)
	w.restart()
	p = w.produce("a")
	at = p.send(batchOf(size, message(1, "c")))
	w.restart()
	check(w.subscribe("a", "s", shared)) // the size has to be read
}

// TestReadsAreBounded: what many commands ask of stored entries is read for a few of them at once, and all are answered, by a topic
// that closes meanwhile, too.
func TestReadsAreBounded(t *testing.T) {
	w := newWorld(t)
	p := w.produce("a")
	at := p.send(batchOf(2, message(0, "b")))
	p.send(message(1, "last"))
	w.restart()
	c := w.subscribe("a", "s", shared)
	a := w.topics.loaded(parse(t, "a").String())
	for range maxReads {
		a.reads <- struct{}{}
	}
	const acks = 100
	done := make(chan error, acks)
	for range acks {
		c.Ack(ackSetOf(at), func(err error) { done <- err })
	}
	w.quiet("a")
	if len(done) > 0 {
		t.Fatalf("%d acknowledgements did not wait", len(done))
	}
	<-a.reads
	for range acks {
		if err := wait(t, done); err != nil {
			t.Fatal(err)
		}
	}
	a.reads <- struct{}{}
	last := make(chan error, 1)
	c.LastMessageID(func(_, _ *pulsarproto.MessageIdData, err error) { last <- err })
	w.restart()
	if err := wait(t, last); err != nil && !errors.Is(err, ErrPersistence) {
		t.Errorf("by a topic that closed: %v", err)
	}
}

// TestPartsAreBounded: small messages that say they are large batches cannot make a subscription keep sets without end, in
// transactions neither. What makes sets smaller goes on.
func TestPartsAreBounded(t *testing.T) {
	const size = 1 << 20 // 128 KiB for each set
	const batches = maxPartBytes/(size/8) + 1
	w := newWorld(t)
	p := w.produce("a")
	c := w.subscribe("a", "s", nonDurable, earliest)
	positions := make([]ledger.Position, batches)
	for i := range positions {
		positions[i] = p.send(batchOf(size, message(uint64(i), "b")))
		if err := c.tryAck(ackSetOf(positions[i])); (err == nil) != (i < batches-1) || err != nil && !errors.Is(err, txn.ErrNotAllowed) {
			t.Fatalf("batch %d of %d: %v", i, batches, err)
		}
	}
	last := positions[batches-1]
	if err := c.tryAck(ackInTxn(w.coord.begin(), ackSetOf(last))); !errors.Is(err, txn.ErrNotAllowed) {
		t.Errorf("in a transaction: %v", err)
	}
	more := ackSetOf(positions[1])
	more.MessageId[0].AckSet = []int64{-4}
	for what, cmd := range map[string]*pulsarproto.CommandAck{
		"more of a batch": more, "a whole batch": ackOf(pulsarproto.CommandAck_Individual, positions[0]),
	} {
		if err := c.tryAck(cmd); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := c.tryAck(ackInTxn(w.coord.begin(), ackSetOf(last))); err != nil {
		t.Errorf("in a transaction, with room again: %v", err)
	}
}

// TestLargePartsOfACursor: partly acknowledged batches that take more than a request together are stored one after the other.
func TestLargePartsOfACursor(t *testing.T) {
	const size, batches = 1 << 20, 60 // 7.5 MiB
	w := newWorld(t, func(o *Options) { o.MaxUnackedMessages = 1 << 30 })
	p := w.produce("a")
	c := w.subscribe("a", "s", shared)
	c.Flow(batches * size)
	positions := make([]ledger.Position, batches)
	for i := range positions {
		positions[i] = p.send(batchOf(size, message(uint64(i), "b")))
	}
	done := make(chan error, 2)
	w.topics.loaded(parse(t, "a").String()).ask(func(bool) { // so that all are in one group
		c.Ack(ackSetOf(positions[:batches/2]...), func(err error) { done <- err })
		c.Ack(ackSetOf(positions[batches/2:]...), func(err error) { done <- err })
	})
	for range 2 {
		if err := wait(t, done); err != nil {
			t.Fatal(err)
		}
	}
	w.restart()
	c = w.subscribe("a", "s", shared)
	c.Flow(batches * size)
	for range positions {
		if d := c.next(); len(d.AckSet) != size/64 || d.AckSet[0] != -2 {
			t.Fatalf("given again with ack set %x...", d.AckSet[:min(1, len(d.AckSet))])
		}
	}
}
