package crashpoint

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/coordinator/fsm"
	"github.com/pulsar-tc/pulsar-tc/internal/etcdmodel"
	"github.com/pulsar-tc/pulsar-tc/internal/history"
	"github.com/pulsar-tc/pulsar-tc/participant/embedded"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

const (
	// shortTTL is that of a transaction which is left to its deadline, longTTL that of the others.
	shortTTL, longTTL = 9 * time.Second, 20 * time.Second
	// patience is how long, by the clock of the bubble, one round may take, and the end of everything behind the last one.
	patience = 5 * time.Minute
	// idlePause is between two looks at whether something has happened that no store effect tells of.
	idlePause = 100 * time.Millisecond
	// repeatPause is between two attempts of a client.
	repeatPause = 50 * time.Millisecond
)

var caller cnx.Caller

// world is one run, in a bubble of its own.
type world struct {
	run     Run
	model   *etcdmodel.Model
	gate    *gate
	history *history.History
	clients *clients

	progress chan struct{} // has a token when an operation was answered
	stopping sync.WaitGroup

	mu           sync.Mutex // guards the following
	coordinators *process
	topics       *process
	transactions []transaction
	generation   int
	failures     []string

	// The goroutine of the run alone uses these.
	kills   []Kill
	counted int // effects since the clients began or since the last kill
	counts  []int
	late    []*lateEffects
	choices int // effects that were one of several
	trace   []string
}

// transaction is what the clients know of one.
type transaction struct {
	id     txn.ID
	opened time.Time
	ttl    time.Duration
	writes [participantCount]*history.Answer // nil: nothing was written there
	ends   []endAnswer                       // in the order of the answers
}

type endAnswer struct {
	action txn.Action
	answer history.Answer
}

// lateEffects wait for the successor of the process that asked for them.
type lateEffects struct {
	effects   []*effect
	successor string
	made      int // what the successor has done, two for each effect: one before it and one after it
	after     int
}

func newWorld(run Run) *world {
	w := &world{
		run: run, model: etcdmodel.New(etcdmodel.Options{}), gate: newGate(), history: history.New(),
		progress: make(chan struct{}, 1), transactions: make([]transaction, len(run.Plans)),
	}
	w.clients = newClients(w.topicsProcess, w.history, run.Cumulative)
	return w
}

func (w *world) topicsProcess() *process {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.topics
}

func (w *world) coordinatorProcess() *process {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.coordinators
}

func (w *world) newProcess(role string) *process {
	w.generation++
	return newProcess(w.model, fmt.Sprintf("%s%d", role, w.generation), w.gate.pass)
}

// start starts the processes that are missing.
func (w *world) start() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.run.Deployment == Apart {
		w.startApart()
		return
	}
	if w.topics != nil {
		return
	}
	p := w.newProcess("process")
	w.topics, w.coordinators = p, p
	p.start(func() error {
		if w.run.Deployment == Shared {
			if err := p.join(); err != nil {
				return err
			}
		}
		p.startTopics(w.coordinatorProcess)
		return p.startCoordinator(embedded.New(p.topics), w.run.Deployment == Together)
	}, w.fail)
}

func (w *world) startApart() {
	if w.topics == nil {
		p := w.newProcess("topics")
		w.topics = p
		p.start(func() error {
			if err := p.join(); err != nil {
				return err
			}
			p.startTopics(w.coordinatorProcess)
			return nil
		}, w.fail)
	}
	if w.coordinators == nil {
		p := w.newProcess("coordinator")
		w.coordinators = p
		p.start(func() error { return p.startCoordinator(elsewhere{w.topicsProcess}, false) }, w.fail)
	}
}

// fail notes what went wrong beside the promises.
func (w *world) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failures = append(w.failures, err.Error())
}

// kill ends a process, whose successor starts at once. It returns what it had asked of the store.
func (w *world) kill(name string) []*effect {
	dying, hadTopics := w.takeOut(name)
	if hadTopics {
		w.clients.forget()
	}
	orphans := w.gate.kill(name)
	w.start()
	dying.die()
	w.stopping.Go(func() {
		if err := dying.stop(); err != nil {
			w.fail(err)
		}
	})
	if hadTopics {
		go w.clients.attach()
	}
	return orphans
}

func (w *world) takeOut(name string) (dying *process, hadTopics bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.topics.name == name {
		dying, w.topics, hadTopics = w.topics, nil, true
	}
	if w.coordinators.name == name {
		dying, w.coordinators = w.coordinators, nil
	}
	return dying, hadTopics
}

// pump lets effects happen, one by one, and time pass, until done.
func (w *world) pump(what string, done func() bool) error {
	began := time.Now()
	for {
		synctest.Wait()
		if done() {
			return nil
		}
		if e, waiting := w.gate.next(w.run.Last); e != nil {
			if waiting > 1 {
				w.choices++
			}
			w.step(e)
			continue
		}
		if time.Since(began) > patience {
			return fmt.Errorf("%s does not come to an end", what)
		}
		select {
		case <-w.gate.arrived:
		case <-w.progress:
		case <-time.After(idlePause):
		}
	}
}

// step lets one effect happen, or kills the process that asks for it.
func (w *world) step(e *effect) {
	if !e.Changes() {
		w.gate.release(e)
		return
	}
	w.counted++
	if len(w.kills) > 0 && w.counted == w.kills[0].At {
		w.killAt(e)
		return
	}
	w.note("%s", e.text)
	w.pass(e)
	e.Apply()
	w.pass(e)
	w.gate.release(e)
}

func (w *world) note(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf("%10v ", w.history.Now())+fmt.Sprintf(format, args...))
}

// pass counts what a process does towards the late effects of the one before it. What makes it known to others does not count.
func (w *world) pass(e *effect) {
	keys := e.Keys()
	if len(keys) == 0 || strings.HasPrefix(keys[0], space.Instances()) {
		return
	}
	for _, l := range w.late {
		if l.successor == e.Client {
			l.made++
			w.applyLate(l)
		}
	}
}

func (w *world) applyLate(l *lateEffects) {
	if l.made < l.after {
		return
	}
	for _, e := range l.effects {
		err := e.Apply()
		w.note("late: %s: %v", e.text, err)
	}
	l.effects = nil
}

func (w *world) killAt(e *effect) {
	k := w.kills[0]
	w.kills = w.kills[1:]
	w.counts = append(w.counts, w.counted)
	w.counted = 0
	w.note("%v: %s", k, e.text)
	if k.Fate == After {
		e.Apply()
	}
	successor := w.coordinatorProcess
	if w.topicsProcess().name == e.Client {
		successor = w.topicsProcess
	}
	orphans := w.kill(e.Client)
	if k.Fate == Late {
		l := &lateEffects{effects: orphans, successor: successor().name, after: k.Late}
		w.late = append(w.late, l)
		w.applyLate(l)
	}
}

// answerOf turns an error into an answer. An error that asks for a repetition is no answer.
func answerOf(err error) history.Answer {
	var status *txn.StatusError
	var notFound *txn.NotFoundError
	switch {
	case err == nil:
		return history.Done
	case errors.As(err, &status):
		return history.Contrary
	case errors.As(err, &notFound):
		return history.NotFound
	case errors.Is(err, txn.ErrNotAllowed), errors.Is(err, txn.ErrConflict):
		return history.Refused
	}
	return history.Unknown
}

var anybody fsm.Caller
