package topic

import (
	"cmp"
	"hash/fnv"
	"slices"
)

// elect chooses the consumer that is given messages on an Exclusive or Failover subscription. When it changes, the new one
// starts at the first message that is not acknowledged.
//
// Failover: among the consumers of the best priority, by name, a partition takes the one at its number, so that partitions
// spread; other topics take one by the hash of the topic's name.
// Source: AbstractDispatcherSingleActiveConsumer.pickAndScheduleActiveConsumer.
func (s *subscription) elect() {
	old := s.active
	s.active = nil
	if len(s.consumers) > 0 {
		slices.SortStableFunc(s.consumers, func(a, b *consumer) int {
			return cmp.Or(cmp.Compare(a.priority, b.priority), cmp.Compare(a.name, b.name))
		})
		best := 1
		for best < len(s.consumers) && s.consumers[best].priority == s.consumers[0].priority {
			best++
		}
		s.active = s.consumers[s.place()%best]
	}
	if s.active == old {
		return
	}
	s.rewind()
	if !s.failover() {
		return
	}
	for _, c := range s.consumers {
		c.client.ActiveConsumerChange(c == s.active)
	}
}

func (s *subscription) place() int {
	if p := s.topic.name.Partition(); p >= 0 {
		return p
	}
	h := fnv.New32a()
	h.Write([]byte(s.topic.fullName))
	return int(h.Sum32() >> 1)
}
