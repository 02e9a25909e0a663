package wiretopic

import (
	"context"
	"sync"
	"time"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// Producer sends messages to one topic.
type Producer struct {
	client *Client
	id     uint64
	name   string

	mu      sync.Mutex // guards the following
	next    uint64     // sequence id
	waiting map[uint64]func(*pulsarproto.MessageIdData, error)
	ended   error
}

// Produce attaches a producer that the server names.
func (c *Client) Produce(ctx context.Context, topic string) (*Producer, error) {
	c.mu.Lock()
	id := c.next
	c.next++
	p := &Producer{client: c, id: id, waiting: map[uint64]func(*pulsarproto.MessageIdData, error){}}
	c.producers[id] = p
	c.mu.Unlock()
	answer, err := c.Call(ctx, &pulsarproto.BaseCommand{
		Type:     pulsarproto.BaseCommand_PRODUCER.Enum(),
		Producer: &pulsarproto.CommandProducer{Topic: &topic, ProducerId: &id},
	})
	if err != nil {
		c.mu.Lock()
		delete(c.producers, id)
		c.mu.Unlock()
		return nil, err
	}
	p.name = answer.GetProducerSuccess().GetProducerName()
	return p, nil
}

// Start sends a message, in a transaction if id is not nil, and has done called with the answer, from the reader. An error
// that is no *wireclient.ServerError leaves open whether the message is stored.
func (p *Producer) Start(content string, id *txn.ID, done func(*pulsarproto.MessageIdData, error)) {
	p.mu.Lock()
	if p.ended != nil {
		err := p.ended
		p.mu.Unlock()
		done(nil, err)
		return
	}
	sequence := p.next
	p.next++
	p.waiting[sequence] = done
	p.mu.Unlock()
	published := uint64(time.Now().UnixMilli())
	send := &pulsarproto.CommandSend{ProducerId: &p.id, SequenceId: &sequence}
	if id != nil {
		send.TxnidMostBits, send.TxnidLeastBits = &id.Most, &id.Least
	}
	metadata := &pulsarproto.MessageMetadata{ProducerName: &p.name, SequenceId: &sequence, PublishTime: &published}
	if err := p.client.Send(send, metadata, []byte(content)); err != nil {
		p.answer(sequence, nil, err)
	}
}

// Send is Start that waits for the answer.
func (p *Producer) Send(ctx context.Context, content string, id *txn.ID) (*pulsarproto.MessageIdData, error) {
	type result struct {
		id  *pulsarproto.MessageIdData
		err error
	}
	answered := make(chan result, 1)
	p.Start(content, id, func(position *pulsarproto.MessageIdData, err error) { answered <- result{position, err} })
	select {
	case r := <-answered:
		return r.id, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (p *Producer) answer(sequence uint64, id *pulsarproto.MessageIdData, err error) {
	p.mu.Lock()
	done := p.waiting[sequence]
	delete(p.waiting, sequence)
	p.mu.Unlock()
	if done != nil {
		done(id, err)
	}
}

func (p *Producer) end(err error) {
	p.mu.Lock()
	waiting := p.waiting
	p.waiting, p.ended = map[uint64]func(*pulsarproto.MessageIdData, error){}, err
	p.mu.Unlock()
	for _, done := range waiting {
		done(nil, err)
	}
}
