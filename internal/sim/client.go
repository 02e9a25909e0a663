package sim

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/coordinator/fsm"
	"github.com/pulsar-tc/pulsar-tc/internal/history"
	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// subscription is the one that every topic has.
const subscription = "sub"

// client is somebody who uses the cluster. Its goroutine does one step after the other.
type client struct {
	world  *world
	name   string
	number int
	script []step

	links      map[*process]*link
	linked     int
	registered map[uint64]*link // by coordinator
	producers  map[string]*producer
	consumers  map[string]*consumer
	keys       int // of messages
	streams    sync.WaitGroup

	mu   sync.Mutex
	open []txn.ID // guarded by mu: the transactions of the slots; zero: not known
}

func newClient(w *world, number int) *client {
	return &client{
		world: w, name: "c" + strconv.Itoa(number), number: number, links: map[*process]*link{}, registered: map[uint64]*link{},
		producers: map[string]*producer{}, consumers: map[string]*consumer{},
	}
}

// work does the steps of the script.
func (c *client) work() {
	w := c.world
	for i, s := range c.script {
		if !c.sleep(s.pause) {
			return
		}
		if w.incident(stepNames[s.kind], c.name+"/"+strconv.Itoa(i)+" "+stepNames[s.kind]) {
			c.perform(s)
		}
	}
	c.streams.Wait()
}

// sleep reports false if the simulation ends meanwhile.
func (c *client) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-c.world.over:
		return false
	}
}

func (c *client) perform(s step) {
	topic := c.world.topics[s.topic%len(c.world.topics)]
	id := c.transaction(s.slot)
	switch s.kind {
	case opening:
		c.openTxn(s)
		return
	case plainSending:
		c.send(topic, nil)
		return
	case plainAcking:
		c.ack(topic, nil)
		return
	case meddling, operating:
		if other := c.foreign(s.whose); other != (txn.ID{}) {
			c.end(other, s.action, s.kind == operating)
		}
		return
	case watching:
		if other := c.foreign(s.whose); other != (txn.ID{}) {
			c.look(other)
		}
		return
	}
	if id == (txn.ID{}) {
		return
	}
	switch s.kind {
	case sending:
		c.send(topic, &id)
	case streaming:
		c.stream(topic, id)
	case acking:
		c.ack(topic, &id)
	case adding:
		c.add(id, topic)
	case ending:
		c.end(id, s.action, false)
	case looking:
		c.look(id)
	}
}

// transaction is that of a slot, zero if it is not known.
func (c *client) transaction(slot int) txn.ID {
	c.mu.Lock()
	defer c.mu.Unlock()
	if slot >= len(c.open) {
		return txn.ID{}
	}
	return c.open[slot]
}

func (c *client) know(slot int, id txn.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.open) <= slot {
		c.open = append(c.open, txn.ID{})
	}
	c.open[slot] = id
}

// foreign is the newest transaction of another client.
func (c *client) foreign(whose int) txn.ID {
	other := c.world.clients[whose%len(c.world.clients)]
	other.mu.Lock()
	defer other.mu.Unlock()
	if len(other.open) == 0 {
		return txn.ID{}
	}
	return other.open[len(other.open)-1]
}

// span begins an operation of the history.
func (c *client) span() history.Span {
	return history.Span{Client: c.name, Call: c.world.history.Now()}
}

func (c *client) done(s history.Span) history.Span {
	s.Return = c.world.history.Now()
	return s
}

// coordinatorLink is the connection at which the client has registered with a coordinator: the one that it has, else a new one to
// who leads. nil: it knows nobody, or is refused.
func (c *client) coordinatorLink(tc uint64, label string) *link {
	if l := c.registered[tc]; l != nil && !l.isBroken() {
		return l
	}
	delete(c.registered, tc)
	p := c.world.leaderOf(tc, c.world.unique(c.name+" "+label))
	if p == nil {
		return nil
	}
	l := c.link(p)
	_, err := l.call(fmt.Sprint("connect ", tc), false, func(done func(any, error)) {
		p.group.Connect(l.ctx, tc, func(bool) { c.world.stage(l.name, l.refuse) }, func(err error) { done(nil, err) })
	})
	if err != nil {
		return nil
	}
	c.registered[tc] = l
	return l
}

// ask asks a coordinator. Who does not answer for good is looked up again.
func (c *client) ask(tc uint64, l *link, label string, start func(done func(any, error))) (any, error) {
	value, err := l.call(label, true, start)
	if err != nil && answerOf(err) == history.Unknown {
		delete(c.registered, tc)
	}
	return value, err
}

