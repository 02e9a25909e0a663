package topic

import (
	"cmp"
	"slices"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
)

// shared reports whether several consumers are given messages: Shared and Key_Shared.
func (s *subscription) shared() bool {
	return s.kind == pulsarproto.CommandSubscribe_Shared || s.keyShared()
}

// level is the consumers of one priority.
type level struct {
	priority  int32
	consumers []*consumer
	turn      int
}

// join puts a consumer behind the others of its priority.
func (s *subscription) join(c *consumer) {
	i, found := s.levelOf(c)
	if !found {
		s.levels = slices.Insert(s.levels, i, level{priority: c.priority})
	}
	s.levels[i].consumers = append(s.levels[i].consumers, c)
}

// leave takes a consumer out of its level.
func (s *subscription) leave(c *consumer) {
	i, found := s.levelOf(c)
	if !found {
		return
	}
	l := &s.levels[i]
	l.consumers = slices.DeleteFunc(l.consumers, func(o *consumer) bool { return o == c })
	if len(l.consumers) == 0 {
		s.levels = slices.Delete(s.levels, i, i+1)
	}
}

func (s *subscription) levelOf(c *consumer) (int, bool) {
	return slices.BinarySearchFunc(s.levels, c.priority, func(l level, p int32) int { return cmp.Compare(l.priority, p) })
}

// receiver returns the next consumer in turn that takes messages, of the lowest level that has one; nil if there is none.
//
// Source: AbstractDispatcherMultipleConsumers.getNextConsumer.
func (s *subscription) receiver() *consumer {
	for i := range s.levels {
		l := &s.levels[i]
		for range l.consumers {
			l.turn++
			if c := l.consumers[l.turn%len(l.consumers)]; c.ready() {
				return c
			}
		}
	}
	return nil
}

// takes reports whether some consumer takes messages.
func (s *subscription) takes() bool {
	if !s.shared() {
		return s.active != nil && s.active.ready()
	}
	return slices.ContainsFunc(s.consumers, (*consumer).ready)
}

// dispatchToMany delivers as long as some consumer takes messages and there are any for it. What comes again goes before what
// waits for its consumer, and that before what is new: so the messages of a key keep their order.
func (s *subscription) dispatchToMany() {
	s.releaseDue()
	for s.seeking == 0 && !s.overloaded {
		if !s.takes() {
			s.topic.cache.budget.relieve(s)
			return
		}
		e, known := s.nextAgain()
		if e == nil && known {
			if s.serveWaiting() {
				continue
			}
			if s.looksFarAhead() {
				break
			}
			e, _ = s.nextNew()
		}
		if e == nil {
			break
		}
		s.route(e)
	}
	s.awaitDue()
}

// Bounds of how far delivery looks ahead, in entries that wait for their consumer.
//
// Source: broker.conf keySharedLookAheadMsgInReplayThresholdPerConsumer, keySharedLookAheadMsgInReplayThresholdPerSubscription.
const (
	aheadPerConsumer     = 2000
	aheadPerSubscription = 20000
)

// looksFarAhead reports whether so much waits that nothing new is looked at.
func (s *subscription) looksFarAhead() bool {
	return s.parked.len() >= min(aheadPerSubscription, aheadPerConsumer*len(s.consumers)) || s.delayed.full()
}

// route gives e to its consumer, or lets it wait for that, or for its time.
func (s *subscription) route(e *ledger.Entry) {
	f := pulsarproto.ReadDeliveryFields(e.Payload)
	if s.delays(e, &f) {
		return
	}
	key := s.keyOf(&f)
	if key == 0 {
		s.give(s.receiver(), e, 0)
		return
	}
	if s.passes(e.Position, key) {
		return
	}
	c := s.owner(key)
	if s.parked.keys[key] == nil && c != nil && c.ready() && !s.blocked(key, c) {
		s.giveKeyed(c, e, key, &f)
		return
	}
	s.parked.add(key, e.Position)
	s.offerKey(key)
}

// keyOf returns the key that ties e to one consumer.
func (s *subscription) keyOf(f *pulsarproto.DeliveryFields) waitKey {
	if s.keyShared() {
		return stickyKey(f)
	}
	return chunkKey(f)
}

// owner returns the consumer of a key, or nil.
func (s *subscription) owner(key waitKey) *consumer {
	if s.keyShared() {
		return s.sticky.owner(key)
	}
	return s.chunkOwner(key)
}

// passes reports whether nobody is to be given p now. A transaction that holds it, or a part of it, holds its key.
func (s *subscription) passes(p ledger.Position, key waitKey) bool {
	whole, indexes := s.pending.Hidden(p)
	if s.ordersKeys() && (whole || !indexes.Empty()) {
		s.holders.found(p, key)
	}
	if whole {
		s.passOver(p, nil)
	}
	if whole || s.cursor.Done(p) {
		delete(s.given, p)
		return true
	}
	return false
}

// give delivers what of e is due.
func (s *subscription) give(c *consumer, e *ledger.Entry, key waitKey) {
	if indexes, due := s.due(e); due {
		c.deliver(e, key, indexes)
	}
}

func (s *subscription) giveKeyed(c *consumer, e *ledger.Entry, key waitKey, f *pulsarproto.DeliveryFields) {
	if s.keyShared() {
		if !s.ordersKeys() {
			key = 0 // nobody asks who holds it
		}
		s.give(c, e, key)
		return
	}
	s.give(c, e, 0)
	s.chunkGiven(key, f)
}

// serveWaiting delivers one entry that waited for its consumer, the first of those of a consumer that takes messages.
func (s *subscription) serveWaiting() bool {
	if s.parked.ready == 0 {
		return false
	}
	for _, c := range s.consumers {
		for c.ready() {
			k := s.parked.first(c)
			if k == nil {
				break
			}
			p := k.positions[0]
			e, _, known := s.lookup(p)
			if !known {
				break
			}
			if e == nil || e.Position != p || s.passes(p, k.key) {
				s.parked.pop(k)
				continue
			}
			if s.blocked(k.key, c) {
				s.parked.block(k)
				continue
			}
			s.parked.pop(k)
			f := pulsarproto.ReadDeliveryFields(e.Payload)
			s.giveKeyed(c, e, k.key, &f)
			return true
		}
	}
	return false
}

// offerKey lets the consumer of key be given what waits of it, if it may.
func (s *subscription) offerKey(key waitKey) {
	if s.parked.keys[key] == nil {
		return
	}
	if c := s.owner(key); c != nil && !s.blocked(key, c) {
		s.parked.offer(key, c)
	}
}

// lookAgain puts back what waits, because consumers came or went.
func (s *subscription) lookAgain() {
	s.redeliver.AddAll(s.parked.clear(s.consumers))
}
