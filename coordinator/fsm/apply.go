package fsm

import (
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
	case txn.OpForget:
		m.loadForgotten(r)
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
	m.place, m.lastEnded = max(m.place, r.Place), r.Time
	o := outcomeOf(r)
	if !m.outcomes.Put(t.bucket, o, r.Time) {
		m.fleeting[r.Least] = ended{o, t.bucket.Key()}
	}
}

func (m *Machine) loadOutcome(r *txn.Record) {
	if !m.loading {
		return
	}
	m.place, m.lastEnded = max(m.place, r.Place), max(m.lastEnded, r.Time)
	if r.Place > 0 {
		m.outcomes.Load(preserver.Key{Owner: r.Owner, Name: r.ClientName}, outcomeOf(r))
	}
}

// nextPlace returns a place behind all that were ever given. Places are reserved with the ids, so that they never fall back,
// not even when everything that had the last ones is gone from the log.
func (m *Machine) nextPlace() uint64 {
	m.place++
	m.reserve(m.place)
	return m.place
}

// forgetOutcomes makes durable that outcomes are not known any more, before an answer says so. For a client name that is a
// change with a place of its own.
func (m *Machine) forgetOutcomes(f preserver.Forgotten) {
	r := txn.Record{Op: txn.OpForget, Owner: f.Key.Owner, ClientName: f.Key.Name, Place: f.Place}
	if f.Key.Name != "" {
		r.Change = m.nextPlace()
		r.Time = m.lastEnded
		if m.outcomes.Changed(f.Key, r.Change) == 0 {
			r.Place = r.Change
		}
	}
	m.append(txn.Change{Record: r})
}

func (m *Machine) loadForgotten(r *txn.Record) {
	if !m.loading {
		return
	}
	m.place = max(m.place, r.Place, r.Change)
	m.outcomes.LoadForgotten(preserver.Forgotten{
		Key: preserver.Key{Owner: r.Owner, Name: r.ClientName}, Place: r.Place, Change: r.Change,
	})
}
