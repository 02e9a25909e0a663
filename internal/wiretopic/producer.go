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
	client  *Client
	id      uint64
	success *pulsarproto.CommandProducerSuccess

	mu      sync.Mutex // guards the following
	next    uint64     // sequence id
	waiting map[uint64]func(*pulsarproto.MessageIdData, error)
	ended   error
}

// Produce attaches a producer that the server names.
func (c *Client) Produce(ctx context.Context, topic string) (*Producer, error) {
	return c.ProduceAs(ctx, &pulsarproto.CommandProducer{Topic: &topic})
}

// ProduceAs attaches a producer as command says; it sets the producer id.
func (c *Client) ProduceAs(ctx context.Context, command *pulsarproto.CommandProducer) (*Producer, error) {
	c.mu.Lock()
	id := c.next
	c.next++
	p := &Producer{client: c, id: id, waiting: map[uint64]func(*pulsarproto.MessageIdData, error){}}
	c.producers[id] = p
	c.mu.Unlock()
	command.ProducerId = &id
	answer, err := c.Call(ctx, &pulsarproto.BaseCommand{
		Type:     pulsarproto.BaseCommand_PRODUCER.Enum(),
		Producer: command,
	})
	if err != nil {
		c.mu.Lock()
		delete(c.producers, id)
		c.mu.Unlock()
		return nil, err
	}
	p.success = answer.GetProducerSuccess()
	return p, nil
}

// Success is the server's answer to the attachment.
func (p *Producer) Success() *pulsarproto.CommandProducerSuccess { return p.success }

// Start sends a message, in a transaction if id is not nil, and has done called with the answer, from the reader. An error
// that is no *wireclient.ServerError leaves open whether the message is stored.
func (p *Producer) Start(content string, id *txn.ID, done func(*pulsarproto.MessageIdData, error)) {
	p.mu.Lock()
	sequence := p.next
	p.next++
	p.mu.Unlock()
	p.StartAs(&pulsarproto.MessageMetadata{SequenceId: &sequence}, content, id, done)
}

// StartAs is Start with metadata of the caller's, who chooses the sequence id; it sets the producer name and the publish time.
func (p *Producer) StartAs(metadata *pulsarproto.MessageMetadata, content string, id *txn.ID, done func(*pulsarproto.MessageIdData, error)) {
	sequence := metadata.GetSequenceId()
	if err := p.expect(sequence, done); err != nil {
		done(nil, err)
		return
	}
	published := uint64(time.Now().UnixMilli())
	metadata.ProducerName, metadata.PublishTime = p.success.ProducerName, &published
	send := &pulsarproto.CommandSend{ProducerId: &p.id, SequenceId: &sequence, NumMessages: metadata.NumMessagesInBatch}
	if id != nil {
		send.TxnidMostBits, send.TxnidLeastBits = &id.Most, &id.Least
	}
	if err := p.client.Send(send, metadata, []byte(content)); err != nil {
		p.answer(sequence, nil, err)
	}
}

// SendPayload sends a payload part as it is and waits for the answer.
func (p *Producer) SendPayload(ctx context.Context, sequence uint64, payload []byte) (*pulsarproto.MessageIdData, error) {
	return await(ctx, func(done func(*pulsarproto.MessageIdData, error)) {
		if err := p.expect(sequence, done); err != nil {
			done(nil, err)
			return
		}
		send := &pulsarproto.CommandSend{ProducerId: &p.id, SequenceId: &sequence}
		if err := p.client.SendPayload(send, payload); err != nil {
			p.answer(sequence, nil, err)
		}
	})
}

// expect has done called with the answer to a sequence id.
func (p *Producer) expect(sequence uint64, done func(*pulsarproto.MessageIdData, error)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended == nil {
		p.waiting[sequence] = done
	}
	return p.ended
}

// Send is Start that waits for the answer.
func (p *Producer) Send(ctx context.Context, content string, id *txn.ID) (*pulsarproto.MessageIdData, error) {
	return await(ctx, func(done func(*pulsarproto.MessageIdData, error)) { p.Start(content, id, done) })
}

// SendAs is StartAs that waits for the answer.
func (p *Producer) SendAs(ctx context.Context, metadata *pulsarproto.MessageMetadata, content string, id *txn.ID) (*pulsarproto.MessageIdData, error) {
	return await(ctx, func(done func(*pulsarproto.MessageIdData, error)) { p.StartAs(metadata, content, id, done) })
}

// await starts a send and waits for its answer.
func await(ctx context.Context, start func(done func(*pulsarproto.MessageIdData, error))) (*pulsarproto.MessageIdData, error) {
	type result struct {
		id  *pulsarproto.MessageIdData
		err error
	}
	answered := make(chan result, 1)
	start(func(position *pulsarproto.MessageIdData, err error) { answered <- result{position, err} })
	select {
	case r := <-answered:
		return r.id, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Close detaches the producer and waits for the answer.
func (p *Producer) Close(ctx context.Context) error {
	_, err := p.client.Call(ctx, &pulsarproto.BaseCommand{
		Type:          pulsarproto.BaseCommand_CLOSE_PRODUCER.Enum(),
		CloseProducer: &pulsarproto.CommandCloseProducer{ProducerId: &p.id},
	})
	p.client.mu.Lock()
	delete(p.client.producers, p.id)
	p.client.mu.Unlock()
	return err
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
