package nonpersistent

import (
	"context"
	"fmt"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topic/stickykey"
	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// consumer is an attached consumer.
type consumer struct {
	subscription *subscription
	name         string
	priority     int32
	member       stickykey.Member
	client       cnx.ConsumerClient
	attached     bool
	permits      int64
	epoch        uint64
	hasEpoch     bool
}

var _ cnx.Consumer = (*consumer)(nil)

func (c *consumer) ready() bool { return c.permits > 0 && !c.client.Full() }

func (c *consumer) lock() (unlock func()) {
	mu := &c.subscription.topic.mu
	mu.Lock()
	return mu.Unlock
}

// Subscribe implements conn.Topics. Every subscription is forgotten with its last consumer, durable or not.
func (ts *Topics) Subscribe(ctx context.Context, name topicname.Name, cmd *pulsarproto.CommandSubscribe, client cnx.ConsumerClient) (cnx.Consumer, error) {
	if cmd.GetSubscription() == "" {
		return nil, errNoName
	}
	if cmd.GetReadCompacted() {
		return nil, fmt.Errorf("%w: readCompacted on a non-persistent topic", txn.ErrNotAllowed)
	}
	if err := ts.check(ctx, name); err != nil {
		return nil, err
	}
	var probed *consumer
	for {
		c, old, err := ts.join(name, cmd, client, probed)
		switch {
		case err != nil:
			return nil, err
		case old == nil:
			return c, nil
		}
		if !old.client.Alive(ctx) {
			old.Close()
		}
		probed = old
	}
}

// join adds a consumer, or returns the Exclusive one in the way, unless that was probed.
func (ts *Topics) join(name topicname.Name, cmd *pulsarproto.CommandSubscribe, client cnx.ConsumerClient, probed *consumer) (c, old *consumer, err error) {
	kind, most := cmd.GetSubType(), ts.options.Limits(name)
	c = &consumer{
		name: cmd.GetConsumerName(), priority: cmd.GetPriorityLevel(), client: client, attached: true,
		epoch: cmd.GetConsumerEpoch(), hasEpoch: cmd.ConsumerEpoch != nil,
	}
	err = ts.use(name, func(t *topic) error {
		s := t.subscriptions[cmd.GetSubscription()]
		switch {
		case s == nil:
			if most.Subscriptions > 0 && len(t.subscriptions) >= most.Subscriptions {
				return fmt.Errorf("%w: the topic has its maximum of %d subscriptions", txn.ErrNotAllowed, most.Subscriptions)
			}
			s = &subscription{topic: t, name: cmd.GetSubscription(), kind: kind, keys: selector(cmd), policy: cmd.GetKeySharedMeta()}
		case s.kind != kind || s.keys != nil && !s.agrees(cmd.GetKeySharedMeta()):
			return errOtherType
		case kind == pulsarproto.CommandSubscribe_Exclusive && s.active == probed:
			return errConsumerBusy
		case kind == pulsarproto.CommandSubscribe_Exclusive:
			old = s.active
			return nil
		}
		if most.Consumers > 0 && t.consumers >= most.Consumers {
			return cnx.Refuse(pulsarproto.ServerError_ConsumerBusy, "Topic reached max consumers limit")
		}
		c.subscription = s
		if err := s.add(c, ranges(cmd)); err != nil {
			return err
		}
		t.subscriptions[s.name] = s
		return nil
	})
	return c, old, err
}

func selector(cmd *pulsarproto.CommandSubscribe) stickykey.Selector {
	switch {
	case cmd.GetSubType() != pulsarproto.CommandSubscribe_Key_Shared:
		return nil
	case cmd.GetKeySharedMeta().GetKeySharedMode() == pulsarproto.KeySharedMode_STICKY:
		return &stickykey.Fixed{}
	}
	return &stickykey.AutoSplit{}
}

func ranges(cmd *pulsarproto.CommandSubscribe) []stickykey.Range {
	var out []stickykey.Range
	for _, r := range cmd.GetKeySharedMeta().GetHashRanges() {
		out = append(out, stickykey.Range{Start: r.GetStart(), End: r.GetEnd()})
	}
	return out
}

// Flow implements cnx.Consumer.
func (c *consumer) Flow(permits uint32) {
	defer c.lock()()
	c.permits += int64(permits)
}

// Resume implements cnx.Consumer. What came meanwhile is lost.
func (c *consumer) Resume() {}

// Ack implements cnx.Consumer: there is nothing to acknowledge.
func (c *consumer) Ack(cmd *pulsarproto.CommandAck, done func(error)) {
	if cmd.TxnidMostBits != nil && cmd.TxnidLeastBits != nil {
		done(errConflict)
		return
	}
	done(nil)
}

// Redeliver implements cnx.Consumer: there is nothing to deliver again.
func (c *consumer) Redeliver(*pulsarproto.CommandRedeliverUnacknowledgedMessages) {}

// Seek implements cnx.Consumer.
func (c *consumer) Seek(_ *pulsarproto.CommandSeek, done func(error)) { done(errSeek) }

// Unsubscribe implements cnx.Consumer.
func (c *consumer) Unsubscribe(force bool, done func(error)) { done(c.unsubscribe(force)) }

func (c *consumer) unsubscribe(force bool) error {
	defer c.subscription.topic.forget()
	defer c.lock()()
	s := c.subscription
	switch {
	case !c.attached:
		return errGone
	case !force && len(s.consumers) > 1:
		return cnx.Refuse(pulsarproto.ServerError_MetadataError, "Subscription has other consumers")
	}
	s.disconnect(c)
	return nil
}

// LastMessageID implements cnx.Consumer: there is none.
func (c *consumer) LastMessageID(done func(last, markDelete *pulsarproto.MessageIdData, err error)) {
	none := &pulsarproto.MessageIdData{LedgerId: new(uint64(1<<64 - 1)), EntryId: new(uint64(1<<64 - 1)), Partition: new(int32(c.subscription.topic.name.Partition()))}
	done(none, none, nil)
}

// Stats implements cnx.Consumer. Nothing waits or is unacknowledged here.
func (c *consumer) Stats(done func(*pulsarproto.CommandConsumerStatsResponse, error)) {
	unlock := c.lock()
	stats := &pulsarproto.CommandConsumerStatsResponse{
		ConsumerName: &c.name, AvailablePermits: new(uint64(max(0, c.permits))), Address: new(c.client.Peer().Address),
		Type: new(c.subscription.kind.String()), UnackedMessages: new(uint64(0)), MsgBacklog: new(uint64(0)),
	}
	unlock()
	done(stats, nil)
}

// Close implements cnx.Consumer.
func (c *consumer) Close() {
	unlock := c.lock()
	c.subscription.remove(c)
	unlock()
	c.subscription.topic.forget()
}
