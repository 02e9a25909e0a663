package sim

import (
	"context"
	"strconv"
	"sync"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/internal/history"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// permits are so many that no consumer runs out of them.
const permits = 10_000

// received is one message as a consumer got it.
type received struct {
	ledger, entry uint64
	key           string
}

// consumer is the client's end of a consumer. It implements cnx.ConsumerClient for the other end.
type consumer struct {
	link     *link
	topic    string
	attached cnx.Consumer

	mu    sync.Mutex // guards the following
	inbox []received // not acknowledged yet
	all   []received // everything in the order in which it came
	gone  bool
}

// subscribe returns a consumer of the topic, a new one where the old is of no use any more; nil if there is none.
func (c *client) subscribe(topic string) *consumer {
	if old := c.consumers[topic]; old != nil && !old.isGone() {
		return old
	}
	delete(c.consumers, topic)
	consumer, err := c.consume(topic, &pulsarproto.CommandSubscribe{
		Topic: &topic, Subscription: ptr(subscription), SubType: pulsarproto.CommandSubscribe_Shared.Enum(), ConsumerId: new(uint64),
		InitialPosition: pulsarproto.CommandSubscribe_Earliest.Enum(),
	})
	if err != nil {
		return nil
	}
	c.consumers[topic] = consumer
	return consumer
}

func ptr[T any](v T) *T { return &v }

// consume attaches a consumer at the owner of the topic.
func (c *client) consume(topic string, command *pulsarproto.CommandSubscribe) (*consumer, error) {
	label := "subscribe " + topic + " " + command.GetSubscription()
	to := c.world.ownerOf(topic, c.world.unique(c.name+" "+label))
	if to == nil {
		return nil, errNoAnswer
	}
	consumer := &consumer{link: c.link(to), topic: topic}
	l := consumer.link
	attached, err := l.attachment(label, func(done func(any, error)) {
		to.tasks.Go(func() {
			attached, err := to.topics.Subscribe(l.ctx, parsed(topic), anybody, command, consumer)
			if err == nil {
				l.attach(attached)
				attached.Flow(permits)
			}
			done(attached, err)
		})
	})
	if err != nil {
		return nil, err
	}
	consumer.attached = attached.(cnx.Consumer)
	return consumer, nil
}

func (c *consumer) isGone() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gone || c.link.isBroken()
}

// Message implements cnx.ConsumerClient.
func (c *consumer) Message(d cnx.Delivery) {
	l := c.link
	if l.process.isDead() {
		return
	}
	label := l.name + " message " + c.topic + " " + strconv.FormatUint(d.LedgerID, 10) + ":" + strconv.FormatUint(d.EntryID, 10)
	m := received{d.LedgerID, d.EntryID, string(d.Payload)}
	l.carry(down, c.topic, label, l.process.world.travel("answer", label, 0), func() {
		c.mu.Lock()
		c.inbox = append(c.inbox, m)
		c.all = append(c.all, m)
		c.mu.Unlock()
		if w := l.process.world; c.topic != w.doomed() {
			w.history.Delivered(history.Delivery{Client: l.client.name, Topic: c.topic, Key: m.key, At: w.history.Now()})
		}
	})
}

// Full implements cnx.ConsumerClient.
func (c *consumer) Full() bool { return false }

// ActiveConsumerChange implements cnx.ConsumerClient.
func (c *consumer) ActiveConsumerChange(bool) {}

// ReachedEndOfTopic implements cnx.ConsumerClient.
func (c *consumer) ReachedEndOfTopic() {}

// Disconnect implements cnx.ConsumerClient.
func (c *consumer) Disconnect() {
	l := c.link
	if l.process.isDead() {
		return
	}
	label := l.name + " close consumer " + c.topic
	l.carry(down, c.topic, label, l.process.world.travel("answer", label, 0), func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.gone = true
	})
}

// Alive implements cnx.ConsumerClient.
func (c *consumer) Alive(context.Context) bool { return !c.link.isBroken() }

// Peer implements cnx.ConsumerClient.
func (c *consumer) Peer() cnx.Peer { return peer }

// take is the oldest message that is not acknowledged yet.
func (c *consumer) take() (received, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.inbox) == 0 {
		return received{}, false
	}
	m := c.inbox[0]
	c.inbox = c.inbox[1:]
	return m, true
}

// keys are those of everything that came, in order.
func (c *consumer) keys() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	keys := make([]string, 0, len(c.all))
	for _, m := range c.all {
		keys = append(keys, m.key)
	}
	return keys
}

// ack acknowledges the oldest message of the topic that the client has.
func (c *client) ack(topic string, id *txn.ID) {
	consumer := c.subscribe(topic)
	if consumer == nil {
		return
	}
	m, found := consumer.take()
	if !found {
		return
	}
	command := &pulsarproto.CommandAck{
		ConsumerId: new(uint64), AckType: pulsarproto.CommandAck_Individual.Enum(), RequestId: new(uint64),
		MessageId: []*pulsarproto.MessageIdData{{LedgerId: &m.ledger, EntryId: &m.entry}},
	}
	if id != nil {
		command.TxnidMostBits, command.TxnidLeastBits = &id.Most, &id.Least
	}
	span := c.span()
	_, err := consumer.link.call("ack "+m.key, false, func(done func(any, error)) {
		consumer.attached.Ack(command, func(err error) { done(nil, err) })
	})
	c.acked(topic, m.key, id, span, err)
}

// acked records what became of an acknowledgement.
func (c *client) acked(topic, key string, id *txn.ID, span history.Span, err error) {
	w := c.world
	if topic == w.doomed() {
		return
	}
	a := history.Ack{Topic: topic, Subscription: subscription, Key: key, Answer: ackAnswer(err)}
	if id != nil {
		a.Txn, a.InTxn = *id, true
		if a.Answer == history.Done {
			w.history.Used(history.Use{Span: c.done(span), ID: *id, Name: "ACK " + key, Participant: topic + " " + subscription, Answer: history.Done})
		}
	}
	w.history.Acked(a)
}

func ackAnswer(err error) history.Answer {
	answer := answerOf(err)
	if answer != history.Done && answer != history.Unknown {
		return history.Refused
	}
	return answer
}
