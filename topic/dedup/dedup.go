// Package dedup knows which sequence ids of which producers a topic has stored. It is pure.
//
// What an open transaction stored is kept apart from what is stored for good: a commit makes it part of that, an abort
// forgets it, so a sequence id that only an aborted transaction used is free again. What is stored for good is kept only if
// the topic deduplicates.
//
// Source of the rules: pip/pip-6.md; MessageDeduplication.isDuplicate, which tests the lowest sequence id of a batch against
// the highest that is stored.
package dedup

import (
	"maps"
	"slices"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

// Sequences are the highest stored sequence ids by producer name.
type Sequences map[string]uint64

// State is what one topic has stored. Use New.
type State struct {
	keep bool
	good Sequences
	open map[txn.ID]Sequences
}

// New returns an empty state. keep tells whether sequence ids outside open transactions are remembered.
func New(keep bool) *State {
	return &State{keep: keep, good: make(Sequences), open: make(map[txn.ID]Sequences)}
}

// Restore sets what open transaction id has stored. It takes over sequences.
func (s *State) Restore(id txn.ID, sequences Sequences) { s.open[id] = sequences }

// Stored notes that an entry outside transactions is durable.
func (s *State) Stored(producer string, highest uint64) {
	if s.keep {
		s.good.Raise(producer, highest)
	}
}

// StoredIn notes that an entry of open transaction id is durable.
func (s *State) StoredIn(id txn.ID, producer string, highest uint64) {
	sequences := s.open[id]
	if sequences == nil {
		sequences = make(Sequences)
		s.open[id] = sequences
	}
	sequences.Raise(producer, highest)
}

// In returns what open transaction id has stored.
func (s *State) In(id txn.ID) Sequences { return s.open[id] }

// Open returns the highest sequence ids of producer that open transactions have stored.
func (s *State) Open(producer string) map[txn.ID]uint64 {
	var out map[txn.ID]uint64
	for id, sequences := range s.open {
		if highest, found := sequences[producer]; found {
			if out == nil {
				out = make(map[txn.ID]uint64)
			}
			out[id] = highest
		}
	}
	return out
}

// Duplicate reports whether a send outside transactions whose lowest sequence id is lowest is stored already.
func (s *State) Duplicate(producer string, lowest uint64) bool {
	highest, found := s.good[producer]
	return found && lowest <= highest
}

// Last returns the highest sequence id of producer that is stored, in open transactions or for good.
func (s *State) Last(producer string) (uint64, bool) {
	last, found := s.good[producer]
	for _, sequences := range s.open {
		if highest, there := sequences[producer]; there && (!found || highest > last) {
			last, found = highest, true
		}
	}
	return last, found
}

// Commit makes what id stored part of what is stored for good.
func (s *State) Commit(id txn.ID) {
	if s.keep {
		for producer, highest := range s.open[id] {
			s.good.Raise(producer, highest)
		}
	}
	delete(s.open, id)
}

// Abort forgets what id stored.
func (s *State) Abort(id txn.ID) { delete(s.open, id) }

// Raise notes highest for producer, unless a higher one is there.
func (q Sequences) Raise(producer string, highest uint64) {
	if old, found := q[producer]; !found || old < highest {
		q[producer] = highest
	}
}

// Producers returns the names in order.
func (q Sequences) Producers() []string { return slices.Sorted(maps.Keys(q)) }
