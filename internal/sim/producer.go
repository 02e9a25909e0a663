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

// producer is the client's end of a producer. It implements cnx.ProducerClient for the other end.
type producer struct {
	link     *link
	topic    string
	attached cnx.Producer

	mu      sync.Mutex // guards the following
	next    uint64     // sequence id
	waiting map[uint64]chan<- answer
	gone    bool
}

// produce returns a producer of the topic, a new one where the old is of no use any more; nil if there is none.
func (c *client) produce(topic string) *producer {
	if old := c.producers[topic]; old != nil && !old.isGone() {
		return old
	}
	delete(c.producers, topic)
	label := "produce " + topic
	to := c.world.ownerOf(topic, c.world.unique(c.name+" "+label))
	if to == nil {
		return nil
	}
	p := &producer{link: c.link(to), topic: topic, waiting: map[uint64]chan<- answer{}}
	attached, err := p.link.attachment(label, func(done func(any, error)) {
		to.tasks.Go(func() {
			command := &pulsarproto.CommandProducer{Topic: &topic, ProducerId: new(uint64)}
			attached, _, err := to.topics.Produce(p.link.ctx, parsed(topic), anybody, command, p)
			if err == nil {
				p.link.attach(attached)
			}
			done(attached, err)
		})
	})
	if err != nil {
		return nil
	}
	p.attached = attached.(cnx.Producer)
	c.producers[topic] = p
	return p
}

func (p *producer) isGone() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.gone || p.link.isBroken()
}

// start sends a message; the answer comes to the channel.
func (p *producer) start(key string, id *txn.ID) (label string, answers <-chan answer) {
	heard := make(chan answer, 1)
	p.mu.Lock()
	sequence := p.next
	p.next++
	p.waiting[sequence] = heard
	p.mu.Unlock()
	message := cnx.Send{SequenceID: sequence, HighestSequenceID: sequence, NumMessages: 1, Payload: []byte(key)}
	if id != nil {
		message.Txn, message.InTxn = *id, true
	}
	w := p.link.process.world
	label = p.link.name + " send " + key
	if w.happens("connection cut before", label, w.mix.network.lost) {
		p.link.breakUp()
		return label, heard
	}
	p.link.carry(up, "", label, w.travel("call", label, w.mix.network.late), func() { p.attached.Send(message) })
	return label, heard
}

// Queued implements cnx.ProducerClient.
func (p *producer) Queued(cnx.ProducerInfo) {}

// Receipt implements cnx.ProducerClient.
func (p *producer) Receipt(sequence, _, _, _ uint64) { p.answer(sequence, nil) }

// SendError implements cnx.ProducerClient.
func (p *producer) SendError(sequence uint64, err error) { p.answer(sequence, err) }

func (p *producer) answer(sequence uint64, err error) {
	l := p.link
	if l.process.isDead() {
		return
	}
	w := l.process.world
	label := l.name + " receipt " + p.topic + " " + strconv.FormatUint(sequence, 10)
	if w.happens("connection cut behind", label, w.mix.network.answerLost) {
		l.breakUp()
		return
	}
	l.carry(down, p.topic, label, w.travel("answer", label, w.mix.network.answerLate), func() {
		p.mu.Lock()
		waiting := p.waiting[sequence]
		delete(p.waiting, sequence)
		p.mu.Unlock()
		if waiting != nil {
			waiting <- answer{nil, err}
		}
	})
}

// Disconnect implements cnx.ProducerClient.
func (p *producer) Disconnect() {
	l := p.link
	if l.process.isDead() {
		return
	}
	label := l.name + " close producer " + p.topic
	l.carry(down, p.topic, label, l.process.world.travel("answer", label, 0), func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.gone = true
		for sequence, waiting := range p.waiting {
			delete(p.waiting, sequence)
			waiting <- answer{nil, errCut}
		}
	})
}

// Alive implements cnx.ProducerClient.
func (p *producer) Alive(context.Context) bool { return !p.link.isBroken() }

// CnxID implements cnx.ProducerClient.
func (p *producer) CnxID() uint64 { return uint64(p.link.client.number<<16 | p.link.client.linked) }

// Peer implements cnx.ProducerClient.
func (p *producer) Peer() cnx.Peer { return peer }

// newKey names a message.
func (c *client) newKey() string {
	c.keys++
	return c.name + "m" + strconv.Itoa(c.keys)
}

// send sends a message and waits for its receipt.
func (c *client) send(topic string, id *txn.ID) {
	p := c.produce(topic)
	if p == nil {
		return
	}
	key, span := c.newKey(), c.span()
	label, answers := p.start(key, id)
	_, err := p.link.await(label, answers)
	c.sent(topic, key, id, span, err)
}

// stream sends a message and lets the receipt come when it does.
func (c *client) stream(topic string, id txn.ID) {
	p := c.produce(topic)
	if p == nil {
		return
	}
	key, span := c.newKey(), c.span()
	label, answers := p.start(key, &id)
	c.streams.Go(func() {
		_, err := p.link.await(label, answers)
		c.sent(topic, key, &id, span, err)
	})
}

// sent records what became of a message.
func (c *client) sent(topic, key string, id *txn.ID, span history.Span, err error) {
	w := c.world
	if topic == w.doomed() {
		return
	}
	m := history.Message{Topic: topic, Key: key, Answer: answerOf(err)}
	if m.Answer != history.Done && m.Answer != history.Unknown {
		m.Answer = history.Refused
	}
	if id != nil {
		m.Txn, m.InTxn = *id, true
		if m.Answer == history.Done {
			w.history.Used(history.Use{Span: c.done(span), ID: *id, Name: "SEND " + key, Participant: topic, Answer: history.Done})
		}
	}
	w.history.Sent(m)
}
