package dedup

import (
	"fmt"
	"maps"
	"slices"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

// Sequences are the highest stored sequence ids by producer name.
type Sequences map[string]uint64

// Raise notes highest for producer, unless a higher one is there.
func (q Sequences) Raise(producer string, highest uint64) {
	if old, found := q[producer]; !found || old < highest {
		q[producer] = highest
	}
}

// Producers returns the names in order.
func (q Sequences) Producers() []string { return slices.Sorted(maps.Keys(q)) }

// State is what one topic has stored. Use New.
type State struct {
	keep bool
	open map[txn.ID]Sequences
	// ceilings are, by producer, at least the highest sequence id that open transactions have stored, or that a draft adds.
	ceilings map[string]uint64

	pages  map[uint64]*page
	places map[string]uint64 // the page of a name
	newest uint64            // the page that new names go to
}

// New returns an empty state that does not deduplicate.
func New() *State {
	return &State{
		open: make(map[txn.ID]Sequences), ceilings: make(map[string]uint64),
		pages: make(map[uint64]*page), places: make(map[string]uint64),
	}
}

// Keep turns deduplication on or off for the drafts that begin from now on. What is stored stays until Clear.
func (s *State) Keep(keep bool) { s.keep = keep }

// Keeps reports whether the topic deduplicates.
func (s *State) Keeps() bool { return s.keep }

// Names is the number of producer names that are stored for good.
func (s *State) Names() int { return len(s.places) }

// Clear forgets what is stored for good. What open transactions have stored stays.
func (s *State) Clear() {
	clear(s.pages)
	clear(s.places)
}

// Restore sets what open transaction id has stored. It takes over sequences.
func (s *State) Restore(id txn.ID, sequences Sequences) {
	s.open[id] = sequences
	for producer, highest := range sequences {
		Sequences(s.ceilings).Raise(producer, highest)
	}
}

// RestorePage adds a stored page. The error tells what is wrong with its value.
func (s *State) RestorePage(number uint64, value []byte) error {
	p, err := decodePage(value)
	if err != nil {
		return err
	}
	for i := range p.records {
		producer := p.records[i].producer
		if other, found := s.places[producer]; found {
			return fmt.Errorf("producer %q is in page %d as well", producer, other)
		}
		s.places[producer] = number
	}
	s.pages[number] = p
	s.newest = max(s.newest, number)
	return nil
}

// Open returns the highest sequence ids of producer that open transactions have stored.
func (s *State) Open(producer string) map[txn.ID]uint64 {
	if _, found := s.ceilings[producer]; !found {
		return nil
	}
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

// Last returns the highest sequence id of producer that is stored, in open transactions or for good.
func (s *State) Last(producer string) (last uint64, found bool) {
	if r := s.pages[s.places[producer]].find(producer); r != nil && s.keep {
		last, found = r.highest, true
	}
	for _, highest := range s.Open(producer) {
		last, found = max(last, highest), true
	}
	return last, found
}

// Ended forgets what open transaction id stored. What a commit makes good is in the draft of the write that ends it.
func (s *State) Ended(id txn.ID) {
	delete(s.open, id)
	if len(s.open) == 0 {
		clear(s.ceilings)
	}
}
