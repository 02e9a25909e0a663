package remote

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pulsar-tc/pulsar-tc/cluster"
	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is instance a with what it knows of itself and of instance b.
type world struct {
	mu     sync.Mutex // guards the rest
	loaded bool
	owner  string
	broken error // of a read
	reads  int
	dead   map[string]bool
	placed string
	asked  []string // instances that were told the end
	err    error    // of their answer
}

func (w *world) lock() func() { w.mu.Lock(); return w.mu.Unlock }

func (w *world) Settle(txn.ID, []txn.Participant) (*txn.Settlement, func(error)) { return nil, nil }

func (w *world) End(_ context.Context, _ txn.ID, _ txn.Participant, _ txn.Action, _ uint64, done func(error)) {
	w.ask("a")
	done(nil)
}

func (w *world) EndOnParticipant(_ context.Context, to cluster.Instance, _ txn.ID, _ txn.Participant, _ txn.Action, _ uint64, done func(error)) {
	done(w.ask(to.ID))
}

func (w *world) ask(id string) error {
	defer w.lock()()
	w.asked = append(w.asked, id)
	return w.err
}

func (w *world) Loaded(topicname.Name) bool {
	defer w.lock()()
	return w.loaded
}

func (w *world) Owner(context.Context, topicname.Name) (string, error) {
	defer w.lock()()
	w.reads++
	return w.owner, w.broken
}

func (w *world) Self() cluster.Instance { return cluster.Instance{ID: "a"} }

func (w *world) Find(id string) (cluster.Instance, bool) {
	defer w.lock()()
	return cluster.Instance{ID: id}, id != "" && !w.dead[id]
}

func (w *world) PlaceTopic(string) cluster.Instance {
	defer w.lock()()
	return cluster.Instance{ID: w.placed}
}

// endOn ends a transaction on a topic and returns the error.
func endOn(t *testing.T, p *Participants, topic string) error {
	t.Helper()
	ended := make(chan error, 1)
	p.End(t.Context(), txn.ID{}, txn.Participant{Topic: topic}, txn.Commit, 0, func(err error) { ended <- err })
	select {
	case err := <-ended:
		return err
	case <-time.After(20 * time.Second):
		t.Fatal("no answer")
		return nil
	}
}

func TestWhoIsAsked(t *testing.T) {
	const topic = "persistent://public/default/t"
	broken := errors.New("the store is away")
	for _, test := range []struct {
		name  string
		world *world
		topic string
		asked string // empty: nobody
	}{
		{"loaded here", &world{loaded: true, owner: "b"}, topic, "a"},
		{"no topic's name", &world{owner: "b"}, "://", "a"},
		{"owned here", &world{owner: "a", placed: "b"}, topic, "a"},
		{"owned elsewhere", &world{owner: "b", placed: "a"}, topic, "b"},
		{"owned by nobody, placed here", &world{placed: "a"}, topic, "a"},
		{"owned by nobody, placed elsewhere", &world{placed: "b"}, topic, "b"},
		{"owned by a dead instance", &world{owner: "b", dead: map[string]bool{"b": true}, placed: "c"}, topic, "c"},
		{"placed nowhere", &world{}, topic, ""},
		{"unknown owner", &world{broken: broken, placed: "a"}, topic, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := test.world
			err := endOn(t, New(w, w, w, w), test.topic)
			if test.asked == "" {
				if !errors.Is(err, txn.ErrNotReady) || len(w.asked) > 0 {
					t.Errorf("%v, asked %v", err, w.asked)
				}
				return
			}
			if err != nil || len(w.asked) != 1 || w.asked[0] != test.asked {
				t.Errorf("%v, asked %v", err, w.asked)
			}
		})
	}
}

// An owner that answered is asked again without a read; one that refused, or that is gone, is not.
func TestOwnersAreRemembered(t *testing.T) {
	w := &world{owner: "b", dead: map[string]bool{}}
	p := New(w, w, w, w)
	const topic = "persistent://public/default/t"
	check := func(reads int, last string) {
		t.Helper()
		defer w.lock()()
		if w.reads != reads || w.asked[len(w.asked)-1] != last {
			t.Errorf("%d reads, asked %v", w.reads, w.asked)
		}
	}
	for range 3 {
		if err := endOn(t, p, topic); err != nil {
			t.Fatal(err)
		}
	}
	check(1, "b")
	w.owner, w.err = "c", txn.ErrNotReady
	if err := endOn(t, p, topic); !errors.Is(err, txn.ErrNotReady) {
		t.Error(err)
	}
	check(1, "b")
	w.err = nil
	if err := endOn(t, p, topic); err != nil {
		t.Error(err)
	}
	check(2, "c")
	w.owner, w.dead["c"] = "d", true
	if err := endOn(t, p, topic); err != nil {
		t.Error(err)
	}
	check(3, "d")
	for i := range maxKnown + 1 {
		p.remember(fmt.Sprint("topic ", i), cluster.Instance{ID: "b"}, true)
	}
	if len(p.known) > maxKnown {
		t.Errorf("%d owners are remembered", len(p.known))
	}
}
