package topic

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topic/cursor"
	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// reservedSubscription is the cursor of Pulsar's deduplication. Source: PersistentTopic.isDeduplicationSubscription.
const reservedSubscription = "pulsar.dedup"

// subscribeItem creates a subscription if it is missing, and attaches a consumer, if it has one.
type subscribeItem struct {
	topic    *Topic
	name     string
	durable  bool
	earliest bool
	at       *ledger.Position // where a new one starts, if set

	cmd    *pulsarproto.CommandSubscribe // nil: create only
	caller cnx.Caller
	client cnx.ConsumerClient
	answer func(*consumer, error)
	probed *consumer // was found alive

	created *subscription
	id      uint64
	err     error
}

func (i *subscribeItem) prepare(g *group) bool {
	t := i.topic
	if existing := t.subscriptions[i.name]; existing != nil {
		return !existing.gone
	}
	if !i.allowed() {
		return true
	}
	if i.err = i.fitsPolicies(); i.err != nil {
		return true
	}
	if _, twice := t.creating[i.name]; len(g.blocks) > 0 || twice || !g.fits(3, len(i.name)+maxPropertiesBytes) {
		return false
	}
	i.created = t.newSubscription(i.name, i.durable, cursor.New(i.start()))
	t.creating[i.name] = i.durable
	if !i.durable {
		return true
	}
	i.id = t.nextSubID
	t.nextSubID++
	i.created.keys = t.keys.Subscription(i.id)
	g.write(clientv3.OpPut(i.created.keys.Name(), i.name))
	g.write(clientv3.OpPut(i.created.keys.Frontier(), string(cursor.EncodeFrontier(i.created.cursor.Frontier()))))
	g.count(2, len(i.name))
	if i.created.properties = propertiesOf(i.cmd); len(i.created.properties) > 0 {
		value := encodeProperties(i.created.properties)
		g.write(clientv3.OpPut(i.created.keys.Properties(), string(value)))
		g.count(1, len(value))
	}
	return true
}

// allowed reports whether a missing subscription may be created.
func (i *subscribeItem) allowed() bool {
	return !i.durable || i.cmd == nil || i.topic.options.AutoCreation(i.topic.name).Subscriptions
}

// fitsPolicies refuses a durable subscription that is one too many.
//
// Source: PersistentTopic.checkMaxSubscriptionsPerTopicExceed.
func (i *subscribeItem) fitsPolicies() error {
	t := i.topic
	most := t.options.Policies(t.name).MaxSubscriptions
	if most <= 0 || !i.durable {
		return nil
	}
	durable := 0
	for _, is := range t.creating {
		if is {
			durable++
		}
	}
	for _, s := range t.subscriptions {
		if s.durable {
			durable++
		}
	}
	if durable < most {
		return nil
	}
	return fmt.Errorf("%w: Exceed the maximum number of subscriptions of the topic: %s", txn.ErrNotAllowed, t.fullName)
}

// start is the first position that a new subscription is given. Latest is the end of what can be read: the messages of a
// transaction that is open now are all delivered when it commits.
func (i *subscribeItem) start() ledger.Position {
	t := i.topic
	if i.at != nil {
		return *i.at
	}
	if id := i.cmd.GetStartMessageId(); !i.durable && id != nil {
		// The entry itself is delivered too: the client knows whether it wants it, or which part.
		// Source: PersistentTopic.getNonDurableSubscription, which takes a step back.
		return t.seekPosition(id, i.cmd.GetReadCompacted())
	}
	if i.earliest {
		return t.earliest(i.cmd.GetReadCompacted())
	}
	return t.maxRead()
}

func (i *subscribeItem) undo() {
	delete(i.topic.creating, i.name)
	i.created = nil
}

func (i *subscribeItem) fail(err error) {
	if i.answer != nil {
		i.answer(nil, err)
	}
}

