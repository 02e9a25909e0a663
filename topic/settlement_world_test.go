package topic

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

// commitment is a settlement that a coordinator is about to write.
type commitment struct {
	world      *world
	id         txn.ID
	settlement *txn.Settlement
	settled    func(error)
}

func (w *world) participant(name, subscription string) txn.Participant {
	w.t.Helper()
	p := txn.Participant{Topic: parse(w.t, name).String()}
	if subscription != "" {
		p.Subscription, p.Kind = subscription, txn.AckedSubscription
	}
	return p
}

// prepare prepares the commit of id. It returns nil if it cannot be settled.
func (w *world) prepare(id txn.ID, participants ...txn.Participant) *commitment {
	settlement, settled := w.topics.Settle(id, participants)
	if settlement == nil {
		return nil
	}
	return &commitment{w, id, settlement, settled}
}

// mustPrepare is prepare of what can be settled.
func (w *world) mustPrepare(id txn.ID, participants ...txn.Participant) *commitment {
	w.t.Helper()
	c := w.prepare(id, participants...)
	if c == nil {
		w.t.Fatalf("%v cannot be settled", id)
	}
	return c
}

// outcome is the key of the outcome of a settled transaction.
func (w *world) outcome(id txn.ID) string { return w.keys.Root() + "outcome/" + id.String() }

// write makes the commit durable, with the decision and the outcome, and tells nobody.
func (c *commitment) write() error { return c.writeTo(c.world.kv) }

// writeTo is write through a way to the store that is not the topics'.
func (c *commitment) writeTo(kv clientv3.KV) error {
	w := c.world
	w.coord.mu.Lock()
	defer w.coord.mu.Unlock()
	var conditions []clientv3.Cmp
	for _, fence := range c.settlement.Fences {
		conditions = append(conditions, clientv3.Compare(clientv3.ModRevision(fence.Key), "=", fence.Revision))
	}
	ops := []clientv3.Op{clientv3.OpPut(w.outcome(c.id), ""), clientv3.OpDelete(w.keys.OpenPrefix(c.id), clientv3.WithPrefix())}
	for _, key := range c.settlement.Puts {
		ops = append(ops, clientv3.OpPut(key, ""))
	}
	for _, key := range c.settlement.Deletes {
		ops = append(ops, clientv3.OpDelete(key))
	}
	response, err := kv.Txn(context.Background()).If(conditions...).Then(ops...).Commit()
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", txn.ErrUnknownResult, err)
	case !response.Succeeded:
		return txn.ErrFenced
	}
	delete(w.coord.open, c.id)
	return nil
}

// commit writes the commit and tells the topics what became of that.
func (c *commitment) commit() error {
	err := c.write()
	c.settled(err)
	return err
}

// settle commits id at once, and demands that it is possible.
func (w *world) settle(id txn.ID, participants ...txn.Participant) {
	w.t.Helper()
	if err := w.mustPrepare(id, participants...).commit(); err != nil {
		w.t.Fatal(err)
	}
}

// trySettle commits id at once, if that is possible and does not fail. What became of a write whose answer is lost is looked up.
func (w *world) trySettle(id txn.ID, participants ...txn.Participant) bool {
	w.t.Helper()
	c := w.prepare(id, participants...)
	if c == nil {
		return false
	}
	if err := c.commit(); !errors.Is(err, txn.ErrUnknownResult) {
		return err == nil
	}
	if w.keysUnder(w.outcome(id)) == 0 {
		return false
	}
	w.coord.decide(w.t, id)
	return true
}

// pendingKeys counts what is stored of the pending acknowledgements of the first subscription of a topic.
func (w *world) pendingKeys(name string) int64 {
	w.t.Helper()
	return w.keysUnder(w.space(name).Subscription(0).Prefix() + "pending/")
}

// unsettled demands that id cannot be settled.
func (w *world) unsettled(what string, id txn.ID, participants ...txn.Participant) {
	w.t.Helper()
	if c := w.prepare(id, participants...); c != nil {
		w.t.Errorf("%s: the commit is settled", what)
		c.settled(txn.ErrFenced)
	}
}

// hold makes all writes wait until what it returns is called.
func (w *world) hold() (release func()) {
	gate := make(chan struct{})
	release = sync.OnceFunc(func() {
		w.kv.set(nil)
		close(gate)
	})
	w.t.Cleanup(release)
	w.kv.set(func(commit func() (*clientv3.TxnResponse, error)) (*clientv3.TxnResponse, error) {
		<-gate
		return commit()
	})
	return release
}

// stepwise makes each write tell that it is reached and wait for a step, until the test ends.
func (w *world) stepwise() (reached <-chan struct{}, step chan<- struct{}) {
	told, steps, over := make(chan struct{}, 1000), make(chan struct{}), make(chan struct{})
	w.t.Cleanup(func() { close(over) })
	w.kv.set(func(commit func() (*clientv3.TxnResponse, error)) (*clientv3.TxnResponse, error) {
		told <- struct{}{}
		select {
		case <-steps:
		case <-over:
		}
		return commit()
	})
	return told, steps
}

// stillWaits demands that nothing comes as long as the topic has nothing to do.
func stillWaits[T any](t *testing.T, w *world, name, what string, from <-chan T) {
	t.Helper()
	w.posted(name)
	select {
	case got := <-from:
		t.Fatalf("%s: %v, while a commit is being settled", what, got)
	default:
	}
}

// posted returns when a topic has done what was posted before, and what that led to.
func (w *world) posted(name string) {
	w.t.Helper()
	for range 3 {
		done := make(chan struct{})
		w.topics.loaded(parse(w.t, name).String()).ask(func(bool) { close(done) })
		happens(w.t, done)
	}
}
