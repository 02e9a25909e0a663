package crashpoint

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// errDisconnected is what a producer hears of sends that its topic did not answer before it closed.
var errDisconnected = fmt.Errorf("%w: the topic closed", txn.ErrNotReady)

// producer is the client's end of a producer.
type producer struct {
	process *process
	gone    func() // called once, when the topic closes it

	mu       sync.Mutex // guards the following
	topic    cnx.Producer
	next     uint64
	waiting  map[uint64]func(error)
	detached bool
}

func (p *producer) Queued(cnx.ProducerInfo)            {}
func (p *producer) Receipt(sequence, _, _, _ uint64)   { p.answered(sequence, nil) }
func (p *producer) SendError(sequence uint64, e error) { p.answered(sequence, e) }
func (p *producer) Alive(context.Context) bool         { return true }
func (p *producer) CnxID() uint64                      { return 1 }
func (p *producer) Peer() cnx.Peer                     { return cnx.Peer{} }

func (p *producer) Disconnect() {
	p.mu.Lock()
	p.detached = true
	waiting := p.waiting
	p.waiting = map[uint64]func(error){}
	p.mu.Unlock()
	for _, answer := range waiting {
		answer(errDisconnected)
	}
	p.gone()
}

func (p *producer) isGone() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.detached
}

func (p *producer) start() {}

func (p *producer) answered(sequence uint64, err error) {
	p.mu.Lock()
	answer := p.waiting[sequence]
	delete(p.waiting, sequence)
	p.mu.Unlock()
	if answer != nil {
		answer(err)
	}
}

// send sends a message in a transaction. answer is called once, also if the process dies.
func (p *producer) send(id txn.ID, key string, answer func(error)) {
	reach(p.process, func(heard func(struct{}, error)) {
		p.mu.Lock()
		sequence := p.next
		p.next++
		detached := p.detached
		if !detached {
			p.waiting[sequence] = func(err error) { heard(struct{}{}, err) }
		}
		p.mu.Unlock()
		if detached {
			heard(struct{}{}, errDisconnected)
			return
		}
		p.topic.Send(cnx.Send{
			SequenceID: sequence, HighestSequenceID: sequence, NumMessages: 1, Payload: []byte(key), Txn: id, InTxn: id != txn.ID{},
		})
	}, func(_ struct{}, err error) { answer(err) })
}

// consumer is the client's end of a consumer. It collects what it is given.
type consumer struct {
	process *process
	gone    func() // called once, when the topic closes it
	got     func(key string, at ledger.Position)

	topic    cnx.Consumer
	detached atomic.Bool
}

func (c *consumer) Message(d cnx.Delivery) {
	c.got(string(d.Payload), ledger.Position{Ledger: d.LedgerID, Entry: d.EntryID})
}
func (c *consumer) Full() bool                 { return false }
func (c *consumer) ActiveConsumerChange(bool)  {}
func (c *consumer) ReachedEndOfTopic()         {}
func (c *consumer) Alive(context.Context) bool { return true }
func (c *consumer) Peer() cnx.Peer             { return cnx.Peer{} }

func (c *consumer) Disconnect() {
	c.detached.Store(true)
	c.gone()
}

func (c *consumer) isGone() bool { return c.detached.Load() }

func (c *consumer) start() { c.topic.Flow(1000) }

// subscribe returns what subscribes to a topic from the earliest message on.
func (c *consumer) subscribe(place int, name string, kind pulsarproto.CommandSubscribe_SubType, durable bool) func(context.Context) error {
	earliest, id := pulsarproto.CommandSubscribe_Earliest, uint64(place)
	cmd := &pulsarproto.CommandSubscribe{
		Topic: &topics[place], Subscription: &name, SubType: &kind, ConsumerId: &id, InitialPosition: &earliest, Durable: &durable,
	}
	return func(ctx context.Context) (err error) {
		c.topic, err = c.process.topics.Subscribe(ctx, nameOf(place), caller, cmd, c)
		return err
	}
}

// ack acknowledges one message in a transaction, or it and all before. answer is called once, also if the process dies.
func (c *consumer) ack(id txn.ID, at ledger.Position, cumulative bool, answer func(error)) {
	kind := pulsarproto.CommandAck_Individual
	if cumulative {
		kind = pulsarproto.CommandAck_Cumulative
	}
	cmd := &pulsarproto.CommandAck{
		AckType: &kind, MessageId: []*pulsarproto.MessageIdData{{LedgerId: &at.Ledger, EntryId: &at.Entry}},
		TxnidMostBits: &id.Most, TxnidLeastBits: &id.Least,
	}
	reach(c.process, func(heard func(struct{}, error)) {
		c.topic.Ack(cmd, func(err error) { heard(struct{}{}, err) })
	}, func(_ struct{}, err error) { answer(err) })
}
