package topic

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topic/stickykey"
)

func (s *subscription) failover() bool { return s.kind == pulsarproto.CommandSubscribe_Failover }

// elect chooses the consumer that is given messages on an Exclusive or Failover subscription. When it changes, the new one
// starts at the first message that is not acknowledged. On Failover it starts Options.FailoverDelay later, so that
// acknowledgements of the one before still count.
//
// Source: AbstractDispatcherSingleActiveConsumer.pickAndScheduleActiveConsumer, scheduleReadOnActiveConsumer.
func (s *subscription) elect() {
	old := s.active
	s.active = s.choose()
	if s.active == old {
		return
	}
	s.settling = true
	s.settledAt = s.topic.options.Now()
	if !s.failover() {
		return
	}
	if old != nil {
		s.settledAt = s.settledAt.Add(s.topic.options.FailoverDelay)
	}
	for _, c := range s.consumers {
		c.client.ActiveConsumerChange(c == s.active)
	}
}

// settle reports whether the active consumer may be given messages yet.
func (s *subscription) settle() bool {
	if !s.settling {
		return true
	}
	if s.topic.options.Now().Before(s.settledAt) {
		s.wakeAt(s.settledAt)
		return false
	}
	s.settling = false
	s.rewind()
	return true
}

// choose returns a consumer of the best priority. Sorted by name, a partition takes the one at its number, so that partitions
// spread; other topics take one by a ring of the names.
func (s *subscription) choose() *consumer {
	if len(s.consumers) == 0 {
		return nil
	}
	slices.SortStableFunc(s.consumers, func(a, b *consumer) int {
		return cmp.Or(cmp.Compare(a.priority, b.priority), cmp.Compare(a.name, b.name))
	})
	best := 1
	for best < len(s.consumers) && s.consumers[best].priority == s.consumers[0].priority {
		best++
	}
	if partition := s.topic.name.Partition(); partition >= 0 {
		return s.consumers[partition%best]
	}
	return s.nearest(s.consumers[:best])
}

// failoverPoints is the number of points of each name on the ring.
// Source: AbstractDispatcherSingleActiveConsumer.CONSUMER_CONSISTENT_HASH_REPLICAS.
const failoverPoints = 100

// nearest returns the consumer with the next point on the ring behind the hash of the topic's name.
func (s *subscription) nearest(consumers []*consumer) *consumer {
	if len(consumers) == 1 {
		return consumers[0]
	}
	const whole = int64(1) << 31 // does not fit an int of 32 bits
	at := int64(stickykey.Murmur([]byte(s.topic.fullName)))
	var found *consumer
	least := whole
	for _, c := range consumers {
		for i := range failoverPoints {
			distance := (int64(stickykey.Murmur([]byte(c.name+strconv.Itoa(i)))) - at + whole) % whole
			if distance < least {
				found, least = c, distance
			}
		}
	}
	return found
}
