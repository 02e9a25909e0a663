package topic

import (
	"sort"
	"time"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
)

// dispatch delivers as long as a consumer takes messages and there are any.
func (s *subscription) dispatch() {
	if s.shared() {
		s.dispatchToMany()
		return
	}
	for s.seeking == 0 && s.settle() {
		if !s.takes() {
			s.topic.cache.budget.relieve(s)
			return
		}
		e, indexes, found := s.nextEntry()
		if !found {
			return
		}
		s.active.deliver(e, 0, indexes)
	}
}

func (c *consumer) ready() bool {
	return c.attached && c.permits > 0 && !c.overloaded && !c.client.Full()
}

// deliver hands e, or indexes of it, to the consumer. key is given on Key_Shared. What is left out of a batch takes no permits.
//
// Source: Consumer.sendMessages; ConsumerImpl.receiveIndividualMessagesFromBatch, which gives no permits back for it.
func (c *consumer) deliver(e *ledger.Entry, key waitKey, indexes ledger.Bits) {
	s := c.subscription
	d := cnx.Delivery{
		LedgerID: e.Position.Ledger, EntryID: e.Position.Entry, Partition: int32(c.topic.name.Partition()),
		ConsumerEpoch: c.epoch, HasConsumerEpoch: c.hasEpoch, Payload: e.Payload,
	}
	permits := int64(e.NumMessages)
	if indexes != nil {
		d.AckSet, permits = indexes.AckSet(), int64(indexes.Count())
	}
	c.permits -= permits
	if e.NumMessages > 1 {
		s.sizes[e.Position] = e.BatchSize()
	}
	if s.shared() {
		d.RedeliveryCount = s.redelivered[e.Position]
		c.gave(e, key, indexes)
	}
	for _, out := range [...]*meter{&c.out, &s.out, &c.topic.out} {
		out.add(e.NumMessages, len(e.Payload))
	}
	if d.RedeliveryCount > 0 {
		c.repeated.add(e.NumMessages, len(e.Payload))
		s.repeated.add(e.NumMessages, len(e.Payload))
	}
	c.client.Message(d)
}

// nextEntry returns the next entry that may be delivered, and the indexes of it if not all. What is acknowledged or
// pending is passed over and costs nobody permits (FC-23).
func (s *subscription) nextEntry() (e *ledger.Entry, indexes ledger.Bits, found bool) {
	for {
		e, found = s.nextAgain()
		if e == nil && found {
			e, found = s.nextNew()
		}
		if e == nil || !found {
			return nil, nil, false
		}
		if indexes, due := s.due(e); due {
			return e, indexes, true
		}
	}
}

// nextAgain returns the first entry that is to be delivered again; nil if there is none. known is false if that must be read
// first.
func (s *subscription) nextAgain() (e *ledger.Entry, known bool) {
	for {
		r, some := s.redeliver.First()
		if !some {
			return nil, true
		}
		e, to, known := s.lookup(r.From)
		if !known {
			return nil, false
		}
		switch {
		case e == nil:
			s.redeliver.Remove(ledger.Range{From: r.From, To: to})
		case e.Position.Before(r.To):
			s.redeliver.Remove(ledger.Range{From: r.From, To: e.Position.Next()})
			return e, true
		default:
			s.redeliver.Remove(r)
		}
	}
}

// nextNew returns the first entry that was not looked at, as nextAgain does.
func (s *subscription) nextNew() (e *ledger.Entry, known bool) {
	for {
		s.read = s.cursor.SkipDone(s.read)
		if !s.read.Before(s.topic.maxRead()) {
			return nil, true
		}
		e, to, known := s.lookup(s.read)
		if !known {
			return nil, false
		}
		if e != nil {
			to = e.Position
		}
		s.cursor.Void(ledger.Range{From: s.read, To: to})
		s.read = to
		if e != nil {
			s.read = to.Next()
			return e, true
		}
	}
}

// due decides what of e the subscription is to be given: nothing, all (nil), or indexes of the batch.
func (s *subscription) due(e *ledger.Entry) (indexes ledger.Bits, due bool) {
	p := e.Position
	restricted, isRestricted := s.given[p]
	delete(s.given, p)
	if s.cursor.Done(p) {
		return nil, false
	}
	whole, hidden := s.pending.Hidden(p)
	if whole || hidden != nil {
		s.passOver(p, hidden)
	}
	if whole {
		return nil, false
	}
	acked := s.cursor.Acked(p)
	if acked == nil && hidden == nil && !isRestricted {
		return nil, true
	}
	all := ledger.AllBits(e.BatchSize())
	indexes = all.AndNot(acked).AndNot(hidden)
	if isRestricted {
		indexes = indexes.And(restricted)
	}
	if indexes.Empty() {
		return nil, false
	}
	if indexes.Count() == e.BatchSize() {
		return nil, true
	}
	return indexes, true
}

// lookup returns the first entry at or behind at that may be read; or, if it is nil, the position before which there is none.
// known is false if it must be read from the store: then the read is started, and the subscription dispatches after it.
func (s *subscription) lookup(at ledger.Position) (e *ledger.Entry, to ledger.Position, known bool) {
	t := s.topic
	limit := t.maxRead()
	if s.readsCompacted(at) {
		return s.lookupCompacted(at)
	}
	if t.cache.covers(at) {
		return t.cache.find(at, limit), limit, true
	}
	if s.ahead.generation == 0 && s.ahead.Contains(at) {
		entries := s.ahead.entries
		i := sort.Search(len(entries), func(i int) bool { return !entries[i].Position.Before(at) })
		if i < len(entries) {
			return &entries[i], s.ahead.To, true
		}
		return nil, s.ahead.To, true
	}
	s.readAhead(at, limit)
	return nil, at, false
}

const (
	// readBytes is about how much a subscription reads ahead.
	readBytes = 512 << 10
	// retryRead is the pause after a read that failed.
	retryRead = time.Second
)

// readAhead reads entries from at on. Nothing at or behind limit is asked for: what lies there now may be aborted and deleted
// by the time the answer is looked at.
func (s *subscription) readAhead(at, limit ledger.Position) {
	if s.reading {
		return
	}
	s.reading = true
	t := s.topic
	t.async(func() {
		got, err := t.store.page(t.ctx, t.keys, at, limit, readBytes)
		if err != nil && t.ctx.Err() == nil {
			t.log.Warn().Err(err).Str("sub", s.name).Msg("entries cannot be read, tried again later")
			select {
			case <-time.After(retryRead):
			case <-t.ctx.Done():
			}
		}
		t.post(func(alive bool) {
			s.reading = false
			if alive && err == nil && !s.gone {
				s.setAhead(got)
			}
		})
	})
}

// setAhead keeps what was read, on the budget of the caches.
func (s *subscription) setAhead(got page) {
	s.topic.cache.budget.used.Add(int64(got.bytes - s.ahead.bytes))
	s.ahead = got
}
