package wiretopic

import (
	"context"
	"fmt"
	"sync"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// permits is how many messages a consumer asks for at a time.
const permits = 500

// Message is one that was delivered.
type Message struct {
	ID           *pulsarproto.MessageIdData
	Content      string
	Redeliveries uint32
	Metadata     *pulsarproto.MessageMetadata
	// AckSet has the bits of the messages of a batch that are for the consumer; nil: all are.
	AckSet []int64
}

// Consumer receives from one subscription.
type Consumer struct {
	client   *Client
	id       uint64
	messages chan Message
	done     chan struct{} // closed when nothing more comes

	mu    sync.Mutex // guards the following
	taken int        // since the last FLOW
	ended error
}

// Subscribe attaches a Shared consumer to a durable subscription, which begins at the earliest message if it is new.
func (c *Client) Subscribe(ctx context.Context, topic, subscription string) (*Consumer, error) {
	return c.SubscribeAs(ctx, &pulsarproto.CommandSubscribe{
		Topic: &topic, Subscription: &subscription, SubType: pulsarproto.CommandSubscribe_Shared.Enum(),
		InitialPosition: pulsarproto.CommandSubscribe_Earliest.Enum(),
	})
}

// Reader attaches a reader that begins at the earliest message.
func (c *Client) Reader(ctx context.Context, topic, name string) (*Consumer, error) {
	durable, earliest := false, int64(-1)
	ledger, entry := uint64(earliest), uint64(earliest)
	return c.SubscribeAs(ctx, &pulsarproto.CommandSubscribe{
		Topic: &topic, Subscription: &name, SubType: pulsarproto.CommandSubscribe_Exclusive.Enum(), Durable: &durable,
		InitialPosition: pulsarproto.CommandSubscribe_Earliest.Enum(),
		StartMessageId:  &pulsarproto.MessageIdData{LedgerId: &ledger, EntryId: &entry},
	})
}

// SubscribeAs attaches a consumer as command says; it sets the consumer id.
func (c *Client) SubscribeAs(ctx context.Context, command *pulsarproto.CommandSubscribe) (*Consumer, error) {
	return c.SubscribeWith(ctx, command, 2*permits)
}

// SubscribeWith is SubscribeAs with a first number of permits; more come only with the messages of the usual number.
func (c *Client) SubscribeWith(ctx context.Context, command *pulsarproto.CommandSubscribe, first uint32) (*Consumer, error) {
	c.mu.Lock()
	id := c.next
	c.next++
	consumer := &Consumer{client: c, id: id, messages: make(chan Message, 4*permits), done: make(chan struct{})}
	c.consumers[id] = consumer
	c.mu.Unlock()
	command.ConsumerId = &id
	_, err := c.Call(ctx, &pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_SUBSCRIBE.Enum(), Subscribe: command})
	if err == nil {
		err = consumer.Flow(first)
	}
	if err != nil {
		c.forget(id)
		return nil, err
	}
	return consumer, nil
}

func (c *Client) forget(id uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.consumers, id)
}

// Flow asks for n more messages.
func (c *Consumer) Flow(n uint32) error {
	return c.client.Write(&pulsarproto.BaseCommand{
		Type: pulsarproto.BaseCommand_FLOW.Enum(),
		Flow: &pulsarproto.CommandFlow{ConsumerId: &c.id, MessagePermits: &n},
	})
}

// take keeps a message; there is room for all that was asked for.
func (c *Consumer) take(m *pulsarproto.CommandMessage, payload []byte) {
	metadata, content, err := pulsarproto.ParsePayload(payload)
	if err != nil {
		c.end(fmt.Errorf("message %v: %w", m.GetMessageId(), err))
		return
	}
	select {
	case c.messages <- Message{m.GetMessageId(), string(content), m.GetRedeliveryCount(), metadata, m.GetAckSet()}:
	default:
		c.end(fmt.Errorf("message %v came without a permit", m.GetMessageId()))
	}
}

// Receive waits for the next message.
func (c *Consumer) Receive(ctx context.Context) (Message, error) {
	select {
	case m := <-c.messages:
		return m, c.received()
	default:
	}
	select {
	case m := <-c.messages:
		return m, c.received()
	case <-c.done:
		c.mu.Lock()
		defer c.mu.Unlock()
		return Message{}, c.ended
	case <-ctx.Done():
		return Message{}, context.Cause(ctx)
	}
}

// received asks for more when half of what was asked for has been taken.
func (c *Consumer) received() error {
	c.mu.Lock()
	c.taken++
	more := c.taken == permits
	if more {
		c.taken = 0
	}
	c.mu.Unlock()
	if more {
		return c.Flow(permits)
	}
	return nil
}

// Ack acknowledges one message, in a transaction if id is not nil, and waits for the answer.
func (c *Consumer) Ack(ctx context.Context, position *pulsarproto.MessageIdData, id *txn.ID) error {
	return c.AckAs(ctx, &pulsarproto.CommandAck{
		AckType: pulsarproto.CommandAck_Individual.Enum(), MessageId: []*pulsarproto.MessageIdData{position},
	}, id)
}

// AckAs is Ack as ack says; it sets the consumer id and the transaction.
func (c *Consumer) AckAs(ctx context.Context, ack *pulsarproto.CommandAck, id *txn.ID) error {
	ack.ConsumerId = &c.id
	if id != nil {
		ack.TxnidMostBits, ack.TxnidLeastBits = &id.Most, &id.Least
	}
	_, err := c.client.Call(ctx, &pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_ACK.Enum(), Ack: ack})
	return err
}

// Redeliver asks for everything again that the consumer has not acknowledged.
func (c *Consumer) Redeliver() error {
	return c.client.Write(&pulsarproto.BaseCommand{
		Type:                            pulsarproto.BaseCommand_REDELIVER_UNACKNOWLEDGED_MESSAGES.Enum(),
		RedeliverUnacknowledgedMessages: &pulsarproto.CommandRedeliverUnacknowledgedMessages{ConsumerId: &c.id},
	})
}

// Unsubscribe deletes the subscription and waits for the answer.
func (c *Consumer) Unsubscribe(ctx context.Context) error {
	_, err := c.client.Call(ctx, &pulsarproto.BaseCommand{
		Type:        pulsarproto.BaseCommand_UNSUBSCRIBE.Enum(),
		Unsubscribe: &pulsarproto.CommandUnsubscribe{ConsumerId: &c.id},
	})
	return err
}

// Close detaches the consumer and waits for the answer.
func (c *Consumer) Close(ctx context.Context) error {
	_, err := c.client.Call(ctx, &pulsarproto.BaseCommand{
		Type:          pulsarproto.BaseCommand_CLOSE_CONSUMER.Enum(),
		CloseConsumer: &pulsarproto.CommandCloseConsumer{ConsumerId: &c.id},
	})
	c.client.forget(c.id)
	return err
}

func (c *Consumer) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended == nil {
		c.ended = err
		close(c.done)
	}
}

// LastMessageID asks for the last message of the topic that can be read; its entry is -1 if there is none.
func (c *Consumer) LastMessageID(ctx context.Context) (*pulsarproto.MessageIdData, error) {
	answer, err := c.client.Call(ctx, &pulsarproto.BaseCommand{
		Type:             pulsarproto.BaseCommand_GET_LAST_MESSAGE_ID.Enum(),
		GetLastMessageId: &pulsarproto.CommandGetLastMessageId{ConsumerId: &c.id},
	})
	if err != nil {
		return nil, err
	}
	return answer.GetGetLastMessageIdResponse().GetLastMessageId(), nil
}
