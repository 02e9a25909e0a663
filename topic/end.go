package topic

import (
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

// endItem applies END_TXN_ON_PARTITION.
type endItem struct {
	topic    *Topic
	id       txn.ID
	action   txn.Action
	answer   func(error)
	err      error
	commits  bool
	abortion *abortion // answers in place of the item
}

func (e *endItem) prepare(g *group) bool {
	t := e.topic
	if e.err != nil || e.abortion != nil {
		return true
	}
	ref := holdRef{id: e.id}
	if g.adds(ref) || !g.fits(1, 0) || !g.claim(e.id) {
		return false
	}
	transaction, err := t.buffer.End(e.id, e.action)
	switch {
	case err != nil:
		e.err = err
	case transaction == nil:
	case e.action == txn.Abort:
		e.abortion = t.abort(transaction, e.answer)
		e.abortion.step(g)
	case !g.ends(ref):
		if !g.makeGood(e.id) {
			return false
		}
		e.commits = true
		g.end(ref)
		g.write(clientv3.OpDelete(t.keys.Txn(e.id)))
		g.count(1, 0)
	}
	return true
}

func (e *endItem) undo() { e.commits = false }

func (e *endItem) done(*group) {
	if e.abortion != nil {
		return
	}
	if e.commits {
		e.topic.buffer.Ended(e.id)
		e.topic.dedup.Ended(e.id)
		e.topic.counts.committed++
	}
	e.answer(e.err)
}

func (e *endItem) fail(err error) {
	if e.abortion == nil {
		e.answer(err)
	}
}

// endAckItem applies END_TXN_ON_SUBSCRIPTION.
type endAckItem struct {
	topic        *Topic
	subscription string
	id           txn.ID
	action       txn.Action
	answer       func(error)
	err          error
	on           *subscription // set with commit and aborts
	commit       *ackCommit    // answers in place of the item
	aborts       bool
}

// ackCommit is a commit that is in the cursor in memory. It is done when the cursor is stored as it is then, and what the
// transaction held is deleted by the same write.
type ackCommit struct {
	id      txn.ID
	waiters []func(error)
}

func (c *ackCommit) answer(err error) {
	waiters := c.waiters
	c.waiters = nil
	for _, answer := range waiters {
		answer(err)
	}
}

func (e *endAckItem) prepare(g *group) bool {
	if e.commit != nil {
		e.on.ackHeld(e.on.pending.Held(e.id)) // a seek before it may be prepared again, too
		e.on.resume(g)
		return true
	}
	s := e.topic.subscriptions[e.subscription]
	ref := holdRef{s, e.id}
	if g.adds(ref) || !g.fits(1+cursorOps, 0) || !g.claim(e.id) {
		return false
	}
	if s == nil || s.gone || !s.pending.Holds(e.id) {
		return true
	}
	e.on = s
	running := s.committing(e.id)
	switch {
	case running != nil && e.action == txn.Commit:
		running.waiters = append(running.waiters, e.answer)
		e.commit = running
	case running != nil:
		e.err = &txn.StatusError{ID: e.id, Want: txn.Aborting, Got: txn.Committing}
	case e.action == txn.Commit && g.ends(ref):
		e.err = &txn.StatusError{ID: e.id, Want: txn.Committing, Got: txn.Aborting}
	case e.action == txn.Commit:
		e.commit = s.commit(e.id, e.answer)
		s.resume(g)
	default:
		e.aborts = true
		if !g.ends(ref) && s.durable {
			g.write(clientv3.OpDelete(s.keys.PendingPrefix(e.id), clientv3.WithPrefix()))
			g.count(1, 0)
		}
		g.end(ref)
	}
	return true
}

func (e *endAckItem) undo() { e.aborts = false }

func (e *endAckItem) done(*group) {
	if e.commit != nil {
		if !e.on.durable {
			e.on.saved()
		}
		return
	}
	if e.aborts {
		e.on.giveBack(e.on.pending.Release(e.id))
	}
	e.answer(e.err)
}

func (e *endAckItem) fail(err error) {
	if e.commit != nil {
		e.commit.answer(err)
		return
	}
	e.answer(err)
}
