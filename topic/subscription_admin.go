package topic

import (
	"context"
	"fmt"
	"slices"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
	"github.com/pulsar-tc/pulsar-tc/topicname"
)

// Subscriptions returns the names of the subscriptions of a topic, in order, those of readers among them.
// Errors: ErrTopicNotFound.
func (ts *Topics) Subscriptions(ctx context.Context, name topicname.Name) ([]string, error) {
	return ts.subscriptionNames(ctx, name, func(*subscription) bool { return true })
}

func (ts *Topics) subscriptionNames(ctx context.Context, name topicname.Name, wanted func(*subscription) bool) ([]string, error) {
	return askTopic(ctx, ts, name, func(t *Topic, answer func([]string, error)) {
		var names []string
		for _, s := range t.subscriptions {
			if !s.gone && wanted(s) {
				names = append(names, s.name)
			}
		}
		slices.Sort(names)
		answer(names, nil)
	})
}

// CreateSubscription makes a durable subscription. The message at position is the first that it is given; nil is the latest
// position, and the ids that stand for the earliest and the latest mean what they mean in a SEEK.
// Errors: ErrTopicNotFound, ErrSubscriptionExists, ErrSubscriptionName.
func (ts *Topics) CreateSubscription(ctx context.Context, name topicname.Name, named string, position *pulsarproto.MessageIdData) error {
	if named == "" || named == reservedSubscription {
		return ErrSubscriptionName
	}
	if err := checkLength("subscription", named); err != nil {
		return err
	}
	_, err := askTopic(ctx, ts, name, func(t *Topic, answer func(struct{}, error)) {
		t.queue.push(&createSubscription{topic: t, name: named, position: position, answer: onlyError(answer)})
	})
	return err
}

// createSubscription makes a subscription for an administrator.
type createSubscription struct {
	topic    *Topic
	name     string
	position *pulsarproto.MessageIdData // nil: latest
	answer   func(error)

	create *subscribeItem // makes it; nil if it exists
}

func (c *createSubscription) prepare(g *group) bool {
	t := c.topic
	if t.creating[c.name] {
		return false
	}
	if t.subscriptions[c.name] != nil {
		c.create = nil
		return true
	}
	start := t.maxRead()
	if c.position != nil {
		start = t.seekPosition(c.position, false)
	}
	c.create = &subscribeItem{topic: t, name: c.name, durable: true, at: &start}
	return c.create.prepare(g)
}

func (c *createSubscription) undo() {
	if c.create != nil {
		c.create.undo()
	}
}

func (c *createSubscription) done(g *group) {
	if c.create == nil {
		c.answer(fmt.Errorf("%w: %s", ErrSubscriptionExists, c.name))
		return
	}
	c.create.done(g)
	c.answer(c.create.err)
}

func (c *createSubscription) fail(err error) { c.answer(err) }

// DeleteSubscription deletes a subscription with its cursor and its pending acknowledgements: its part in open transactions
// counts as resolved. Without force it must have no consumers; with it they are disconnected.
// Errors: ErrTopicNotFound, ErrSubscriptionNotFound, ErrSubscriptionBusy.
func (ts *Topics) DeleteSubscription(ctx context.Context, name topicname.Name, named string, force bool) error {
	_, err := askSubscription(ctx, ts, name, named, func(s *subscription, answer func(struct{}, error)) {
		s.topic.queue.push(&unsubscribeItem{subscription: s, unused: !force, answer: onlyError(answer)})
	})
	return err
}

// ResetCursor makes position the next one that a subscription is given, or the one behind it. Consumers are disconnected first.
// Errors: ErrTopicNotFound, ErrSubscriptionNotFound.
func (ts *Topics) ResetCursor(ctx context.Context, name topicname.Name, named string, position *pulsarproto.MessageIdData, behind bool) error {
	_, err := askSubscription(ctx, ts, name, named, func(s *subscription, answer func(struct{}, error)) {
		to := s.topic.seekPosition(position, s.readCompacted)
		if behind && s.topic.exists(to) {
			to = to.Next()
		}
		s.disconnectAll()
		s.topic.queue.push(&seekItem{subscription: s, to: to, answer: onlyError(answer)})
	})
	return err
}

// ResetCursorToTime makes the first message that was published at millis, Unix time, or later the next one that a subscription
// is given. Consumers are disconnected first.
// Errors: ErrTopicNotFound, ErrSubscriptionNotFound.
func (ts *Topics) ResetCursorToTime(ctx context.Context, name topicname.Name, named string, millis uint64) error {
	_, err := askSubscription(ctx, ts, name, named, func(s *subscription, answer func(struct{}, error)) {
		s.disconnectAll()
		s.topic.findTime(millis, func(p ledger.Position, err error) {
			if err != nil {
				s.seeking = false
				answer(struct{}{}, err)
				return
			}
			s.topic.queue.push(&seekItem{subscription: s, to: p, answer: onlyError(answer)})
		})
	})
	return err
}
