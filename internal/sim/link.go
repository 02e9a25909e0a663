package sim

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/pulsar-tc/pulsar-tc/cnx"
)

var (
	// errCut is what a client knows when its connection is gone: nothing.
	errCut = errors.New("the connection was cut")
	// errNoAnswer is what it knows when it gives up waiting.
	errNoAnswer = errors.New("no answer in time")
	// errOver ends everybody's work.
	errOver = errors.New("the simulation is over")
)

// answer is what comes back of a call.
type answer struct {
	value any
	err   error
}

// link is a connection of a client to a process. What is sent in one direction arrives in order, or not at all.
type link struct {
	name    string // unique
	client  *client
	process *process
	broken  chan struct{}   // closed when the client knows that it is cut
	ctx     context.Context // ends when the process knows
	hangUp  context.CancelFunc

	mu       sync.Mutex // guards the following
	arrived  [2]time.Time
	cut      bool
	attached []interface{ Close() }
}

// The directions of a link.
const (
	up   = iota // to the process
	down        // to the client
)

// link returns the client's connection to a process, a new one if there is none.
func (c *client) link(p *process) *link {
	if l := c.links[p]; l != nil && !l.isBroken() {
		return l
	}
	c.linked++
	l := &link{name: c.name + "-" + p.name + "." + strconv.Itoa(c.linked), client: c, process: p, broken: make(chan struct{})}
	l.ctx, l.hangUp = context.WithCancel(p.ctx)
	c.links[p] = l
	p.adopt(l)
	return l
}

func (l *link) isBroken() bool {
	select {
	case <-l.broken:
		return true
	default:
		return false
	}
}

// breakUp cuts the connection: the client knows at once, the process a little later.
func (l *link) breakUp() {
	l.mu.Lock()
	was := l.cut
	l.cut = true
	l.mu.Unlock()
	if was {
		return
	}
	close(l.broken)
	w := l.process.world
	w.after(w.travel("hang up", l.name, w.mix.network.late), l.name+" cut", l.close)
}

// refuse has the process end the connection. The client hears of it behind what was sent to it before.
func (l *link) refuse() {
	if l.process.isDead() {
		return
	}
	w := l.process.world
	l.carry(down, "", l.name+" closed", w.travel("answer", l.name+" closed", 0), l.breakUp)
}

// close ends the connection at the process, as package conn does.
func (l *link) close() {
	l.hangUp()
	l.mu.Lock()
	attached := l.attached
	l.attached = nil
	l.mu.Unlock()
	if l.process.isDead() {
		return // its topics close by themselves
	}
	for _, a := range attached {
		l.process.tasks.Go(a.Close)
	}
}

// attach has something closed with the connection.
func (l *link) attach(a interface{ Close() }) {
	l.mu.Lock()
	gone := l.ctx.Err() != nil
	if !gone {
		l.attached = append(l.attached, a)
	}
	l.mu.Unlock()
	if gone {
		a.Close()
	}
}

// carry brings something to the other end, behind what was sent there before. label begins with the name of the link. source
// names who sends, for the order of what several send at once.
func (l *link) carry(direction int, source, label string, delay time.Duration, deliver func()) {
	w := l.process.world
	label = w.unique(label)
	w.stage(l.name+source, func() {
		at := time.Now().Add(delay)
		if direction == down {
			at = l.process.leaves(delay)
		}
		w.post(l.slot(direction, at), label, func() { l.land(direction, label, deliver) })
	})
}

// slot is the time of the next arrival, not before earliest.
func (l *link) slot(direction int, earliest time.Time) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if last := l.arrived[direction]; !earliest.After(last) {
		earliest = last.Add(1)
	}
	l.arrived[direction] = earliest
	return earliest
}

func (l *link) land(direction int, label string, deliver func()) {
	l.mu.Lock()
	cut := l.cut
	l.mu.Unlock()
	until := l.process.pausedUntil()
	switch {
	case cut:
	case direction == down:
		deliver()
	case l.process.isDead():
		l.breakUp()
	case until.After(time.Now()):
		l.process.world.post(l.slot(up, until), label, func() { l.land(up, label, deliver) })
	default:
		deliver()
	}
}

// call asks the process something and waits for the answer. start runs there and must not block; done may be called from
// anywhere. A frame that is repeated comes again later, by another connection.
func (l *link) call(label string, repeatable bool, start func(done func(any, error))) (any, error) {
	p := l.process
	w := p.world
	answers := make(chan answer, 1)
	label = w.unique(l.name + " " + label)
	faults := &w.mix.network
	if w.happens("connection cut before", label, faults.lost) {
		l.breakUp()
		return nil, errCut
	}
	arrive := func() {
		if repeatable {
			w.repeat("frame", label, p, func() { start(func(any, error) {}) })
		}
		start(func(value any, err error) {
			if p.isDead() {
				return
			}
			if w.happens("connection cut behind", label, faults.answerLost) {
				l.breakUp()
				return
			}
			l.carry(down, label, label+" <", w.travel("answer", label, faults.answerLate), func() { answers <- answer{value, err} })
		})
	}
	l.carry(up, "", label+" >", w.travel("call", label, faults.late), arrive)
	return l.await(label, answers)
}

// repeat has what a process is given now come again later, or not. It never comes before the first time, which would be a question
// that nobody asked.
func (w *world) repeat(what, label string, to *process, come func()) {
	if !w.happens(what+" repeated", label, w.mix.network.repeated) {
		return
	}
	again := time.Duration(w.chance.below(20_000, "repeated after", label)) * time.Millisecond
	w.after(again, label+" again", func() {
		if !to.isDead() {
			come()
		}
	})
}

// attachment is a call that attaches something. A client that gives up waiting hangs up, or it would be in its own way.
func (l *link) attachment(label string, start func(done func(any, error))) (any, error) {
	value, err := l.call(label, false, start)
	if errors.Is(err, errNoAnswer) {
		l.breakUp()
	}
	return value, err
}

// await waits for an answer, as long as a client does.
func (l *link) await(label string, answers <-chan answer) (any, error) {
	w := l.process.world
	patience := time.Duration(2000+w.chance.below(8000, "patience", label)) * time.Millisecond
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case a := <-answers:
		return a.value, a.err
	case <-l.broken:
		return nil, errCut
	case <-timer.C:
		return nil, errNoAnswer
	case <-w.over:
		return nil, errOver
	}
}

// links are the connections of a process.
type links struct {
	mu  sync.Mutex
	all []*link
}

func (p *process) adopt(l *link) {
	p.links.mu.Lock()
	defer p.links.mu.Unlock()
	p.links.all = append(slices.DeleteFunc(p.links.all, (*link).isBroken), l)
}

// breakAll cuts every connection, as the death of the process does.
func (s *links) breakAll() {
	s.mu.Lock()
	all := s.all
	s.all = nil
	s.mu.Unlock()
	for _, l := range all {
		l.breakUp()
	}
}

// peer is what stats show of a simulated client.
var peer = cnx.Peer{Address: "sim:1", ClientVersion: "sim"}
