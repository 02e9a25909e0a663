package topic

import (
	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
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
	mode     pulsarproto.ProducerAccessMode
	broken   bool  // nothing of it is written any more: it was fenced, or a send was refused that its client repeats
	since    int64 // Unix ms
	in       meter
	metadata map[string]string

	// stored is what open transactions had of this name when the producer attached, last: what comes again up to there is a
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
		if !alive || !p.attached || p.topic.unloading {
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

// Again implements cnx.Producer. The Go client does this when it hears twice that a connection is gone, by CLOSE_PRODUCER and by the
// connection's end: what it has sent behind the first attachment it sends again behind the second, on the same connection.
func (p *producer) Again(done func(error)) {
	p.topic.ask(func(alive bool) {
		if !alive {
			done(ErrPersistence)
			return
		}
		p.topic.queue.push(&attachAgain{p, done})
	})
}

// attachAgain is an item so that everything the producer sent before is decided.
type attachAgain struct {
	producer *producer
	answer   func(error)
}

func (a *attachAgain) prepare(*group) bool { return true }

func (a *attachAgain) undo() {}

func (a *attachAgain) fail(err error) { a.answer(err) }

func (a *attachAgain) done(*group) {
	p := a.producer
	if !p.attached || p.parked() { // what it holds may be stored, and is not known yet
		a.fail(ErrPersistence)
		return
	}
	p.stored = p.topic.dedup.Open(p.name)
	a.answer(nil)
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
	t := p.topic
	if t.producers[p.name] != p {
		return
	}
	delete(t.producers, p.name)
	if t.exclusive == p {
		t.exclusive = nil
	}
	t.promote()
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
