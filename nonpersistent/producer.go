package nonpersistent

import (
	"context"
	"fmt"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// producer is an attached producer.
type producer struct {
	topic    *topic
	id       uint64
	name     string
	epoch    uint64
	client   cnx.ProducerClient
	attached bool
}

var _ cnx.Producer = (*producer)(nil)

// Produce implements conn.Topics. Of the access modes there are Shared and Exclusive: what the others wait for or fence is
// state that a topic without storage does not have.
func (ts *Topics) Produce(ctx context.Context, name topicname.Name, cmd *pulsarproto.CommandProducer, client cnx.ProducerClient) (cnx.Producer, cnx.ProducerInfo, error) {
	if err := ts.check(ctx, name); err != nil {
		return nil, cnx.ProducerInfo{}, err
	}
	mode := cmd.GetProducerAccessMode()
	if mode != pulsarproto.ProducerAccessMode_Shared && mode != pulsarproto.ProducerAccessMode_Exclusive {
		return nil, cnx.ProducerInfo{}, fmt.Errorf("%w: producer access mode %v on a non-persistent topic", txn.ErrNotAllowed, mode)
	}
	var probed *producer
	for {
		p, old, err := ts.attach(name, cmd, client, probed)
		switch {
		case err != nil:
			return nil, cnx.ProducerInfo{}, err
		case old == nil:
			return p, cnx.ProducerInfo{Name: p.name, LastSequenceID: -1, Ready: true}, nil
		}
		if !old.client.Alive(ctx) {
			old.Close()
		}
		probed = old
	}
}

// attach adds a producer, or returns the one that has its name on another connection, unless that was probed.
func (ts *Topics) attach(name topicname.Name, cmd *pulsarproto.CommandProducer, client cnx.ProducerClient, probed *producer) (p, old *producer, err error) {
	most := ts.options.Limits(name).Producers
	p = &producer{id: cmd.GetProducerId(), name: cmd.GetProducerName(), epoch: cmd.GetEpoch(), client: client, attached: true}
	err = ts.use(name, func(t *topic) error {
		if p.name == "" {
			ts.names++
			p.name = fmt.Sprintf("pulsar-tc-non-persistent-%d", ts.names)
		}
		old = t.producers[p.name]
		switch {
		case old == nil:
		case old.client.CnxID() == client.CnxID() && old.id == p.id && p.epoch > old.epoch:
			old.detach()
			old = nil
		case old == probed:
			old = nil
			return errProducerBusy
		default:
			return nil
		}
		exclusive := cmd.GetProducerAccessMode() == pulsarproto.ProducerAccessMode_Exclusive
		switch {
		case t.exclusive != nil && exclusive, exclusive && len(t.producers) > 0:
			return errFenced
		case t.exclusive != nil:
			return errProducerBusy
		case most > 0 && len(t.producers) >= most:
			return cnx.Refuse(pulsarproto.ServerError_ProducerBusy, "Topic reached max producers limit")
		}
		p.topic = t
		t.producers[p.name] = p
		if exclusive {
			t.exclusive = p
		}
		return nil
	})
	return p, old, err
}

// Again implements cnx.Producer.
func (p *producer) Again(done func(error)) { done(nil) }

// Send implements cnx.Producer. The position of a message that is not stored is 0:0.
//
// Source: NonPersistentTopic.publishMessage.
func (p *producer) Send(msg cnx.Send) {
	if msg.InTxn && msg.Refused == nil {
		msg.Refused = errTxn
	}
	if msg.Refused != nil {
		p.client.SendError(max(msg.SequenceID, msg.HighestSequenceID), msg.Refused)
		return
	}
	t := p.topic
	t.mu.Lock()
	defer t.mu.Unlock()
	if !p.attached {
		return
	}
	for _, s := range t.subscriptions {
		s.deliver(msg)
	}
	p.client.Receipt(msg.SequenceID, msg.HighestSequenceID, 0, 0)
}

// Close implements cnx.Producer.
func (p *producer) Close() {
	p.topic.mu.Lock()
	p.detach()
	p.topic.mu.Unlock()
	p.topic.forget()
}

func (p *producer) detach() {
	p.attached = false
	if p.topic.producers[p.name] == p {
		delete(p.topic.producers, p.name)
	}
	if p.topic.exclusive == p {
		p.topic.exclusive = nil
	}
}
