package conn

import (
	"context"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topicname"
)

// activeConsumerVersion is the protocol version from which clients know ACTIVE_CONSUMER_CHANGE.
//
// Source: Commands.peerSupportsActiveConsumerListener.
const activeConsumerVersion = 12

// checksumVersion is the protocol version from which clients are sent checksums with their messages.
//
// Source: PulsarCommandSenderImpl.sendMessagesToConsumer, skipChecksumIfPresent.
const checksumVersion = 11

// javaClient is how the versions that Java clients announce begin.
//
// Source: apache/pulsar PR 19643; client libraries in other languages have texts of their own.
const javaClient = "Pulsar-Java"

// consumer is the connection's end of a consumer.
type consumer struct {
	attachment

	// Guarded by session.mu.
	topic Consumer // nil unless the attaching succeeded

	// Guarded by outbox.mu.
	full     bool // the topic was told so and waits for Resume
	detached bool
}

// subscribe attaches a consumer. A repeat for one that is attached succeeds.
// Errors: InvalidTopicName, AuthorizationError, ServiceNotReady while one of the same id is coming or going, TooManyRequests, and
// those of Topics.Subscribe.
//
// Source: PulsarApi.proto CommandSubscribe; ServerCnx.handleSubscribe.
func (r request) subscribe(cmd *pulsarproto.CommandSubscribe) {
	requestID := cmd.GetRequestId()
	name, err := parseTopic(cmd.GetTopic())
	if err != nil {
		r.fail(pulsarproto.BaseCommand_SUBSCRIBE, requestID, err)
		return
	}
	c := r.addConsumer(cmd, r.consumerRight(name, cmd.GetSubscription()))
	if c == nil {
		return
	}
	r.requests.Go(func() { r.attachConsumer(c, name, cmd) })
}

// addConsumer returns a new consumer, or answers the request by the one that has the id already.
func (r request) addConsumer(cmd *pulsarproto.CommandSubscribe, right right) *consumer {
	id, requestID, cost := cmd.GetConsumerId(), cmd.GetRequestId(), attachmentCost+proto.Size(cmd)
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.consumers[id]; c != nil {
		if c.state == attached {
			r.succeed(requestID)
		} else {
			r.fail(pulsarproto.BaseCommand_SUBSCRIBE, requestID, notReady("Consumer", c.state))
		}
		return nil
	}
	a, err := r.attach(id, right, cost, func() { delete(r.consumers, id) })
	if err != nil {
		r.fail(pulsarproto.BaseCommand_SUBSCRIBE, requestID, err)
		return nil
	}
	c := &consumer{attachment: a}
	if r.consumers == nil {
		r.consumers = make(map[uint64]*consumer)
	}
	r.consumers[id] = c
	return c
}

// attachConsumer asks the topic and answers the request.
func (r request) attachConsumer(c *consumer, name topicname.Name, cmd *pulsarproto.CommandSubscribe) {
	defer c.cancel()
	defer close(c.settled)
	topic, err := r.openConsumer(c, name, cmd)
	if err == nil {
		err = r.consumerAttached(cmd.GetRequestId(), c, topic)
	} else {
		c.forget()
	}
	if err != nil {
		r.out.detachConsumer(c)
		r.fail(pulsarproto.BaseCommand_SUBSCRIBE, cmd.GetRequestId(), err)
	}
}

func (r request) openConsumer(c *consumer, name topicname.Name, cmd *pulsarproto.CommandSubscribe) (Consumer, error) {
	if err := c.right.check(c.ctx); err != nil {
		return nil, err
	}
	return r.services.Topics.Subscribe(c.ctx, name, r.caller, cmd, c)
}

// consumerAttached answers the request, unless the consumer was closed or disconnected meanwhile. It holds mu from the
// new state to the answer, so that CLOSE_CONSUMER cannot come before SUCCESS.
func (r request) consumerAttached(requestID uint64, c *consumer, topic Consumer) error {
	r.mu.Lock()
	state := c.state
	switch state {
	case attaching:
		c.topic, c.state = topic, attached
		r.succeed(requestID)
	case detaching:
		c.topic = topic
	case lost:
		c.remove()
	}
	r.mu.Unlock()
	switch state {
	case attaching:
		return nil
	case lost:
		topic.Close()
	}
	return notReady("Consumer", state)
}

// closeConsumer detaches a consumer for its client and answers when it is detached. An unknown one is detached already.
//
// Source: PulsarApi.proto CommandCloseConsumer; ServerCnx.handleCloseConsumer.
func (r request) closeConsumer(cmd *pulsarproto.CommandCloseConsumer) {
	r.mu.Lock()
	c := r.consumers[cmd.GetConsumerId()]
	first := c != nil && c.leave()
	r.mu.Unlock()
	if c == nil {
		r.succeed(cmd.GetRequestId())
		return
	}
	r.requests.Go(func() {
		if first {
			r.detachConsumer(c)
		}
		r.succeed(cmd.GetRequestId())
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
	c.remove()
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
	switch {
	case c.session.protocol < checksumVersion:
		payload = pulsarproto.WithoutChecksum(payload)
	case !pulsarproto.HasChecksum(payload): // its producer sent none, and Go consumers drop a MESSAGE without one
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

// ReachedEndOfTopic implements ConsumerClient. Only Java clients are told: the Go client closes its connection when it is sent
// a command that it does not know, and the protocol has no feature flag for this one.
//
// Source: pulsar-client-go internal/connection.go, internalReceivedCommand.
func (c *consumer) ReachedEndOfTopic() {
	if !strings.HasPrefix(c.session.clientVersion, javaClient) {
		return
	}
	c.session.out.message(c, func(b []byte) []byte { return pulsarproto.AppendReachedEndOfTopic(b, c.id) }, nil)
}

// Disconnect implements ConsumerClient.
func (c *consumer) Disconnect() { c.disconnect() }

// disconnect makes the client look up again and returns what was attached, which somebody has to close; nil: nothing.
func (c *consumer) disconnect() Consumer {
	s := c.session
	s.mu.Lock()
	defer s.mu.Unlock()
	switch c.state {
	case attaching:
		c.state = lost
	case attached:
		c.state = lost
		c.remove()
		s.out.detachConsumer(c)
		s.out.queue(func(b []byte) []byte { return pulsarproto.AppendCloseConsumer(b, c.id) })
		return c.topic
	}
	return nil
}

// Alive implements ConsumerClient.
func (c *consumer) Alive(ctx context.Context) bool { return c.session.alive(ctx) }

// Peer implements ConsumerClient.
func (c *consumer) Peer() Peer { return c.session.peer() }
