package fsm

import (
	"fmt"

	"github.com/pulsar-tc/pulsar-tc/preserver"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// apply folds one log record into the durable part of the state. index is the entry that holds it, or a lower bound. It
// returns the transaction that the record is about, also when it has just ended, and nil if a load does not know it.
func (m *Machine) apply(r *txn.Record, index uint64) *transaction {
	switch r.Op {
	case txn.OpNew:
		return m.applyNew(r, index)
	case txn.OpSnapshot:
		return m.applySnapshot(r, index)
	case txn.OpOutcome:
		m.loadOutcome(r)
		return nil
	}
	t := m.live[r.Least]
	switch r.Op {
	case txn.OpAddPartition, txn.OpAddSubscription:
		if t != nil {
			m.liveCost -= t.cost()
			for _, p := range r.Participants {
				t.register(p)
			}
			m.liveCost += t.cost()
		}
	case txn.OpResolve:
		if t != nil {
			for _, p := range r.Participants {
				t.applied(p)
				t.find(p).resolved = true
			}
		}
	case txn.OpUpdate:
		m.applyUpdate(t, r)
	}
	return t
}

func (m *Machine) applyNew(r *txn.Record, index uint64) *transaction {
	t := &transaction{
		least: r.Least, since: index, started: r.StartTime, ttl: r.TimeoutMillis, deadlineAt: -1,
		bucket: m.outcomes.Hold(preserver.Key{Owner: r.Owner, Name: r.ClientName}),
	}
	m.live[t.least] = t
	m.issued = max(m.issued, t.least)
	m.liveCost += t.cost()
	return t
}

// applySnapshot replaces everything known of the transaction. While serving the state is the snapshot's already.
func (m *Machine) applySnapshot(r *txn.Record, index uint64) *transaction {
	if !m.loading {
		t := m.live[r.Least]
		t.since = index
		return t
	}
	if old := m.live[r.Least]; old != nil {
		m.forget(old)
	}
	t := m.applyNew(r, index)
	m.liveCost -= t.cost()
	t.status, t.timedOut = r.Status, r.TimedOut
	for _, p := range r.Participants {
		t.register(p)
	}
	for _, p := range r.Done {
		t.applied(p)
		t.find(p).resolved = true
	}
	m.liveCost += t.cost()
	return t
}

func (m *Machine) applyUpdate(t *transaction, r *txn.Record) {
	if t != nil {
		t.status, t.timedOut = r.Status, r.TimedOut
		m.disarm(t)
	}
	if !r.Status.Final() {
		return
	}
	if m.loading {
		m.loadOutcome(r)
	} else {
		m.keepOutcome(t, r)
	}
	if t != nil {
		m.forget(t)
	}
}

// forget takes a transaction out of the live ones.
func (m *Machine) forget(t *transaction) {
	delete(m.live, t.least)
	m.liveCost -= t.cost()
	m.outcomes.Release(t.bucket)
	if !m.loading {
		m.unlink(t)
	}
}

func outcomeOf(r *txn.Record) preserver.Outcome {
	return preserver.Outcome{
		Least: r.Least, Place: r.Place, Opened: r.StartTime, Ended: r.Time, TTL: r.TimeoutMillis,
		Status: r.Status, TimedOut: r.TimedOut,
	}
}

func (m *Machine) keepOutcome(t *transaction, r *txn.Record) {
	m.place, m.lastEnded = r.Place, r.Time
	m.outcomes.Put(t.bucket, outcomeOf(r), r.Time)
}

func (m *Machine) loadOutcome(r *txn.Record) {
	if !m.loading {
		return
	}
	m.place, m.lastEnded = max(m.place, r.Place), max(m.lastEnded, r.Time)
	m.outcomes.Load(preserver.Key{Owner: r.Owner, Name: r.ClientName}, outcomeOf(r))
}

// Replay folds one stored entry into the state, in index order, before Recover. An error means the log is not one that this
// machine can have written; the load must stop.
func (m *Machine) Replay(entry txn.LogEntry) error {
	for i := range entry.Records {
		r := &entry.Records[i]
		if reason := m.check(r, entry.Index); reason != "" {
			return fmt.Errorf("log entry %d, record %d of transaction %s: %s", entry.Index, i, m.id(r.Least), reason)
		}
		m.apply(r, entry.Index)
		m.issued = max(m.issued, r.Least)
	}
	m.Appended(txn.Appended{First: entry.Index, Last: entry.Index, Bytes: entry.Bytes})
	return nil
}

// check says why a record cannot follow what was read before it; empty if it can. A record whose NEW is gone is legal only
// if a SNAPSHOT or the terminal record of its transaction follows.
func (m *Machine) check(r *txn.Record, index uint64) string {
	t := m.live[r.Least]
	switch r.Op {
	case txn.OpNew:
		if _, orphan := m.orphans[r.Least]; orphan || t != nil {
			return "NEW of a transaction that exists"
		}
		return ""
	case txn.OpSnapshot, txn.OpOutcome:
		delete(m.orphans, r.Least)
		return ""
	case txn.OpUpdate:
		return m.checkUpdate(t, r, index)
	case txn.OpAddPartition, txn.OpAddSubscription:
		if t != nil && t.status != txn.Open {
			return "ADD in state " + t.status.String()
		}
	case txn.OpResolve:
		for _, p := range r.Participants {
			if t != nil && t.find(p) == nil {
				return "RESOLVE of a participant that was never added: " + p.String()
			}
		}
	default:
		return fmt.Sprintf("unknown operation %d", r.Op)
	}
	m.orphan(t, r, index)
	return ""
}

func (m *Machine) checkUpdate(t *transaction, r *txn.Record, index uint64) string {
	if t != nil && t.status != r.Expected {
		return fmt.Sprintf("UPDATE expects %s, state is %s", r.Expected, t.status)
	}
	from, decided := r.Expected.Decided()
	to, decides := r.Status.Decided()
	if !decides || r.Expected.Final() || decided && (from != to || !r.Status.Final()) {
		return fmt.Sprintf("UPDATE from %s to %s", r.Expected, r.Status)
	}
	if r.Status.Final() {
		delete(m.orphans, r.Least)
		return ""
	}
	m.orphan(t, r, index)
	return ""
}

func (m *Machine) orphan(t *transaction, r *txn.Record, index uint64) {
	if t == nil {
		if _, known := m.orphans[r.Least]; !known {
			m.orphans[r.Least] = index
		}
	}
}
