package memlog

import (
	"maps"
	"slices"
	"sync"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

// Store outlives logs and terms, as etcd does. It is safe for concurrent use.
type Store struct {
	mu        sync.Mutex
	logs      map[uint64]*stored            // guarded by mu; by coordinator
	keys      map[string]int64              // guarded by mu; keys of participants and their mod revisions
	revision  int64                         // guarded by mu; the last that a key of a participant got
	intercept func(tc uint64, w Write) Fate // guarded by mu
}

// stored is what a store holds of one coordinator.
type stored struct {
	values map[uint64][]byte
	open   map[OpenKey]bool
	next   uint64
}

// OpenKey says that a transaction is OPEN and has the participant.
type OpenKey struct {
	Least       uint64
	Participant txn.Participant
}

// Write is one atomic piece of a batch on its way into the store.
type Write struct {
	Index      uint64
	Changes    []txn.Change // valid during the call only
	Next       uint64       // of the batch if this is the first piece, else 0
	DropBefore uint64       // of the batch if this is the last piece, else 0
}

// Fate is what becomes of a write.
type Fate uint8

// The fates of a write. The last two look the same to the writer: txn.ErrUnknownResult.
const (
	Apply Fate = iota
	LoseAnswer
	LoseWrite
)

// NewStore returns an empty store.
func NewStore() *Store {
	return &Store{logs: make(map[uint64]*stored), keys: make(map[string]int64)}
}

// Intercept has f decide the fate of every later write; nil applies all. f may block: a write that it holds back is applied
// when f returns, if the fence holds then.
func (s *Store) Intercept(f func(tc uint64, w Write) Fate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.intercept = f
}

func (s *Store) interceptor() func(uint64, Write) Fate {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.intercept
}

// of returns the part of one coordinator. The caller holds mu.
func (s *Store) of(tc uint64) *stored {
	part := s.logs[tc]
	if part == nil {
		part = &stored{values: make(map[uint64][]byte), open: make(map[OpenKey]bool)}
		s.logs[tc] = part
	}
	return part
}

// Value returns a copy of the stored value at index, nil if there is none.
func (s *Store) Value(tc, index uint64) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.of(tc).values[index])
}

// SetValue stores a raw value, nil for none.
func (s *Store) SetValue(tc, index uint64, value []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if value == nil {
		delete(s.of(tc).values, index)
		return
	}
	s.of(tc).values[index] = slices.Clone(value)
}

// OpenKeys returns the open keys of a transaction in the order of their participants.
func (s *Store) OpenKeys(id txn.ID) []txn.Participant {
	s.mu.Lock()
	defer s.mu.Unlock()
	var participants []txn.Participant
	for key := range s.of(id.Most).open {
		if key.Least == id.Least {
			participants = append(participants, key.Participant)
		}
	}
	slices.SortFunc(participants, txn.Participant.Compare)
	return participants
}

// Put puts a key of a participant and returns its fence.
func (s *Store) Put(key string) txn.Fence {
	s.mu.Lock()
	defer s.mu.Unlock()
	return txn.Fence{Key: key, Revision: s.put(key)}
}

func (s *Store) put(key string) int64 {
	s.revision++
	s.keys[key] = s.revision
	return s.revision
}

// Exists reports whether a key of a participant is there.
func (s *Store) Exists(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keys[key] != 0
}

// holds reports whether the fences of all settlements hold. The caller holds mu.
func (s *Store) holds(changes []txn.Change) bool {
	for i := range changes {
		if changes[i].Settlement == nil {
			continue
		}
		for _, fence := range changes[i].Settlement.Fences {
			if s.keys[fence.Key] != fence.Revision {
				return false
			}
		}
	}
	return true
}

// settle applies a settlement. The caller holds mu.
func (s *Store) settle(settlement *txn.Settlement) {
	for _, key := range settlement.Puts {
		s.put(key)
	}
	for _, key := range settlement.Deletes {
		delete(s.keys, key)
	}
}

// read returns the values from index on in order, and the id bound.
func (s *Store) read(tc uint64) (indexes []uint64, values map[uint64][]byte, next uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	part := s.of(tc)
	return slices.Sorted(maps.Keys(part.values)), maps.Clone(part.values), part.next
}
