package topic

import (
	"context"
	"errors"
	"fmt"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// producer is an attached producer.
type producer struct {
	topic    *Topic
	id       uint64
	name     string
	epoch    uint64
	caller   cnx.Caller
	client   cnx.ProducerClient
	attached bool

	// stored is what open transactions had of this name when the producer attached: what comes again up to there is a
	// repeat behind a reconnect. Later sends are not compared, because an application may set sequence ids as it likes.
	stored map[txn.ID]uint64
	// held are sends that wait for the coordinator's answer, and all behind them.
	held []*sendItem
	// group and block are where the last send was placed.
	group uint64
	block int
}

var _ cnx.Producer = (*producer)(nil)

// Send implements cnx.Producer.
func (p *producer) Send(msg cnx.Send) {
	s := &sendItem{producer: p, msg: msg}
	p.topic.post(func(alive bool) {
		if !alive || !p.attached {
			return
		}
		s.check()
		if p.parked() {
			p.held = append(p.held, s)
			return
		}
		p.topic.queue.push(s)
	})
}

// Close implements cnx.Producer.
func (p *producer) Close() {
	done := make(chan struct{})
	p.topic.ask(func(alive bool) {
		defer close(done)
		if alive {
			p.detach()
		}
	})
	<-done
}

// detach forgets the producer. What it sent and is in the queue is written, what it holds is dropped: nobody got a receipt.
func (p *producer) detach() {
	p.attached = false
	p.held = nil
	if p.topic.producers[p.name] == p {
		delete(p.topic.producers, p.name)
	}
}

func (p *producer) parked() bool { return len(p.held) > 0 }

// release returns the held sends that wait for nothing any more.
func (p *producer) release() []item {
	var ready []item
	for len(p.held) > 0 && !p.held[0].waiting {
		ready = append(ready, p.held[0])
		p.held = p.held[1:]
	}
	return ready
}

func (p *producer) placedIn(g *group) int {
	if p.group != g.number {
		return 0
	}
	return p.block
}

func (p *producer) placed(g *group, block int) { p.group, p.block = g.number, block }

// attachProducer is an item so that everything an earlier producer of the name sent is decided before.
type attachProducer struct {
	topic  *Topic
	caller cnx.Caller
	cmd    *pulsarproto.CommandProducer
	client cnx.ProducerClient
	answer func(*producer, cnx.ProducerInfo, error)
	probed *producer // was found alive
}

func (a *attachProducer) prepare(*group) bool { return true }

func (a *attachProducer) undo() {}

func (a *attachProducer) fail(err error) { a.answer(nil, cnx.ProducerInfo{}, err) }

func (a *attachProducer) done(*group) {
	t := a.topic
	if mode := a.cmd.GetProducerAccessMode(); mode != pulsarproto.ProducerAccessMode_Shared {
		a.fail(fmt.Errorf("%w: producer access mode %v is not supported", txn.ErrNotAllowed, mode))
		return
	}
	name := a.cmd.GetProducerName()
	if name == "" {
		t.counts.names++
		name = fmt.Sprintf("pulsar-tc-%d-%d", t.fence, t.counts.names)
	}
	if old := t.producers[name]; old != nil {
		replaces := old.client.CnxID() == a.client.CnxID() && old.id == a.cmd.GetProducerId() && a.cmd.GetEpoch() > old.epoch
		switch {
		case replaces:
			old.detach()
		case a.probed == old:
			a.fail(fmt.Errorf("%w: %s", ErrProducerBusy, name))
			return
		default:
			a.probe(old)
			return
		}
	}
	p := &producer{
		topic: t, id: a.cmd.GetProducerId(), name: name, epoch: a.cmd.GetEpoch(), caller: a.caller, client: a.client,
		attached: true, stored: t.dedup.Open(name),
	}
	t.producers[name] = p
	info := cnx.ProducerInfo{Name: name, LastSequenceID: -1, Ready: true}
	if last, found := t.dedup.Last(name); found {
		info.LastSequenceID = int64(last)
	}
	a.answer(p, info, nil)
}

// probe asks whether the producer in the way is alive, and tries again.
func (a *attachProducer) probe(old *producer) {
	t := a.topic
	t.async(func() {
		alive := old.client.Alive(t.ctx)
		t.ask(func(open bool) {
			if !open {
				a.fail(ErrPersistence)
				return
			}
			a.probed = old
			if !alive {
				old.detach()
			}
			t.queue.push(a)
		})
	})
}

// Produce implements conn.Topics.
func (ts *Topics) Produce(ctx context.Context, name topicname.Name, caller cnx.Caller, cmd *pulsarproto.CommandProducer, client cnx.ProducerClient) (cnx.Producer, cnx.ProducerInfo, error) {
	initial := cmd.GetInitialSubscriptionName()
	if err := errors.Join(checkLength("producer_name", cmd.GetProducerName()), checkLength("initial_subscription_name", initial)); err != nil {
		return nil, cnx.ProducerInfo{}, err
	}
	if initial == reservedSubscription {
		return nil, cnx.ProducerInfo{}, ErrSubscriptionName
	}
	var info cnx.ProducerInfo
	p, err := attach(ctx, ts, name, true, func(t *Topic, answer func(*producer, error)) {
		if initial != "" {
			t.queue.push(&subscribeItem{topic: t, name: initial, durable: true, earliest: true})
		}
		t.queue.push(&attachProducer{topic: t, caller: caller, cmd: cmd, client: client, answer: func(p *producer, i cnx.ProducerInfo, err error) {
			info = i
			answer(p, err)
		}})
	})
	if err != nil {
		return nil, cnx.ProducerInfo{}, err
	}
	return p, info, nil
}
