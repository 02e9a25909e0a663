package fsm

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"
)

// firstIDBits: a term's ids start no lower than the unix second shifted by so many bits. So ids grow across restored backups
// and new installations in front of brokers that remember old ones, and stay below 2^53.
const firstIDBits = 20

// Recover ends the load: next is the stored bound of ids (0: none yet), now milliseconds since the epoch. Its Ready drives
// transactions whose decision is durable; what are too many for one are due for Tick at once. clockBehind is how far now is behind the ids already used, in ms; 0 if not.
func (m *Machine) Recover(now int64, next uint64) (ready *Ready, clockBehind int64, err error) {
	if len(m.orphans) > 0 {
		least, index := lowest(m.orphans)
		return nil, 0, fmt.Errorf("log entry %d: record of transaction %s whose NEW is gone, and nothing that stands for it follows",
			index, m.id(least))
	}
	m.orphans = nil
	m.loading = false
	m.outcomes.Loaded(now)
	m.startIDs(now, next)
	for _, t := range m.inOrder() {
		m.link(t)
		if decided(t) {
			m.undriven = append(m.undriven, t)
			continue
		}
		t.deadlineAt = len(m.due)
		m.due = append(m.due, t)
	}
	heap.Init(&m.due)
	m.driveRecovered(now)
	return m.Take(), ClockBehind(now, next), nil
}

// driveRecovered drives the next transactions that the load found decided.
func (m *Machine) driveRecovered(now int64) {
	for n := 0; n < recoveredPerTick && len(m.undriven) > 0; {
		t := m.undriven[0]
		m.undriven[0] = nil
		m.undriven = m.undriven[1:]
		n += max(1, t.waiting)
		switch {
		case m.live[t.least] != t || t.parked: // an operator declared the last participants done
		case t.waiting == 0:
			m.finish(now, t)
		default:
			m.drive(t)
		}
	}
}

// FirstID is the lowest id of a term that begins at now, milliseconds since the epoch, before any other bound.
func FirstID(now int64) uint64 { return uint64(max(now, 0)/1000) << firstIDBits }

// ClockBehind is how far now is behind the ids below next, in ms; 0 if it is not. now is milliseconds since the epoch.
func ClockBehind(now int64, next uint64) int64 {
	return max(0, int64(next>>firstIDBits)*1000-now)
}

// startIDs sets the first id of the term (TC-21, promise 5). No id is 0, so that 0 can stand for none.
func (m *Machine) startIDs(now int64, next uint64) {
	first := max(FirstID(now), next, 1)
	if len(m.live) > 0 || m.issued > 0 {
		first = max(first, m.issued+1)
	}
	m.issued, m.reserved = first-1, next
	m.place = max(m.place, m.issued)
}

func (m *Machine) inOrder() []*transaction {
	all := make([]*transaction, 0, len(m.live))
	for _, t := range m.live {
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b *transaction) int { return cmp.Compare(a.least, b.least) })
	return all
}

func lowest(m map[uint64]uint64) (key, value uint64) {
	first := true
	for k, v := range m {
		if first || k < key {
			key, value, first = k, v, false
		}
	}
	return key, value
}

func decided(t *transaction) bool {
	_, yes := t.status.Decided()
	return yes
}