func (c *client) openTxn(s step) {
	w := c.world
	label := "new " + strconv.Itoa(s.slot)
	tc := uint64(w.chance.below(w.mix.coordinators, "coordinator", c.name+label))
	l := c.coordinatorLink(tc, label)
	if l == nil {
		return
	}
	name := ""
	if s.named {
		name = c.name
	}
	op := history.Open{Span: c.span(), TTL: w.mix.ttl, Kept: w.mix.kept}
	value, err := c.ask(tc, l, label, func(done func(any, error)) {
		l.process.group.NewTxn(l.ctx, tc, txn.Owner{}, uint64(w.mix.ttl.Milliseconds()), name, s.named, func(id txn.ID, err error) {
			w.oracle.answeredNew(l.process, id, err)
			done(id, err)
		})
	})
	if err != nil {
		return
	}
	op.ID, op.Span = value.(txn.ID), c.done(op.Span)
	w.history.Opened(op)
	c.know(s.slot, op.ID)
}

func (c *client) add(id txn.ID, topic string) {
	w := c.world
	label := fmt.Sprintf("add %v %s", id, topic)
	l := c.coordinatorLink(id.Most, label)
	if l == nil {
		return
	}
	participant := txn.Participant{Topic: topic}
	use := history.Use{Span: c.span(), ID: id, Name: "ADD", Participant: participant.String()}
	_, err := c.ask(id.Most, l, label, func(done func(any, error)) {
		question := w.oracle.asks(l.process, id)
		l.process.group.AddParticipants(l.ctx, id, fsm.Caller{}, []txn.Participant{participant}, func(err error) {
			w.oracle.answeredAdd(l.process, id, participant, err)
			if question.answered(err); err == nil {
				question.answeredOpen("ADD")
			}
			done(nil, err)
		})
	})
	use.Span, use.Answer = c.done(use.Span), answerOf(err)
	if use.Answer != history.Unknown {
		w.history.Used(use)
	}
}

// end asks for the end of a transaction and reports whether the answer was definite.
func (c *client) end(id txn.ID, action txn.Action, super bool) bool {
	w := c.world
	label := fmt.Sprintf("end %v %s", id, action)
	l := c.coordinatorLink(id.Most, label)
	if l == nil {
		return false
	}
	op := history.End{Span: c.span(), ID: id, Action: action}
	_, err := c.ask(id.Most, l, label, func(done func(any, error)) {
		question := w.oracle.asks(l.process, id)
		l.process.group.EndTxn(l.ctx, id, fsm.Caller{Super: super}, action, true, func(err error) {
			w.oracle.answeredEnd(l.process, id, action, err)
			question.answered(err)
			done(nil, err)
		})
	})
	op.Span, op.Answer = c.done(op.Span), answerOf(err)
	w.history.Ended(op)
	return op.Answer != history.Unknown
}

func (c *client) look(id txn.ID) {
	label := fmt.Sprintf("look %v", id)
	p := c.world.believerIn(id.Most, c.world.unique(c.name+" "+label))
	if p != nil {
		c.lookAt(p, label, id)
	}
}

// lookAt asks one process how a transaction stands.
func (c *client) lookAt(p *process, label string, id txn.ID) {
	l := c.link(p)
	op := history.Look{Span: c.span(), ID: id, Known: true}
	value, err := l.call(label, false, func(done func(any, error)) {
		question := c.world.oracle.asks(l.process, id)
		l.process.tasks.Go(func() {
			ctx, cancel := context.WithTimeout(l.ctx, 10*time.Second)
			defer cancel()
			d, err := l.process.group.Describe(ctx, id)
			if question.answered(err); err == nil && d.Status == txn.Open {
				question.answeredOpen("Describe")
			}
			done(d, err)
		})
	})
	op.Span = c.done(op.Span)
	switch answerOf(err) {
	case history.Done:
		op.Status = value.(fsm.Description).Status
	case history.NotFound:
		op.Known = false
	default:
		return
	}
	c.world.history.Saw(op)
}

// answerOf says what an error tells a client. It follows the codes that package conn gives them.
func answerOf(err error) history.Answer {
	var notFound *txn.NotFoundError
	var wrongStatus *txn.StatusError
	switch {
	case err == nil:
		return history.Done
	case errors.As(err, &notFound):
		return history.NotFound
	case errors.As(err, &wrongStatus):
		return history.Contrary
	case errors.Is(err, txn.ErrNotAllowed), errors.Is(err, txn.ErrConflict):
		return history.Refused
	}
	return history.Unknown
}

func parsed(name string) topicname.Name {
	n, err := topicname.Parse(name)
	if err != nil {
		panic(err) // the names are ours
	}
	return n
}

var anybody cnx.Caller
