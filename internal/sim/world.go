package sim

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pulsar-tc/pulsar-tc/internal/etcdmodel"
	"github.com/pulsar-tc/pulsar-tc/internal/history"
	"github.com/pulsar-tc/pulsar-tc/keyspace"
)

// world is everything that a schedule simulates.
type world struct {
	*scheduler
	mix    mix
	mutant Mutant
	keep   map[string]bool
	space  keyspace.Space
	store  *etcdmodel.Model
	// progress is touched by the scheduler's goroutine alone.
	progress progress
	history  *history.History
	oracle   *oracle
	topics   []string // full names, the one that may be deleted last

	ownerKeys    map[string]string // of each topic
	doomedPrefix string            // of the keys of the one that may be deleted

	instances []*instance
	clients   []*client
	network   *network

	calm atomic.Bool   // no fault happens any more
	over chan struct{} // closed when everybody goes home

	actors sync.WaitGroup // clients and readers
	reaped sync.WaitGroup // instances that were killed

	mu        sync.Mutex // guards the following
	broken    *Violation
	incidents []string
	counts    map[string]int
	decisions []*history.Decision
	visits    []*visit // that left a subscription behind
	sightings []sighting
}

// Run simulates a schedule in a bubble of its own.
func Run(t *testing.T, schedule Schedule) Result {
	var result Result
	synctest.Test(t, func(*testing.T) { result = simulate(schedule) })
	return result
}

func simulate(schedule Schedule) Result {
	w := newWorld(schedule)
	w.setUp()
	if w.violation() == nil {
		w.faults()
	}
	if w.violation() == nil {
		w.settle()
	}
	w.tearDown()
	slices.Sort(w.incidents)
	return Result{Broken: w.broken, Incidents: w.incidents, Events: w.count, Hash: w.hash, Trace: w.trace, Counts: w.counts}
}

func newWorld(schedule Schedule) *world {
	c := chance(mixed(schedule.Seed + 1))
	w := &world{
		scheduler: newScheduler(c, schedule.Verbose), mix: newMix(schedule.Seed), mutant: mutantNamed(schedule.Mutant),
		keep: keepSet(schedule.Keep), space: keyspace.New("sim", "cluster"), history: history.New(),
		over: make(chan struct{}), counts: map[string]int{}, ownerKeys: map[string]string{},
	}
	w.store = etcdmodel.New(etcdmodel.Options{MaxTxnOps: w.mix.maxOps})
	w.oracle = newOracle(w)
	w.network = &network{world: w}
	w.populate(schedule.Seed)
	return w
}

// populate makes who and what the mix asks for.
func (w *world) populate(seed uint64) {
	w.topics, w.instances, w.clients = nil, nil, nil
	for i := range w.mix.topics {
		w.topics = append(w.topics, topicNamed(i))
	}
	for i := range w.mix.instances {
		w.instances = append(w.instances, &instance{world: w, number: i + 1})
	}
	for i := range w.mix.clients {
		c := newClient(w, i+1)
		c.script = writeScript(seed, c.number, &w.mix)
		w.clients = append(w.clients, c)
	}
}

func topicNamed(i int) string { return "persistent://public/default/" + string(rune('a'+i)) }

// doomed is the topic that may be deleted: nothing is expected of what it holds.
func (w *world) doomed() string { return w.topics[len(w.topics)-1] }

// setUp starts the instances and creates topics and subscriptions, without faults.
func (w *world) setUp() {
	w.calm.Store(true)
	for _, i := range w.instances {
		i.start()
	}
	ready := make(chan struct{})
	w.actors.Go(func() {
		defer close(ready)
		w.createTopics()
	})
	w.runUntil(ready, time.Minute, "a cluster without faults does not come up")
}

// faults runs the clients while faults happen.
func (w *world) faults() {
	w.calm.Store(false)
	w.plan()
	done, home := make(chan struct{}), make(chan struct{})
	var working, visiting sync.WaitGroup
	for _, c := range w.clients {
		working.Go(c.work)
	}
	if w.mix.visits {
		visiting.Go(func() { newClient(w, 91).visitTopics(done) })
	}
	w.actors.Go(func() {
		working.Wait()
		close(done)
		visiting.Wait()
		close(home)
	})
	if w.mix.reads {
		w.actors.Go(func() { newClient(w, 90).watchTopics(done) })
	}
	w.runUntil(home, 10*time.Minute, "clients did not come to their end")
}

// settle ends all faults and waits until everything is at rest.
func (w *world) settle() {
	w.heal()
	for _, stage := range []struct {
		do    func()
		limit time.Duration
		rule  string
	}{
		{w.awaitDeadlines, 2 * time.Minute, "a transaction is not decided by its deadline"},
		{w.askOutcomes, 2 * time.Minute, "a transaction has no definite outcome after the faults have ended"},
		{w.awaitRest, 2 * time.Minute, "a transaction does not end after the faults have ended"},
		{w.readAll, 10 * time.Minute, "topics cannot be read after the faults have ended"},
	} {
		done := make(chan struct{})
		w.actors.Go(func() {
			defer close(done)
			stage.do()
		})
		w.runUntil(done, stage.limit, stage.rule)
		if w.violation() != nil {
			return
		}
	}
	w.checkAll()
}

// runUntil lets the world go on until done is closed or a rule is broken. limit is virtual time; rule is what is broken when it
// is over.
func (w *world) runUntil(done <-chan struct{}, limit time.Duration, rule string) {
	until := time.Now().Add(limit)
	w.at(until, "limit: "+rule, func() {}) // wakes the loop
	w.run(func() bool {
		select {
		case <-done:
			return true
		default:
		}
		if w.violation() == nil && !time.Now().Before(until) {
			w.fail(rule, "within "+limit.String())
		}
		return w.violation() != nil
	})
}

// heal ends all faults.
func (w *world) heal() {
	w.calm.Store(true)
	w.setFull(false)
	for _, i := range w.instances {
		i.heal()
	}
}

func (w *world) setFull(full bool) { w.store.SetNoSpace(full) }

// tearDown lets everybody go home, so that the bubble ends.
func (w *world) tearDown() {
	close(w.over)
	for _, i := range w.instances {
		i.current().kill()
	}
	done := make(chan struct{})
	go func() {
		w.actors.Wait()
		w.reaped.Wait()
		close(done)
	}()
	<-done
	w.store.Close()
}

// isOver reports whether everybody goes home.
func (w *world) isOver() bool {
	select {
	case <-w.over:
		return true
	default:
		return false
	}
}

// fail notes that a rule is broken. The first counts.
func (w *world) fail(rule, detail string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken == nil {
		w.broken = &Violation{rule, detail}
	}
}

func (w *world) violation() *Violation {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.broken
}

// happens decides whether a fault of a kind happens to what label names, and notes it.
func (w *world) happens(kind, label string, probability float64) bool {
	if probability == 0 || w.calm.Load() || w.chance.unit(kind, label) >= probability {
		return false
	}
	return w.incident(kind, kind+": "+label)
}

// incident notes something that a schedule may be without, and reports whether it may happen.
func (w *world) incident(kind, name string) bool {
	if w.keep != nil && !w.keep[name] {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.incidents = append(w.incidents, name)
	w.counts[kind]++
	return true
}

func (w *world) counted(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts[what]++
}
