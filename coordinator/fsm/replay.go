package fsm

import (
	"fmt"
	"slices"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

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
		if r.Least <= m.issued {
			return "NEW of an id that is not above all before it"
		}
		return ""
	case txn.OpSnapshot:
		return m.checkSnapshot(r)
	case txn.OpOutcome:
		if !r.Status.Final() {
			return "OUTCOME in state " + r.Status.String()
		}
		delete(m.orphans, r.Least)
		return ""
	case txn.OpForget:
		return ""
	case txn.OpUpdate:
		return m.checkUpdate(t, r, index)
	case txn.OpAddPartition, txn.OpAddSubscription:
		if t != nil && t.status != txn.Open {
			return "ADD in state " + t.status.String()
		}
	case txn.OpResolve:
		if reason := checkResolve(t, r); reason != "" {
			return reason
		}
	default:
		return fmt.Sprintf("unknown operation %d", r.Op)
	}
	m.orphan(t, r, index)
	return ""
}

func (m *Machine) checkSnapshot(r *txn.Record) string {
	_, isDecided := r.Status.Decided()
	switch {
	case r.Status.Final():
		return "SNAPSHOT in state " + r.Status.String()
	case len(r.Done) > 0 && !isDecided:
		return "SNAPSHOT in state " + r.Status.String() + " has resolved participants"
	}
	added := r.Participants // holds Done in the same order
	for _, p := range r.Done {
		i := slices.Index(added, p)
		if i < 0 {
			return "SNAPSHOT has a resolved participant that was never added: " + p.String()
		}
		added = added[i+1:]
	}
	delete(m.orphans, r.Least)
	return ""
}

func checkResolve(t *transaction, r *txn.Record) string {
	if t == nil {
		return ""
	}
	if !decided(t) {
		return "RESOLVE in state " + t.status.String()
	}
	for _, p := range r.Participants {
		if t.find(p) == nil {
			return "RESOLVE of a participant that was never added: " + p.String()
		}
	}
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
