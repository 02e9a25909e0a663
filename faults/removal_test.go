package faults

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/pulsar-tc/pulsar-tc/internal/failpoint"
	"github.com/pulsar-tc/pulsar-tc/internal/wiretopic"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

const (
	passing      = "public/passing" // a namespace that tests may delete
	passingTopic = "persistent://" + passing + "/t1"
)

// removable is a transaction over passingTopic, its subscription s and t2.
type removable struct {
	*fixture
	client *wiretopic.Client
	holder *wiretopic.Consumer // of s
	id     txn.ID
}

func newRemovable(f *fixture) *removable {
	f.Helper()
	f.mustRest(http.MethodPut, "namespaces/"+passing, "")
	r := &removable{fixture: f, client: f.dial()}
	producer := f.produce(r.client, passingTopic)
	f.send(producer, "before", nil)
	r.holder = f.subscribe(r.client, passingTopic, "s")
	r.id = f.begin(r.client, longTTL, "")
	f.want("ACK", r.holder.Ack(f.ctx, f.receive(r.holder, "before").ID, &r.id), success)
	f.send(producer, "m1", &r.id)
	f.send(f.produce(r.client, topic("t2")), "m2", &r.id)
	return r
}

// FC-14: a participant that is removed while its transaction is open counts as done. The commit succeeds, the other participants have
// it, and ending does not bring back what was removed.
func TestFC14ParticipantIsRemoved(t *testing.T) {
	for name, c := range map[string]struct {
		remove    func(*removable)
		neighbour string
		stays     bool // passingTopic
	}{
		"topic": {func(r *removable) {
			r.mustRest(http.MethodDelete, restPath(passingTopic)+"?force=true", "")
		}, "persistent://" + passing + "/neighbour", false},
		"subscription": {func(r *removable) {
			r.want("UNSUBSCRIBE", r.holder.Unsubscribe(r.ctx), success)
		}, "persistent://" + passing + "/neighbour", true},
		"namespace": {func(r *removable) {
			r.mustRest(http.MethodDelete, "namespaces/"+passing+"?force=true", "")
		}, topic("neighbour"), false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRemovable(newFixture(t))
			c.remove(r)
			r.end(r.client, r.id, txn.Commit, success)
			for restart := range 2 {
				if restart == 1 {
					r.Kill()
					r.Start()
				}
				r.end(r.dial(), r.id, txn.Commit, success)
				if got := r.exists(passing, passingTopic); got != c.stays {
					t.Errorf("%s exists: %v", passingTopic, got)
				}
				r.holds(topic("t2"), "m2")
				r.holds(c.neighbour)
			}
			if c.stays {
				r.holds(passingTopic, "before", "m1")
			}
		})
	}
}

// FC-14: a deletion that races the END_TXN, again and again: both succeed, and nothing is left of the topic.
func TestFC14RemovalBesideEnd(t *testing.T) {
	f := newFixture(t)
	client := f.dial()
	for round := range 30 {
		t1, t2 := topic(fmt.Sprint("t1-", round)), topic(fmt.Sprint("t2-", round))
		id := f.begin(client, longTTL, "")
		f.send(f.produce(client, t1), "m1", &id)
		f.send(f.produce(client, t2), "m2", &id)
		deleted := make(chan int, 1)
		go func() { deleted <- f.rest(http.MethodDelete, restPath(t1)+"?force=true", "") }()
		f.end(client, id, txn.Commit, success)
		if status := <-deleted; status != http.StatusNoContent {
			t.Errorf("round %d: the deletion: %d", round, status)
		}
		if f.exists("public/default", t1) {
			t.Errorf("round %d: %s was made again", round, t1)
		}
		f.holds(t2, "m2")
	}
}

// FC-14: a deletion whose result nobody heard, or that a crash cut off, can be repeated, and the transaction ends.
func TestFC14RemovalThatFailsHalfWay(t *testing.T) {
	remove := func(f *fixture) int {
		return f.rest(http.MethodDelete, restPath(passingTopic)+"?force=true", "")
	}
	finish := func(r *removable) {
		r.Helper()
		r.end(r.dial(), r.id, txn.Commit, success)
		if r.exists(passing, passingTopic) {
			r.Errorf("%s was made again", passingTopic)
		}
		r.holds(topic("t2"), "m2")
		r.send(r.produce(r.dial(), passingTopic), "new", nil)
		r.holds(passingTopic, "new")
	}
	t.Run("result unknown", func(t *testing.T) {
		f := newStopped(t, binaries.Failpoint(t))
		release := f.startUntilReleased("late:" + string(failpoint.Delete) + ":1")
		r := newRemovable(f)
		if status := remove(f); status/100 != 5 {
			t.Errorf("a deletion with an unknown result: %d", status)
		}
		if status := remove(f); status != http.StatusNoContent {
			t.Errorf("the second deletion: %d", status)
		}
		finish(r)
		release()
		f.await("the late deletion arrives", func() bool { return f.Server.Said("TOPIC_DELETE 1 applied") })
		if !f.Server.Said("TOPIC_DELETE 1 applied: false") {
			t.Error("the late deletion took the new topic")
		}
		f.holds(passingTopic, "new")
	})
	for when, second := range map[string]int{"before": http.StatusNoContent, "after": http.StatusNotFound} {
		t.Run("crash "+when, func(t *testing.T) {
			f := newStopped(t, binaries.Failpoint(t))
			f.StartToDie(failpoint.Variable + "=" + when + ":" + string(failpoint.Delete) + ":1")
			r := newRemovable(f)
			if _, err := f.tryRest(http.MethodDelete, restPath(passingTopic)+"?force=true", ""); err == nil {
				t.Error("the deletion was answered")
			}
			f.AwaitDeath(waitTime)
			f.Start()
			if status := remove(f); status != second {
				t.Errorf("the second deletion: %d, want %d", status, second)
			}
			finish(r)
		})
	}
}
