package topic

import (
	"fmt"
	"maps"
	"slices"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
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
	messagesOut  uint64
	bytesOut     uint64
	autoConsume  bool // takes the schema of the topic

	permits  int64 // in messages; below 0 by the rest of a batch
	epoch    uint64
	hasEpoch bool
	// unacked is what the consumer of a Shared subscription has, with the number of messages; unackedMessages is their sum.
	unacked         map[ledger.Position]uint32
	unackedMessages int
}

var _ cnx.Consumer = (*consumer)(nil)

// Flow implements cnx.Consumer.
func (c *consumer) Flow(permits uint32) {
	c.topic.post(func(bool) { c.permits += int64(permits) })
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
			for _, p := range slices.SortedFunc(maps.Keys(c.unacked), ledger.Position.Compare) { // in order each costs least
				c.returns(p)
			}
		default:
			for _, id := range cmd.GetMessageIds() {
				c.returns(ledger.Position{Ledger: id.GetLedgerId(), Entry: id.GetEntryId()})
			}
		}
	})
}

// returns takes back what the consumer has of p and queues it.
func (c *consumer) returns(p ledger.Position) {
	messages, has := c.unacked[p]
	if !has {
		return
	}
	delete(c.unacked, p)
	c.unackedMessages -= int(messages)
	c.subscription.again(p, nil)
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
			done(last, t.messageID(c.subscription.cursor.Frontier(), -1), nil)
		})
	})
}

// messageID returns the wire's form of the position before p.
func (t *Topic) messageID(p ledger.Position, batchIndex int32) *pulsarproto.MessageIdData {
	entry, partition := p.Entry-1, int32(t.name.Partition())
	return &pulsarproto.MessageIdData{LedgerId: &p.Ledger, EntryId: &entry, Partition: &partition, BatchIndex: &batchIndex}
}