func (i *subscribeItem) done(*group) {
	t := i.topic
	if i.created != nil && t.subscriptions[i.name] == nil {
		t.subscriptions[i.name] = i.created
		if i.durable {
			t.settling.add(i.name, i.created.keys)
		}
	}
	delete(t.creating, i.name)
	s := t.subscriptions[i.name]
	switch {
	case i.err != nil && s == nil:
		i.fail(i.err)
		return
	case i.cmd == nil:
		return
	case t.leaving():
		i.fail(errFencedTopic)
		return
	case s == nil && i.durable:
		i.fail(fmt.Errorf("%w: %s", ErrSubscriptionNotFound, i.name))
		return
	case s == nil: // it ended with its last consumer while the group was written
		t.queue.push(i)
		return
	}
	i.attach(s)
}

func (i *subscribeItem) attach(s *subscription) {
	kind := i.cmd.GetSubType()
	if s.durable != i.durable {
		i.fail(fmt.Errorf("%w: subscription %s is of the other durability", txn.ErrNotAllowed, s.name))
		return
	}
	if len(s.consumers) > 0 {
		exclusive := kind == pulsarproto.CommandSubscribe_Exclusive
		switch {
		case kind != s.kind && i.probed == nil, kind == s.kind && exclusive && i.probed != s.consumers[0]:
			i.probe(s.consumers[0])
			return
		case kind != s.kind:
			i.fail(fmt.Errorf("%w: subscription %s is of type %v", ErrConsumerBusy, s.name, s.kind))
			return
		case exclusive:
			i.fail(ErrConsumerBusy)
			return
		}
	}
	if err := s.admits(i); err != nil {
		i.fail(err)
		return
	}
	s.kind = kind
	s.setReadCompacted(i.cmd.GetReadCompacted())
	c, err := s.add(i)
	i.answer(c, err)
}

// probe asks whether the consumer in the way is alive, and tries again.
func (i *subscribeItem) probe(old *consumer) {
	t := i.topic
	t.async(func() {
		alive := old.client.Alive(t.ctx)
		t.ask(func(open bool) {
			if !open {
				i.fail(ErrPersistence)
				return
			}
			i.probed = old
			if !alive {
				old.subscription.remove(old)
			}
			i.created = nil
			t.queue.push(i)
		})
	})
}

// admits refuses a consumer that is one too many, or wants keys to go another way than those before it.
//
// Source: AbstractTopic.isConsumersExceededOnTopic, AbstractSubscription.checkForConsumerCompatibilityErrorWithDispatcher.
func (s *subscription) admits(i *subscribeItem) error {
	t := s.topic
	policies := t.options.Policies(t.name)
	if most := policies.MaxConsumersPerSubscription; most > 0 && len(s.consumers) >= most {
		return ErrSubscriptionFull
	}
	if most := policies.MaxConsumers; most > 0 && t.consumers() >= most {
		return ErrTopicFull
	}
	if i.cmd.GetSubType() == pulsarproto.CommandSubscribe_Key_Shared && len(s.consumers) > 0 && !s.sticky.agrees(i.cmd.GetKeySharedMeta()) {
		return fmt.Errorf("%w: subscription %s has another Key_Shared policy", ErrConsumerBusy, s.name)
	}
	return nil
}

// consumers is the number of consumers of all subscriptions.
func (t *Topic) consumers() int {
	n := 0
	for _, s := range t.subscriptions {
		n += len(s.consumers)
	}
	return n
}

// add attaches a consumer. Errors: ConsumerAssignError.
func (s *subscription) add(i *subscribeItem) (*consumer, error) {
	c := &consumer{
		topic: s.topic, subscription: s, id: i.cmd.GetConsumerId(), name: i.cmd.GetConsumerName(), priority: i.cmd.GetPriorityLevel(),
		caller: i.caller, client: i.client, attached: true, since: s.topic.options.Now().UnixMilli(),
		epoch: i.cmd.GetConsumerEpoch(), hasEpoch: i.cmd.ConsumerEpoch != nil,
		autoConsume: i.cmd.GetSchema().GetType() == pulsarproto.Schema_AutoConsume, metadata: keptMetadata(i.cmd.GetMetadata()),
	}
	if s.shared() {
		return c, s.addShared(c, i.cmd.GetKeySharedMeta())
	}
	s.consumers = append(s.consumers, c)
	before := s.active
	s.elect()
	if s.failover() && before == s.active {
		c.client.ActiveConsumerChange(false)
	}
	return c, nil
}

