package crashpoint

import (
	"fmt"
	"maps"
	"slices"
	"testing/synctest"
	"time"

	"github.com/pulsar-tc/pulsar-tc/internal/history"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// Result is what came of a run.
type Result struct {
	// Effects are how many there were before the first kill, between that and the second, and so on. The last kill of all,
	// that of every process when the clients are done, is not among Run.Kills.
	Effects []int
	Choices int      // how many of the effects were one of several that waited
	Faults  []string // broken promises, and what else went wrong
	Trace   []string // the effects in their order
}

// Do performs a run. It must be called in a testing/synctest bubble, which it leaves empty.
func Do(run Run) Result {
	w := newWorld(run)
	var faults []string
	if err := w.perform(); err != nil {
		faults = append(faults, err.Error())
	}
	w.close()
	faults = append(faults, w.failures...)
	for _, anomaly := range w.history.Check() {
		faults = append(faults, anomaly.String())
	}
	faults = append(faults, w.check()...)
	return Result{w.counts, w.choices, faults, w.trace}
}

func (w *world) perform() error {
	prepared := make(chan error, 1)
	w.start()
	go func() { prepared <- w.prepare() }()
	if err := w.pump("the preparation", func() bool { return len(prepared) > 0 }); err != nil {
		return err
	}
	if err := <-prepared; err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	w.counted, w.choices, w.kills, w.trace = 0, 0, w.run.Kills, nil
	for i, round := range w.run.rounds() {
		var asked []*asked
		for n, op := range round {
			asked = append(asked, w.begin(op, n))
			synctest.Wait()
		}
		if err := w.pump(fmt.Sprintf("round %d", i), func() bool { return w.answered(asked) }); err != nil {
			return err
		}
	}
	w.counts = append(w.counts, w.counted)
	w.kills = nil
	for _, l := range w.late {
		l.after = 0
		w.applyLate(l)
	}
	return w.verify()
}

func (w *world) answered(all []*asked) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !slices.ContainsFunc(all, func(a *asked) bool { return !a.answered })
}

// prepare stores a message for each transaction on the topic with the subscription, and returns when all have been delivered.
func (w *world) prepare() error {
	for {
		if _, err := w.live(); err == nil {
			break
		}
		time.Sleep(repeatPause)
	}
	w.clients.attach()
	p := w.clients.producer(subscription)
	for i := range w.run.Plans {
		answers := make(chan error, 1)
		p.send(txn.ID{}, key(i, subscription), func(err error) { answers <- err })
		if err := <-answers; err != nil {
			return err
		}
		w.history.Sent(history.Message{Topic: topics[subscription], Key: key(i, subscription), Answer: history.Done})
	}
	for known := 0; known < len(w.run.Plans); known = len(w.clients.known()) {
		time.Sleep(repeatPause)
	}
	return nil
}

// verify waits until everything has ended, then starts every process anew and asks for everything.
func (w *world) verify() error {
	w.gate.leaveOpen()
	if err := w.awaitEnds(); err != nil {
		return err
	}
	for _, name := range []string{w.coordinatorProcess().name, w.topicsProcess().name} {
		if w.alive(name) {
			w.kill(name)
		}
	}
	w.clients.attach()
	for i := range w.run.Plans {
		for _, action := range []txn.Action{txn.Commit, txn.Abort} {
			w.repeat(repeatPause, func() bool { return w.end(i, action) != history.Unknown })
		}
	}
	if err := w.awaitEnds(); err != nil {
		return err
	}
	time.Sleep(time.Second) // deliveries
	w.clients.record()
	return nil
}

func (w *world) alive(name string) bool {
	return w.coordinatorProcess().name == name || w.topicsProcess().name == name
}

// awaitEnds waits until no transaction is live, and records those that still are when patience is at its end.
func (w *world) awaitEnds() error {
	for began := time.Now(); ; time.Sleep(time.Second) {
		live, err := w.live()
		if err == nil && len(live) == 0 || time.Since(began) > patience {
			w.history.Live(live)
			return err
		}
	}
}

func (w *world) close() {
	w.clients.close()
	w.gate.leaveOpen()
	for _, p := range []*process{w.coordinatorProcess(), w.topicsProcess()} {
		if w.gate.verdict(p.name) != nil {
			continue // the other one is the same
		}
		w.gate.kill(p.name)
		p.die()
		if err := p.stop(); err != nil {
			w.fail(err)
		}
	}
	w.stopping.Wait()
	w.model.Close()
}

// known are the messages of the subscription whose position is known.
func (c *clients) known() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.at))
}

// record tells the history what readers and the subscription have got in the end.
func (c *clients) record() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for place, keys := range c.read {
		c.history.Read(topics[place], keys)
	}
	c.history.Left(topics[subscription], subscriptionName, slices.Sorted(maps.Keys(c.left)))
}
