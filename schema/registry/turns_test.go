package registry

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/pulsar-tc/pulsar-tc/keyspace"
)

// users is how many have the turn of a topic or wait for it.
func (t *turns) users(topic keyspace.Schemas) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if mine := t.byTopic[topic]; mine != nil {
		return mine.users
	}
	return 0
}

// However many schemas wait for the turn of one topic, those of others are stored, and so is what the topic has already.
func TestTurns(t *testing.T) {
	r := newRegistry(t, nil)
	r.mustPut(t, record("a"), 0)
	giveBack, err := r.turns.take(t.Context(), r.keys(topic))
	if err != nil {
		t.Fatal(err)
	}
	ctx, giveUp := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	var waiting sync.WaitGroup
	for i := range 100 {
		waiting.Go(func() {
			if _, err := r.Put(ctx, topic, record(fmt.Sprint("f", i)), ""); !errors.Is(err, gone) {
				t.Errorf("one that waits: %v", err)
			}
		})
	}
	for deadline := time.Now().Add(10 * time.Second); r.turns.users(r.keys(topic)) < 101; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("not all wait for the turn")
		}
	}
	other := topic
	other.Local = "other"
	if number, err := r.Put(t.Context(), other, record("b"), ""); err != nil || number != 0 {
		t.Errorf("another topic: version %d, %v", number, err)
	}
	r.mustPut(t, record("a"), 0)
	if number, found, err := r.Find(t.Context(), topic, record("a")); err != nil || !found || number != 0 {
		t.Errorf("find: version %d, %t, %v", number, found, err)
	}
	giveUp(gone)
	waiting.Wait()
	giveBack()
	r.mustPut(t, record("b"), 1)
	if len(r.turns.byTopic) != 0 || len(r.checks) != 0 {
		t.Errorf("%d turns and %d tokens are kept", len(r.turns.byTopic), len(r.checks))
	}
}
