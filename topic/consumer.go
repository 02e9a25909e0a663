package topic

import (
	"fmt"
	"maps"
	"slices"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
	"github.com/pulsar-tc/pulsar-tc/topic/stickykey"
)

// consumer is an attached consumer.
type consumer struct {
	topic        *Topic
	subscription *subscription
	id           uint64
	name         string
	priority     int32
	caller       cnx.Caller
	client       cnx.ConsumerClient
	attached     bool
	toldEnd      bool  // that a terminated topic has nothing more
	since        int64 // Unix ms
	out          meter
	repeated     meter // of out, what was delivered before
	autoConsume  bool  // takes the schema of the topic
	metadata     map[string]string

	flowed   int64 // Unix ms of the last FLOW; 0: none
	permits  int64 // in messages; below 0 by the rest of a batch
	epoch    uint64
	hasEpoch bool
	// unacked is what the consumer of a Shared or Key_Shared subscription has; unackedMessages is the sum of it.
	unacked         map[ledger.Position]unacked
	unackedMessages int
	overloaded      bool // takes nothing until it has acknowledged
	member          stickykey.Member
	waiting         keyHeap // keys of which it may be given what waits
}

var _ cnx.Consumer = (*consumer)(nil)

// Flow implements cnx.Consumer.
func (c *consumer) Flow(permits uint32) {
	c.topic.post(func(bool) {
		c.permits += int64(permits)
		c.flowed = c.topic.options.Now().UnixMilli()
	})
}

// Resume implements cnx.Consumer. The round behind the call delivers.
func (c *consumer) Resume() { c.topic.post(func(bool) {}) }

// Close implements cnx.Consumer.
func (c *consumer) Close() {
	done := make(chan struct{})
	c.topic.ask(func(alive bool) {
		defer close(done)
		if alive {
			c.subscription.remove(c)
		}
	})
	<-done
}

// Redeliver implements cnx.Consumer.
func (c *consumer) Redeliver(cmd *pulsarproto.CommandRedeliverUnacknowledgedMessages) {
	c.topic.post(func(alive bool) {
		if !alive || !c.attached {
			return
		}
		s := c.subscription
		switch {
		case !s.shared():
			if s.active != c {
				return
			}
			if cmd.ConsumerEpoch != nil {
				c.epoch, c.hasEpoch = cmd.GetConsumerEpoch(), true
			}
			s.rewind()
		case len(cmd.GetMessageIds()) == 0:
			c.returnAll(slices.Collect(maps.Keys(c.unacked)))
		default:
			positions := make([]ledger.Position, 0, len(cmd.GetMessageIds()))
			for _, id := range cmd.GetMessageIds() {
				positions = append(positions, ledger.Position{Ledger: id.GetLedgerId(), Entry: id.GetEntryId()})
			}
			c.returnAll(positions)
		}
	})
}

// returnAll takes back what the consumer has of positions, and queues it, counted. It costs one pass over what is queued.
func (c *consumer) returnAll(positions []ledger.Position) {
	s := c.subscription
	due := make([]ledger.Range, 0, len(positions))
	for _, p := range positions {
		was, had := c.take(p)
		if !had {
			continue
		}
		s.redelivered[p]++
		if s.restrict(p, was.indexes) {
			due = append(due, ledger.One(p))
		}
		s.letGo(c, p, was.key)
	}
	s.redeliver.AddAll(due)
}

// LastMessageID implements cnx.Consumer.
func (c *consumer) LastMessageID(done func(last, markDelete *pulsarproto.MessageIdData, err error)) {
	t := c.topic
	t.ask(func(alive bool) {
		if !alive {
			done(nil, nil, ErrPersistence)
			return
		}
		t.findLast(func(last *pulsarproto.MessageIdData, err error) {
			if err != nil {
				done(nil, nil, fmt.Errorf("last message of %s: %w", t.fullName, err))
				return
			}
			last = c.subscription.lastCompacted(last)
			done(last, t.messageID(c.subscription.cursor.Frontier(), -1), nil)
		})
	})
}

// messageID returns the wire's form of the position before p.
func (t *Topic) messageID(p ledger.Position, batchIndex int32) *pulsarproto.MessageIdData {
	entry, partition := p.Entry-1, int32(t.name.Partition())
	return &pulsarproto.MessageIdData{LedgerId: &p.Ledger, EntryId: &entry, Partition: &partition, BatchIndex: &batchIndex}
}
