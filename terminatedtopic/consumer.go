package terminatedtopic

import (
	"context"
	"slices"
	"time"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

// consumer is an attached reader or consumer. Its goroutine delivers.
type consumer struct {
	topic        *topic
	reading      *reading
	subscription *subscription
	client       cnx.ConsumerClient
	ctx          context.Context
	cancel       context.CancelFunc
	woken        chan struct{} // holds a token when there may be something to do
	done         chan struct{} // closed when nothing runs any more

	// Guarded by topic.mu.
	permits  int64
	epoch    uint64
	hasEpoch bool
}

var _ cnx.Consumer = (*consumer)(nil)

func newConsumer(t *topic, r *reading, s *subscription, cmd *pulsarproto.CommandSubscribe, client cnx.ConsumerClient) *consumer {
	c := &consumer{
		topic: t, reading: r, subscription: s, client: client, woken: make(chan struct{}, 1), done: make(chan struct{}),
		epoch: cmd.GetConsumerEpoch(), hasEpoch: cmd.ConsumerEpoch != nil,
	}
	c.ctx, c.cancel = context.WithCancel(r.ctx)
	return c
}

func (c *consumer) wake() {
	select {
	case c.woken <- struct{}{}:
	default:
	}
}

// retryPause is the pause after the coordinator gave no answer; mostly its term has ended, and the consumer with it.
const retryPause = 100 * time.Millisecond

// run delivers until the consumer ends.
func (c *consumer) run() {
	defer close(c.done)
	for c.ctx.Err() == nil {
		d, due := c.next()
		if !due {
			select {
			case <-c.woken:
			case <-c.ctx.Done():
			}
			continue
		}
		made, err := c.topic.message(c.ctx, c.reading, d.name, d.place, d.millis, d.owners)
		if err != nil {
			select {
			case <-time.After(retryPause):
			case <-c.ctx.Done():
			}
			continue
		}
		c.deliver(d, made)
	}
}

// due is a name whose turn it is.
type due struct {
	name    *name
	place   uint64
	millis  int64
	owners  []owned
	changes int
}

// next returns what the consumer is to be given now.
func (c *consumer) next() (due, bool) {
	t, s := c.topic, c.subscription
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(s.consumers) == 0 || s.consumers[0] != c || c.permits <= 0 || len(s.unacked) >= maxUnacked || c.client.Full() {
		return due{}, false
	}
	n := c.reading.view.next(s.read)
	if n == nil {
		return due{}, false
	}
	return due{n, n.place, n.millis, slices.Clone(n.owners), s.changes}, true
}

// deliver gives d to the client, unless the cursor was moved meanwhile.
func (c *consumer) deliver(d due, payload []byte) {
	t, s := c.topic, c.subscription
	t.mu.Lock()
	if len(s.consumers) == 0 || s.consumers[0] != c || s.changes != d.changes {
		t.mu.Unlock()
		return
	}
	s.read = d.place
	s.unacked = append(s.unacked, d.place)
	c.permits--
	message := cnx.Delivery{
		LedgerID: ledger, EntryID: d.place, Partition: -1, ConsumerEpoch: c.epoch, HasConsumerEpoch: c.hasEpoch, Payload: payload,
	}
	t.mu.Unlock()
	c.client.Message(message)
}

// Flow implements cnx.Consumer.
func (c *consumer) Flow(permits uint32) {
	c.topic.mu.Lock()
	c.permits += int64(permits)
	c.topic.mu.Unlock()
	c.wake()
}

// Resume implements cnx.Consumer.
func (c *consumer) Resume() { c.wake() }

// Ack implements cnx.Consumer. The cursor is in memory only: an answer says that it has moved there. A transaction has
// nothing to acknowledge here.
func (c *consumer) Ack(cmd *pulsarproto.CommandAck, done func(error)) {
	if cmd.TxnidMostBits != nil || cmd.TxnidLeastBits != nil {
		done(errTransaction)
		return
	}
	c.topic.mu.Lock()
	for _, id := range cmd.GetMessageId() {
		if id.GetLedgerId() == ledger {
			c.subscription.ack(id.GetEntryId(), cmd.GetAckType() == pulsarproto.CommandAck_Cumulative)
		}
	}
	c.topic.mu.Unlock()
	done(nil)
}

// errTransaction refuses to take part in a transaction.
var errTransaction = cnx.Refuse(pulsarproto.ServerError_NotAllowedError, "messages of this topic cannot be acknowledged in a transaction")

// Redeliver implements cnx.Consumer.
func (c *consumer) Redeliver(cmd *pulsarproto.CommandRedeliverUnacknowledgedMessages) {
	c.topic.mu.Lock()
	defer c.topic.mu.Unlock()
	if c.ctx.Err() != nil || c.subscription.consumers[0] != c {
		return
	}
	if cmd.ConsumerEpoch != nil {
		c.epoch, c.hasEpoch = cmd.GetConsumerEpoch(), true
	}
	c.subscription.rewind()
}

// Seek implements cnx.Consumer.
func (c *consumer) Seek(cmd *pulsarproto.CommandSeek, done func(error)) {
	t, s := c.topic, c.subscription
	t.mu.Lock()
	view := c.reading.view
	var to uint64
	switch {
	case c.ctx.Err() != nil:
		t.mu.Unlock()
		done(errConsumerGone)
		return
	case cmd.MessageId != nil:
		to = view.position(cmd.GetMessageId())
		if to > 0 && cmd.GetMessageId().GetLedgerId() == ledger { // the message itself is the next one
			to--
		}
	case cmd.MessagePublishTime != nil:
		to = view.since(int64(min(cmd.GetMessagePublishTime(), 1<<62))) - 1
	default:
		t.mu.Unlock()
		done(cnx.Refuse(pulsarproto.ServerError_MetadataError, "seek without message id and publish time"))
		return
	}
	gone := s.disconnect(c.reading)
	s.moveTo(to)
	s.sought = true
	t.mu.Unlock()
	for _, other := range gone {
		other.client.Disconnect()
	}
	done(nil)
}

// Unsubscribe implements cnx.Consumer.
func (c *consumer) Unsubscribe(force bool, done func(error)) {
	t, s := c.topic, c.subscription
	t.mu.Lock()
	switch {
	case c.ctx.Err() != nil:
		t.mu.Unlock()
		done(errConsumerGone)
		return
	case len(s.consumers) > 1 && !force:
		t.mu.Unlock()
		done(cnx.Refuse(pulsarproto.ServerError_MetadataError, "Unconnected or shared consumer attempting to unsubscribe"))
		return
	}
	gone := s.disconnect(c.reading)
	delete(t.subscriptions, s.name)
	t.mu.Unlock()
	for _, other := range gone {
		if other != c {
			other.client.Disconnect()
		}
	}
	done(nil)
}

// LastMessageID implements cnx.Consumer.
func (c *consumer) LastMessageID(done func(last, markDelete *pulsarproto.MessageIdData, err error)) {
	t := c.topic
	t.mu.Lock()
	newest, mark := c.reading.view.newest(), c.subscription.markDelete()
	t.mu.Unlock()
	done(messageID(newest), messageID(mark), nil)
}

// Stats implements cnx.Consumer. What waits for a consumer is not counted here.
func (c *consumer) Stats(done func(*pulsarproto.CommandConsumerStatsResponse, error)) {
	t := c.topic
	t.mu.Lock()
	permits := uint64(max(0, c.permits))
	t.mu.Unlock()
	address := c.client.Peer().Address
	done(&pulsarproto.CommandConsumerStatsResponse{AvailablePermits: &permits, Address: &address}, nil)
}

// messageID returns the id of the message at place; 0 is none, -1:-1.
func messageID(place uint64) *pulsarproto.MessageIdData {
	l, none := uint64(ledger), int32(-1)
	if place == 0 {
		l, place = 1<<64-1, 1<<64-1
	}
	partition := none
	return &pulsarproto.MessageIdData{LedgerId: &l, EntryId: &place, Partition: &partition, BatchIndex: &none}
}

// Close implements cnx.Consumer.
func (c *consumer) Close() {
	c.topic.mu.Lock()
	c.topic.remove(c, false)
	c.topic.mu.Unlock()
	<-c.done
}
