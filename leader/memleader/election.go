package memleader

import (
	"context"
	"sync"
)

// Election is the store in which contenders meet. It is safe for concurrent use; use NewElection.
type Election struct {
	mu       sync.Mutex
	revision int64            // guarded by mu: grows with every change
	seats    map[uint64]*seat // guarded by mu; by coordinator
	place    *Contender       // guarded by mu: who is to lead; nil: whoever comes
	placed   chan struct{}    // guarded by mu: closed when place changes
}

// NewElection returns an election in which nobody leads.
func NewElection() *Election {
	return &Election{seats: make(map[uint64]*seat), placed: make(chan struct{})}
}

// seat is the leadership of one coordinator.
type seat struct {
	term  *Term         // nil: nobody leads
	freed chan struct{} // closed when term ends; nil if there is none
}

// Contender is one process that wants to lead. It leads each coordinator at most once: to win again ends its own term.
type Contender struct{ election *Election }

// Contender returns another process.
func (e *Election) Contender() *Contender { return &Contender{election: e} }

// Term is one period of leadership.
type Term struct {
	election *Election
	owner    *Contender
	tc       uint64
	number   int64
	lost     chan struct{}

	elsewhere chan struct{}
}

// Win waits until c leads tc; see coordinator.Leader.
func (c *Contender) Win(ctx context.Context, tc uint64) (*Term, error) {
	for {
		term, freed, placed := c.try(tc)
		if term != nil {
			return term, nil
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-freed:
		case <-placed:
		}
	}
}

// try takes the seat if it is free or c's own, and c is to lead. Otherwise freed or placed is closed when to try again.
func (c *Contender) try(tc uint64) (term *Term, freed, placed <-chan struct{}) {
	e := c.election
	e.mu.Lock()
	defer e.mu.Unlock()
	place := e.seats[tc]
	if place == nil {
		place = &seat{}
		e.seats[tc] = place
	}
	if place.term != nil && place.term.owner != c {
		return nil, place.freed, e.placed
	}
	e.free(place)
	if !e.mine(c) {
		return nil, nil, e.placed
	}
	e.revision++
	place.term = &Term{election: e, owner: c, tc: tc, number: e.revision, lost: make(chan struct{}), elsewhere: make(chan struct{})}
	place.freed = make(chan struct{})
	return place.term, nil, nil
}

// free ends the term of a seat, if there is one. The caller holds mu.
func (e *Election) free(place *seat) {
	if place.term == nil {
		return
	}
	e.revision++
	close(place.term.lost)
	close(place.freed)
	place.term, place.freed = nil, nil
}

// Expire ends the term of tc as if its lease had run out. Nothing happens if nobody leads.
func (e *Election) Expire(tc uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if place := e.seats[tc]; place != nil {
		e.free(place)
	}
}

// Number grows from term to term of one coordinator; see coordinator.Term.
func (t *Term) Number() int64 { return t.number }

// Lost is closed when the term is over.
func (t *Term) Lost() <-chan struct{} { return t.lost }

// Holds reports whether this term is the current one.
func (t *Term) Holds() bool {
	t.election.mu.Lock()
	defer t.election.mu.Unlock()
	return t.election.seats[t.tc].term == t
}

// Resign ends this term and no other.
func (t *Term) Resign(context.Context) error {
	t.election.mu.Lock()
	defer t.election.mu.Unlock()
	if place := t.election.seats[t.tc]; place.term == t {
		t.election.free(place)
	}
	return nil
}
