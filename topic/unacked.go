package topic

import (
	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
)

// unacked is what a consumer of a Shared or Key_Shared subscription has of an entry, and what neither it nor anybody else has
// acknowledged, be it in a transaction.
type unacked struct {
	messages uint32
	indexes  ledger.Bits // of the batch; nil: all of it
	key      waitKey     // Key_Shared
}

// gave notes that the consumer was given e, or indexes of it.
func (c *consumer) gave(e *ledger.Entry, key waitKey, indexes ledger.Bits) {
	s := c.subscription
	had, has := c.unacked[e.Position]
	now := unacked{messages: e.NumMessages, key: key}
	if indexes != nil && (!has || had.indexes != nil) {
		now.indexes = had.indexes.Or(indexes)
		now.messages = uint32(now.indexes.Count())
	}
	c.unacked[e.Position] = now
	c.count(int(now.messages) - int(had.messages))
	if !has && key != 0 {
		s.holders.add(key, c)
	}
}

// count changes the number of messages that the consumer has not acknowledged, and holds the limits: at a limit delivery
// stops, and goes on when half of it is left.
//
// Source: Consumer.addAndGetUnAckedMsgs, PersistentDispatcherMultipleConsumers.addUnAckedMessages.
func (c *consumer) count(messages int) {
	s, options := c.subscription, c.topic.options
	c.unackedMessages += messages
	s.unackedMessages += messages
	c.overloaded = overloaded(c.overloaded, c.unackedMessages, options.MaxUnackedMessages)
	s.overloaded = overloaded(s.overloaded, s.unackedMessages, options.MaxUnackedMessagesPerSubscription)
}

func overloaded(already bool, messages, limit int) bool {
	switch {
	case limit < 0:
		return false
	case already:
		return messages > limit/2
	}
	return messages >= limit
}

// take takes p from what the consumer has to acknowledge.
func (c *consumer) take(p ledger.Position) (taken unacked, had bool) {
	if taken, had = c.unacked[p]; had {
		delete(c.unacked, p)
		c.count(-int(taken.messages))
	}
	return taken, had
}

// takeIndexes takes indexes of the batch of size messages at p from it. It reports whether the consumer had some, and whether
// it has any left.
func (c *consumer) takeIndexes(p ledger.Position, acked ledger.Bits, size int) (had, left bool) {
	has, had := c.unacked[p]
	if !had {
		return false, false
	}
	if has.indexes == nil {
		has.indexes = ledger.AllBits(size)
	}
	has.indexes = has.indexes.AndNot(acked)
	messages := uint32(has.indexes.Count())
	c.count(int(messages) - int(has.messages))
	has.messages = messages
	c.unacked[p] = has
	return true, messages > 0
}

// taken takes what is acknowledged out of what consumers have to acknowledge. What a transaction holds is neither unacknowledged
// nor done: it counts again when it is delivered again.
func (s *subscription) taken(a *ackItem) {
	if s.shared() && !a.cumulative {
		for _, hold := range a.holds {
			s.takeHold(a.consumer, hold.Position, hold.Acked, a.inTxn)
		}
	}
	s.pruneSizes()
}

// takeHold is taken for one entry.
func (s *subscription) takeHold(by *consumer, p ledger.Position, acked ledger.Bits, inTxn bool) {
	done := s.cursor.Done(p)
	if !inTxn && acked == nil && !done {
		return // there is no such entry
	}
	whole := acked == nil || done || s.held(p)
	batch := s.sizes[p] > 0
	// Parts of a batch may be with several consumers, an entry without parts is with one, most often the one that acknowledges.
	if (whole && s.takeWhole(by, p) || !whole && s.takePart(by, p, acked)) && !batch {
		return
	}
	for _, c := range s.consumers {
		switch {
		case c == by:
		case !whole:
			s.takePart(c, p, acked)
		case s.takeWhole(c, p) && !batch:
			return
		}
	}
}

func (s *subscription) takePart(c *consumer, p ledger.Position, acked ledger.Bits) bool {
	had, left := c.takeIndexes(p, acked, s.batchSize(p))
	if had && !left {
		s.takeWhole(c, p)
	}
	return had
}

func (s *subscription) takeWhole(c *consumer, p ledger.Position) bool {
	was, had := c.take(p)
	if had {
		s.letGo(c, p, was.key)
	}
	return had
}

// held reports whether nothing of the batch at p is left that neither the cursor nor a transaction has.
func (s *subscription) held(p ledger.Position) bool {
	whole, indexes := s.pending.Hidden(p)
	return whole || indexes.Or(s.cursor.Acked(p)).Count() >= s.batchSize(p)
}
