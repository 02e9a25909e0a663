package topic

import (
	"context"
	"fmt"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// Subscriptions returns the names of the subscriptions of a topic, in order, those of readers among them.
// Errors: ErrTopicNotFound.
func (ts *Topics) Subscriptions(ctx context.Context, name topicname.Name) ([]string, error) {
	return askTopic(ctx, ts, name, func(t *Topic, answer func([]string, error)) {
		var names []string
		for _, s := range t.subscriptions {
			if !s.gone {
				names = append(names, s.name)
			}
		}
		slices.Sort(names)
		answer(names, nil)
	})
}

// storedSubscriptions reads the names of the durable subscriptions of a topic, whoever serves it. A topic that does not exist has
// none.
func (ts *Topics) storedSubscriptions(ctx context.Context, name topicname.Name) ([]string, error) {
	named, err := ts.store.get(ctx, ts.nameKey(name), clientv3.WithKeysOnly())
	if err != nil || len(named.Kvs) == 0 {
		return nil, err
	}
	keys := ts.options.Keys.Topic(uint64(named.Kvs[0].CreateRevision))
	var names []string
	end := clientv3.GetPrefixRangeEnd(keys.SubscriptionsPrefix())
	for from := keys.SubscriptionsPrefix(); ; {
		found, err := ts.store.get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(1), clientv3.WithKeysOnly())
		if err != nil || len(found.Kvs) == 0 {
			return names, err
		}
		id, _, ok := keys.ParseSubscription(found.Kvs[0].Key)
		if !ok {
			return nil, &txn.CorruptError{Key: string(found.Kvs[0].Key), Reason: errUnknownKey.Error()}
		}
		value, err := ts.store.get(ctx, keys.Subscription(id).Name())
		if err != nil {
			return nil, err
		}
		for _, kv := range value.Kvs { // none: it has just been deleted
			names = append(names, string(kv.Value))
		}
		from = keys.Subscription(id + 1).Prefix()
	}
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
	if _, twice := t.creating[c.name]; twice {
		return false
	}
	if existing := t.subscriptions[c.name]; existing != nil {
		c.create = nil
		return !existing.gone
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
		s.topic.queue.push(&unsubscribeItem{subscription: s, force: force, answer: onlyError(answer)})
	})
	return err
}

// ResetCursor makes position the next one that a subscription is given, or the one behind it. Consumers are disconnected first.
// Errors: ErrTopicNotFound, ErrSubscriptionNotFound.
func (ts *Topics) ResetCursor(ctx context.Context, name topicname.Name, named string, position *pulsarproto.MessageIdData, behind bool) error {
	_, err := askSubscription(ctx, ts, name, named, func(s *subscription, answer func(struct{}, error)) {
		to := s.topic.seekPosition(position, s.readCompacted)
		if behind && names(position, to) && s.topic.exists(to) {
			to = to.Next()
		}
		s.beginSeek(nil)
		s.seek(to, nil, onlyError(answer))
	})
	return err
}

// ResetCursorToTime makes the first message that was published at millis, Unix time, or later the next one that a subscription
// is given. Consumers are disconnected first.
// Errors: ErrTopicNotFound, ErrSubscriptionNotFound.
func (ts *Topics) ResetCursorToTime(ctx context.Context, name topicname.Name, named string, millis uint64) error {
	_, err := askSubscription(ctx, ts, name, named, func(s *subscription, answer func(struct{}, error)) {
		s.beginSeek(nil)
		s.topic.findTime(millis, func(p ledger.Position, err error) {
			if err != nil {
				s.seeking--
				answer(struct{}{}, err)
				return
			}
			s.seek(p, nil, onlyError(answer))
		})
	})
	return err
}
