package nonpersistent

import (
	"cmp"
	"slices"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topic/activeconsumer"
	"github.com/pulsar-tc/pulsar-tc/topic/stickykey"
)

// subscription exists while it has consumers.
type subscription struct {
	topic     *topic
	name      string
	kind      pulsarproto.CommandSubscribe_SubType
	consumers []*consumer // in order of priority level
	turn      int
	keys      stickykey.Selector         // of Key_Shared, otherwise nil
	policy    *pulsarproto.KeySharedMeta // of Key_Shared, what its first consumer asked for
	members   stickykey.Member
	active    *consumer // of Exclusive and Failover
}

// agrees reports whether a consumer wants keys to go the way that they go to those before it.
//
// Source: AbstractSubscription.checkForConsumerCompatibilityErrorWithDispatcher.
func (s *subscription) agrees(meta *pulsarproto.KeySharedMeta) bool {
	return s.policy.GetKeySharedMode() == meta.GetKeySharedMode() &&
		s.policy.GetAllowOutOfOrderDelivery() == meta.GetAllowOutOfOrderDelivery()
}

// deliver gives msg to one consumer, or to none if whoever should have it has no permits: then it is lost for the subscription.
func (s *subscription) deliver(msg cnx.Send) {
	c := s.receiver(msg)
	if c == nil {
		return
	}
	c.permits -= int64(max(msg.NumMessages, 1))
	c.client.Message(cnx.Delivery{
		Partition: int32(s.topic.name.Partition()), Payload: msg.Payload,
		ConsumerEpoch: c.epoch, HasConsumerEpoch: c.hasEpoch,
	})
}

func (s *subscription) receiver(msg cnx.Send) *consumer {
	switch {
	case s.keys != nil:
		if c := s.ofKey(msg.Metadata); c != nil && c.ready() {
			return c
		}
	case s.kind == pulsarproto.CommandSubscribe_Shared:
		return s.next()
	case s.active != nil && s.active.ready():
		return s.active
	}
	return nil
}

// next returns the next consumer in turn of the best priority level that has one with permits.
func (s *subscription) next() *consumer {
	for from := 0; from < len(s.consumers); {
		to := from + 1
		for to < len(s.consumers) && s.consumers[to].priority == s.consumers[from].priority {
			to++
		}
		for range s.consumers[from:to] {
			s.turn++
			if c := s.consumers[from+s.turn%(to-from)]; c.ready() {
				return c
			}
		}
		from = to
	}
	return nil
}

func (s *subscription) ofKey(metadata *pulsarproto.MessageMetadata) *consumer {
	member, found := s.keys.Select(stickykey.Hash(pulsarproto.StickyKey(metadata)))
	if !found {
		return nil
	}
	i := slices.IndexFunc(s.consumers, func(c *consumer) bool { return c.member == member })
	return s.consumers[i]
}

// add admits a consumer if the others do.
func (s *subscription) add(c *consumer, ranges []stickykey.Range) error {
	if s.keys != nil {
		s.members++
		c.member = s.members
		if err := s.keys.Add(c.member, c.name, ranges); err != nil {
			return cnx.Refuse(pulsarproto.ServerError_ConsumerAssignError, err.Error())
		}
	}
	s.consumers = append(s.consumers, c)
	slices.SortStableFunc(s.consumers, func(a, b *consumer) int { return cmp.Compare(a.priority, b.priority) })
	s.topic.consumers++
	before := s.active
	s.elect()
	if s.kind == pulsarproto.CommandSubscribe_Failover && before == s.active {
		c.client.ActiveConsumerChange(false)
	}
	return nil
}

// elect chooses the consumer that is given messages on Exclusive and Failover.
func (s *subscription) elect() {
	if s.keys != nil || s.kind == pulsarproto.CommandSubscribe_Shared {
		return
	}
	old := s.active
	s.active = s.choose()
	if s.active == old || s.kind != pulsarproto.CommandSubscribe_Failover {
		return
	}
	for _, c := range s.consumers {
		c.client.ActiveConsumerChange(c == s.active)
	}
}

func (s *subscription) choose() *consumer {
	if len(s.consumers) == 0 {
		return nil
	}
	candidates := make([]activeconsumer.Consumer, len(s.consumers))
	for i, c := range s.consumers {
		candidates[i] = activeconsumer.Consumer{Name: c.name, Priority: c.priority}
	}
	return s.consumers[activeconsumer.Choose(s.topic.name, candidates)]
}

func (s *subscription) remove(c *consumer) {
	i := slices.Index(s.consumers, c)
	if i < 0 {
		return
	}
	c.attached = false
	s.consumers = slices.Delete(s.consumers, i, i+1)
	s.topic.consumers--
	if s.keys != nil {
		s.keys.Remove(c.member)
	}
	s.elect()
	if len(s.consumers) == 0 && s.topic.subscriptions[s.name] == s {
		delete(s.topic.subscriptions, s.name)
	}
}

// disconnect takes all consumers away and tells all but one to come again.
func (s *subscription) disconnect(but *consumer) {
	for len(s.consumers) > 0 {
		c := s.consumers[0]
		s.remove(c)
		if c != but {
			c.client.Disconnect()
		}
	}
}
