package topic

import (
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topic/activeconsumer"
)

func (s *subscription) failover() bool { return s.kind == pulsarproto.CommandSubscribe_Failover }

// elect chooses the consumer that is given messages on an Exclusive or Failover subscription. When it changes, the new one
// starts at the first message that is not acknowledged. On Failover it starts Options.FailoverDelay later, so that
// acknowledgements of the one before still count.
//
// Source: AbstractDispatcherSingleActiveConsumer.scheduleReadOnActiveConsumer.
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
