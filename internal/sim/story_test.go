package sim

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pulsar-tc/pulsar-tc/internal/history"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// play tells a story in a world without any other fault, and returns the rule that broke.
func play(t *testing.T, mutant string, instances int, story func(w *world), changes ...func(*mix)) *Violation {
	t.Helper()
	var broken *Violation
	synctest.Test(t, func(*testing.T) {
		w := newWorld(Schedule{Seed: 1, Mutant: mutant})
		w.mix = mix{instances: instances, coordinators: 1, topics: 3, clients: 2, maxOps: 128, ttl: time.Hour, idle: time.Minute}
		for _, change := range changes {
			change(&w.mix)
		}
		w.populate(1)
		w.setUp()
		told := make(chan struct{})
		w.actors.Go(func() {
			defer close(told)
			story(w)
		})
		w.runUntil(told, 10*time.Minute, "the story does not end")
		if w.violation() == nil {
			w.settle()
		}
		w.tearDown()
		broken = w.violation()
	})
	return broken
}

// leading waits until a process leads coordinator 0, another one than not.
func (c *client) leading(not *process) *process {
	for {
		if p := c.world.leaderOf(0, "leading"); p != nil && p != not && p.group.Statuses()[0].Serving {
			return p
		}
		if !c.sleep(50 * time.Millisecond) {
			return nil
		}
	}
}

// TestPausedLeader is the story of KAFKA-21349: a leader stands still after it has loaded, with a decision of its own under way;
// its successor loads without that decision and decides otherwise; the old leader wakes. No participant hears of both.
func TestPausedLeader(t *testing.T) {
	story := func(w *world) {
		first, second := w.clients[0], w.clients[1]
		old := first.leading(nil)
		first.openTxn(step{slot: 0})
		id := first.transaction(0)
		for _, topic := range w.topics[:2] {
			first.send(topic, &id)
		}
		done := make(chan struct{})
		w.actors.Go(func() {
			defer close(done)
			op := history.End{Span: first.span(), ID: id, Action: txn.Commit}
			_, err := first.link(old).call("end while it falls asleep", false, func(done func(any, error)) {
				old.pause(2 * lease) // before the decision leaves the process
				old.group.EndTxn(old.ctx, id, callerOf(anybody), txn.Commit, false, func(err error) { done(nil, err) })
			})
			op.Span, op.Answer = first.done(op.Span), answerOf(err)
			w.history.Ended(op)
			if op.Answer == history.Done {
				w.fail("the old leader commits", "")
			}
		})
		second.sleep(time.Second)
		second.leading(old)
		for !second.end(id, txn.Abort, false) && second.sleep(50*time.Millisecond) {
		}
		<-done
		second.sleep(10 * time.Second) // the old leader is awake, and what it sent has arrived
	}
	if broken := play(t, "", 2, story); broken != nil {
		t.Error(broken)
	}
	if broken := play(t, "blind append", 2, story); broken == nil {
		t.Error("with blind writes the old leader does no harm: this story is about nothing")
	}
}

// TestCutOffLeader is the story of a leader that the rest of the cluster does not reach, with the member of the store at its side: it
// has not heard that its lease is gone, others have decided, and somebody asks it.
func TestCutOffLeader(t *testing.T) {
	story := func(w *world) {
		first, second := w.clients[0], w.clients[1]
		old := first.leading(nil)
		first.openTxn(step{slot: 0})
		id := first.transaction(0)
		w.calm.Store(false)
		old.cutOff(8 * time.Second)
		second.leading(old)
		for !second.end(id, txn.Commit, false) && second.sleep(10*time.Millisecond) {
		}
		first.lookAt(old, "look at the old leader", id)
	}
	unaware := func(m *mix) { m.store.unnoticed = 1 }
	for _, mutant := range []string{"empty proof", "unfenced not-found"} {
		if broken := play(t, mutant, 2, story, unaware); broken == nil {
			t.Errorf("with the bug %q nothing is broken: this story is about nothing", mutant)
		} else {
			t.Log(broken)
		}
	}
	if broken := play(t, "", 2, story, unaware); broken != nil {
		t.Error(broken)
	}
}

// TestClockSetBack is the story of a machine that starts again with a slow clock, when nothing in the log tells any more of the ids
// that were given: ids grow all the same.
func TestClockSetBack(t *testing.T) {
	story := func(w *world) {
		c := w.clients[0]
		before := c.leading(nil)
		for slot := range 20 {
			c.openTxn(step{slot: slot})
			c.end(c.transaction(slot), txn.Commit, false)
		}
		c.sleep(time.Second)
		before.instance.setClock(-30 * time.Second)
		before.kill()
		c.leading(before)
		c.openTxn(step{slot: 20})
		c.end(c.transaction(20), txn.Commit, false)
	}
	forgetful := func(m *mix) { m.slack = 400 } // nothing is kept, and the log is cleaned at once
	if broken := play(t, "", 1, story, forgetful); broken != nil {
		t.Error(broken)
	}
	if broken := play(t, "ids in memory", 1, story, forgetful); broken == nil {
		t.Error("with ids counted in memory nothing is broken: this story is about nothing")
	} else {
		t.Log(broken.Rule)
	}
}

func TestMinimized(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector runs goroutines in random order")
	}
	schedule := Schedule{Mutant: "no fence compare"}
	var result Result
	for result.Broken == nil {
		schedule.Seed++
		result = Run(t, schedule)
	}
	smaller, again := Minimized(t, schedule, result, minimizing)
	if again.Broken == nil || again.Broken.Rule != result.Broken.Rule || len(smaller.Keep) > len(result.Incidents)/2 {
		t.Errorf("%d incidents of %d, broken: %v, was %v", len(smaller.Keep), len(result.Incidents), again.Broken, result.Broken)
	}
	if repeated := Run(t, smaller); repeated.Hash != again.Hash || !slices.Equal(repeated.Incidents, again.Incidents) {
		t.Error("the smaller schedule runs another way again")
	}
	t.Log(explain(t, schedule, result))
}
