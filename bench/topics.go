package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/pulsar-tc/pulsar-tc/internal/wireclient"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

const (
	usedTopics = 10_000
	// topicConnections share the topics: as clients do, each has many producers and consumers.
	topicConnections = 50
)

// topicsInUse is the heap of topics that have one producer and one consumer each, which a message has gone through. What the
// clients keep is in it.
func topicsInUse(ctx context.Context, _ *suite) ([]line, error) {
	var bytes float64
	err := withLocal(ctx, nil, func(l *local, _ *wireclient.Conn) (err error) {
		bytes, err = heapOfTopics(ctx, l.ServiceURL())
		return err
	})
	if err != nil {
		return nil, err
	}
	return []line{figure("10 k topics with a producer and a consumer, heap each", bytes/1024, "KiB").atMost(25)}, nil
}

func heapOfTopics(ctx context.Context, serviceURL string) (bytes float64, err error) {
	address, err := wireclient.Address(serviceURL)
	if err != nil {
		return 0, err
	}
	before := heap()
	clients := make([]*topicClient, topicConnections)
	for i := range clients {
		if clients[i], err = openTopicClient(ctx, address); err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, clients[i].conn.Close()) }()
	}
	errs := make([]error, len(clients))
	var all sync.WaitGroup
	for i, c := range clients {
		all.Go(func() {
			for n := i; n < usedTopics && errs[i] == nil; n += len(clients) {
				errs[i] = c.use(ctx, uint64(n))
			}
		})
	}
	all.Wait()
	return (heap() - before) / usedTopics, errors.Join(errs...)
}

// topicClient uses topics one after the other, by a producer and a consumer on each that stay.
type topicClient struct {
	conn   *wireclient.Conn
	pushed chan *pulsarproto.MessageIdData // of the message that the consumer is given
}

func openTopicClient(ctx context.Context, address string) (*topicClient, error) {
	conn, err := wireclient.Dial(ctx, address)
	if err != nil {
		return nil, err
	}
	c := &topicClient{conn: conn, pushed: make(chan *pulsarproto.MessageIdData, 1)}
	conn.OnPush = func(command *pulsarproto.BaseCommand, _ []byte) {
		if id := command.GetMessage().GetMessageId(); id != nil {
			c.pushed <- &pulsarproto.MessageIdData{LedgerId: new(id.GetLedgerId()), EntryId: new(id.GetEntryId())}
		}
	}
	return c, nil
}

// use attaches producer and consumer number n to a topic of their own, and sends and acknowledges a message.
func (c *topicClient) use(ctx context.Context, n uint64) error {
	topic := fmt.Sprintf("persistent://public/default/used-%d", n)
	_, err := c.conn.Call(ctx, &pulsarproto.BaseCommand{
		Type: pulsarproto.BaseCommand_SUBSCRIBE.Enum(),
		Subscribe: &pulsarproto.CommandSubscribe{
			Topic: &topic, Subscription: new("subscription"), SubType: pulsarproto.CommandSubscribe_Shared.Enum(), ConsumerId: &n, RequestId: new(uint64(0)),
		},
	})
	if err != nil {
		return fmt.Errorf("subscribe to %s: %w", topic, err)
	}
	err = c.conn.Write(&pulsarproto.BaseCommand{
		Type: pulsarproto.BaseCommand_FLOW.Enum(), Flow: &pulsarproto.CommandFlow{ConsumerId: &n, MessagePermits: new(uint32(1000))},
	})
	if err != nil {
		return err
	}
	created, err := c.conn.Call(ctx, &pulsarproto.BaseCommand{
		Type: pulsarproto.BaseCommand_PRODUCER.Enum(), Producer: &pulsarproto.CommandProducer{Topic: &topic, ProducerId: &n, RequestId: new(uint64(0))},
	})
	if err != nil {
		return fmt.Errorf("produce to %s: %w", topic, err)
	}
	metadata := &pulsarproto.MessageMetadata{
		ProducerName: new(created.GetProducerSuccess().GetProducerName()), SequenceId: new(uint64(0)), PublishTime: new(uint64(1)),
	}
	send := &pulsarproto.CommandSend{ProducerId: &n, SequenceId: new(uint64(0))}
	if err := c.conn.Send(send, metadata, make([]byte, payloadBytes)); err != nil {
		return err
	}
	return c.acknowledge(ctx, n)
}

// acknowledge waits for the message of consumer n.
func (c *topicClient) acknowledge(ctx context.Context, n uint64) error {
	select {
	case id := <-c.pushed:
		_, err := c.conn.Call(ctx, &pulsarproto.BaseCommand{
			Type: pulsarproto.BaseCommand_ACK.Enum(),
			Ack: &pulsarproto.CommandAck{
				ConsumerId: &n, AckType: pulsarproto.CommandAck_Individual.Enum(), MessageId: []*pulsarproto.MessageIdData{id}, RequestId: new(uint64(0)),
			},
		})
		return err
	case <-c.conn.Done():
		return wireclient.ErrClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