func (s *subscription) addShared(c *consumer, meta *pulsarproto.KeySharedMeta) error {
	if len(s.consumers) == 0 {
		s.settling = false // of another type before
		s.rewind()
		s.levels, s.parked = nil, newParking()
		s.sticky = s.topic.options.newKeyShared(meta)
		if s.holders.keys == nil {
			s.holders = newKeyHolders()
		}
	}
	if s.keyShared() {
		if err := s.sticky.add(c, meta); err != nil {
			return err
		}
		s.lookAgain()
	}
	c.unacked = make(map[ledger.Position]unacked)
	s.consumers = append(s.consumers, c)
	s.join(c)
	return nil
}

// Subscribe implements conn.Topics.
func (ts *Topics) Subscribe(ctx context.Context, name topicname.Name, caller cnx.Caller, cmd *pulsarproto.CommandSubscribe, client cnx.ConsumerClient) (cnx.Consumer, error) {
	if err := ts.options.checkSubscribe(cmd); err != nil {
		return nil, err
	}
	if err := ts.consumerSchema(ctx, name, caller, cmd); err != nil {
		return nil, err
	}
	c, err := attach(ctx, ts, name, cmd.GetForceTopicCreation(), func(t *Topic, answer func(*consumer, error)) {
		t.queue.push(&subscribeItem{
			topic: t, name: cmd.GetSubscription(), durable: cmd.GetDurable(), cmd: cmd, caller: caller, client: client,
			earliest: cmd.GetInitialPosition() == pulsarproto.CommandSubscribe_Earliest, answer: answer,
		})
	})
	if err != nil {
		return nil, err
	}
	return ts.rollBack(ctx, c, cmd)
}

func (o *Options) checkSubscribe(cmd *pulsarproto.CommandSubscribe) error {
	switch name := cmd.GetSubscription(); {
	case name == "", name == reservedSubscription:
		return ErrSubscriptionName
	}
	if err := checkProperties(cmd.GetSubscriptionProperties()); err != nil {
		return err
	}
	if err := errors.Join(checkLength("subscription", cmd.GetSubscription()), checkLength("consumer_name", cmd.GetConsumerName())); err != nil {
		return err
	}
	if o.NoKeyShared && cmd.GetSubType() == pulsarproto.CommandSubscribe_Key_Shared {
		return fmt.Errorf("%w: Key_Shared subscription is disabled by broker", txn.ErrNotAllowed)
	}
	switch kind := cmd.GetSubType(); kind {
	case pulsarproto.CommandSubscribe_Exclusive, pulsarproto.CommandSubscribe_Failover:
	case pulsarproto.CommandSubscribe_Shared, pulsarproto.CommandSubscribe_Key_Shared:
		if cmd.GetReadCompacted() {
			return fmt.Errorf("%w: readCompacted needs an Exclusive or Failover subscription", txn.ErrNotAllowed)
		}
	default:
		return fmt.Errorf("%w: subscription type %v is not supported", txn.ErrNotAllowed, kind)
	}
	return nil
}

// rollBack starts a new consumer as long ago as the command asks for. Others are disconnected first, and come again.
//
// Source: PersistentTopic.resetSubscriptionCursor, PersistentSubscription.resetCursor.
func (ts *Topics) rollBack(ctx context.Context, c *consumer, cmd *pulsarproto.CommandSubscribe) (cnx.Consumer, error) {
	seconds := cmd.GetStartMessageRollbackDurationSec()
	if seconds == 0 {
		return c, nil
	}
	millis := uint64(ts.options.Now().Add(-time.Duration(min(seconds, 1<<32)) * time.Second).UnixMilli())
	done := make(chan error, 1)
	c.topic.ask(func(alive bool) {
		s := c.subscription
		if !alive || !c.attached {
			done <- ErrPersistence
			return
		}
		s.beginSeek(c)
		c.topic.findTime(millis, func(p ledger.Position, err error) {
			if err != nil {
				s.seeking--
				done <- err
				return
			}
			s.seek(p, nil, func(err error) { done <- err })
		})
	})
	select {
	case err := <-done:
		if err != nil {
			c.Close()
			return nil, err
		}
		return c, nil
	case <-ctx.Done():
		c.Close()
		return nil, fmt.Errorf("start %d s ago: %w", seconds, context.Cause(ctx))
	}
}
