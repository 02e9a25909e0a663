package conn

import (
	"context"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topicname"
)

// activeConsumerVersion is the protocol version from which clients know ACTIVE_CONSUMER_CHANGE.
//
// Source: Commands.peerSupportsActiveConsumerListener.
const activeConsumerVersion = 12

// consumer is the connection's end of a consumer.
type consumer struct {
	session *session
	id      uint64
	cancel  context.CancelFunc // of the attaching
	settled chan struct{}      // closed when the attaching has succeeded or failed

	// Guarded by session.mu.
	state attachment
	topic Consumer // nil unless the attaching succeeded

	// Guarded by outbox.mu.
	full     bool // the topic was told so and waits for Resume
	detached bool
}

// subscribe attaches a consumer. A repeat for one that is attached succeeds.
// Errors: InvalidTopicName, ServiceNotReady while one of the same id is coming or going, and those of Topics.Subscribe.
//
// Source: PulsarApi.proto CommandSubscribe; ServerCnx.handleSubscribe.
func (s *session) subscribe(cmd *pulsarproto.CommandSubscribe) {
	requestID := cmd.GetRequestId()
	name, err := topicname.Parse(cmd.GetTopic())
	if err != nil {
		s.fail(pulsarproto.BaseCommand_SUBSCRIBE, requestID, err)
		return
	}
	c := s.addConsumer(cmd.GetConsumerId(), requestID)
	if c == nil {
		return
	}
	ctx, cancel := context.WithCancel(s.ctx)
	c.cancel = cancel
	s.requests.Go(func() { s.attachConsumer(ctx, c, name, cmd) })
}

// addConsumer returns a new consumer, or answers the request by the one that has the id already.
func (s *session) addConsumer(id, requestID uint64) *consumer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.consumers[id]; c != nil {
		if c.state == attached {
			s.succeed(requestID)
		} else {
			s.fail(pulsarproto.BaseCommand_SUBSCRIBE, requestID, notReady("Consumer", c.state))
		}
		return nil
	}
	c := &consumer{session: s, id: id, settled: make(chan struct{})}
	if s.consumers == nil {
		s.consumers = make(map[uint64]*consumer)
	}
	s.consumers[id] = c
	return c
}

// attachConsumer asks the topic and answers the request.
func (s *session) attachConsumer(ctx context.Context, c *consumer, name topicname.Name, cmd *pulsarproto.CommandSubscribe) {
	defer c.cancel()
	defer close(c.settled)
	topic, err := s.services.Topics.Subscribe(ctx, name, s.caller, cmd, c)
	if err == nil {
		err = s.consumerAttached(cmd.GetRequestId(), c, topic)
	} else {
		s.forgetConsumer(c)
	}
	if err != nil {
		s.out.detachConsumer(c)
		s.fail(pulsarproto.BaseCommand_SUBSCRIBE, cmd.GetRequestId(), err)
	}
}

// consumerAttached answers the request, unless the consumer was closed or disconnected meanwhile. It holds mu from the
// new state to the answer, so that CLOSE_CONSUMER cannot come before SUCCESS.
func (s *session) consumerAttached(requestID uint64, c *consumer, topic Consumer) error {
	s.mu.Lock()
	state := c.state
	switch state {
	case attaching:
		c.topic, c.state = topic, attached
		s.succeed(requestID)
	case detaching:
		c.topic = topic
	case lost:
		delete(s.consumers, c.id)
	}
	s.mu.Unlock()
	switch state {
	case attaching:
		return nil
	case lost:
		topic.Close()
	}
	return notReady("Consumer", state)
}

// forgetConsumer makes the id of a consumer that could not be attached free again.
func (s *session) forgetConsumer(c *consumer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.state != detaching {
		delete(s.consumers, c.id)
	}
}

// closeConsumer detaches a consumer for its client and answers when it is detached. An unknown one is detached already.
//
// Source: PulsarApi.proto CommandCloseConsumer; ServerCnx.handleCloseConsumer.
func (s *session) closeConsumer(cmd *pulsarproto.CommandCloseConsumer) {
	s.mu.Lock()
	c := s.consumers[cmd.GetConsumerId()]
	first := c != nil && c.state != detaching
	if first {
		c.state = detaching
	}
	s.mu.Unlock()
	if c == nil {
		s.succeed(cmd.GetRequestId())
		return
	}
	s.requests.Go(func() {
		if first {
			s.detachConsumer(c)
		}
		s.succeed(cmd.GetRequestId())
	})
}

// detachConsumer ends c, whose state is detaching.
func (s *session) detachConsumer(c *consumer) {
	c.cancel()
	<-c.settled
	s.out.detachConsumer(c)
	s.mu.Lock()
	topic := c.topic
	s.mu.Unlock()
	if topic != nil {
		topic.Close()
	}
	s.mu.Lock()
	delete(s.consumers, c.id)
	s.mu.Unlock()
}

// consumerOf returns the topic's end of a consumer that is attached, else nil.
func (s *session) consumerOf(id uint64) Consumer {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.consumers[id]
	if c == nil || c.state != attached {
		return nil
	}
	return c.topic
}

// Message implements ConsumerClient.
func (c *consumer) Message(d Delivery) {
	payload := d.Payload
	if !pulsarproto.HasChecksum(payload) { // its producer sent none, and Go consumers drop a MESSAGE without one
		payload = pulsarproto.AppendChecksummed(nil, payload)
	}
	c.session.out.message(c, func(b []byte) []byte {
		return pulsarproto.AppendMessageHead(b, pulsarproto.Message{
			ConsumerID:       c.id,
			LedgerID:         d.LedgerID,
			EntryID:          d.EntryID,
			Partition:        d.Partition,
			RedeliveryCount:  d.RedeliveryCount,
			AckSet:           d.AckSet,
			ConsumerEpoch:    d.ConsumerEpoch,
			HasConsumerEpoch: d.HasConsumerEpoch,
		}, len(payload))
	}, payload)
}

// Full implements ConsumerClient.
func (c *consumer) Full() bool { return c.session.out.isFull(c) }

// resume tells the topic that there is room again.
func (c *consumer) resume() {
	c.session.mu.Lock()
	topic, state := c.topic, c.state
	c.session.mu.Unlock()
	if state == attached {
		topic.Resume()
	}
}

// ActiveConsumerChange implements ConsumerClient.
func (c *consumer) ActiveConsumerChange(active bool) {
	if c.session.protocol < activeConsumerVersion {
		return
	}
	c.session.out.message(c, func(b []byte) []byte {
		return pulsarproto.AppendActiveConsumerChange(b, c.id, active)
	}, nil)
}

// Disconnect implements ConsumerClient.
func (c *consumer) Disconnect() {
	s := c.session
	s.mu.Lock()
	defer s.mu.Unlock()
	switch c.state {
	case attaching:
		c.state = lost
	case attached:
		c.state = lost
		delete(s.consumers, c.id)
		s.out.detachConsumer(c)
		s.out.queue(func(b []byte) []byte { return pulsarproto.AppendCloseConsumer(b, c.id) })
	}
}

// Alive implements ConsumerClient.
func (c *consumer) Alive(ctx context.Context) bool { return c.session.alive(ctx) }

// CnxID implements ConsumerClient.
func (c *consumer) CnxID() uint64 { return c.session.id }
