package leadertest

import (
	"context"
	"errors"
	"testing"
	"time"
)

// patience is how long a condition may take to come true.
const patience = 30 * time.Second

// Term is coordinator.Term.
type Term interface {
	Number() int64
	Lost() <-chan struct{}
	Elsewhere() <-chan struct{}
	Resign(ctx context.Context) error
}

// Contender is a coordinator.Leader.
type Contender interface {
	Win(ctx context.Context, tc uint64) (Term, error)
	Expected(tc uint64) bool
}

// Election is what a test needs of an implementation.
type Election struct {
	// Contender returns another process that wants to lead. None deletes a foreign key.
	Contender func(t testing.TB) Contender
	// Place makes c the one that is to lead every coordinator, in the eyes of all. Before the first call everybody is.
	Place func(c Contender)
	// Holds reports whether a write with the fence of term would be applied.
	Holds func(t testing.TB, term Term) bool
	// Expire makes the lease of the term run out.
	Expire func(t testing.TB, term Term)
}

// Run holds the elections that open returns to the contract.
func Run(t *testing.T, open func(t testing.TB) Election) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, e Election)
	}{
		{"a won term holds", wonTermHolds},
		{"a second contender waits until the first resigns", secondWaits},
		{"to win again begins a new term", winAgain},
		{"an old term resigns only itself", resignOld},
		{"an expired lease ends the term", expiredLease},
		{"coordinators are led independently", independent},
		{"waiting ends with its context", cancelledWait},
		{"who is not to lead leaves a free seat alone", placedWins},
		{"a leader hears that another is to lead", handsOver},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t)) })
	}
}

func win(t testing.TB, c Contender, tc uint64) Term {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	term, err := c.Win(ctx, tc)
	if err != nil {
		t.Fatalf("win: %v", err)
	}
	return term
}

func resign(t testing.TB, term Term) {
	t.Helper()
	if err := term.Resign(t.Context()); err != nil {
		t.Fatalf("resign: %v", err)
	}
}

// later wins in the background.
func later(t testing.TB, c Contender, tc uint64) <-chan Term {
	won := make(chan Term, 1)
	go func() {
		defer close(won)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		term, err := c.Win(ctx, tc)
		if err != nil {
			t.Errorf("win: %v", err)
			return
		}
		won <- term
	}()
	return won
}

func wait(t testing.TB, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatalf("%s: did not happen", what)
	}
}

func wonTermHolds(t *testing.T, e Election) {
	term := win(t, e.Contender(t), 1)
	if term.Number() <= 0 {
		t.Errorf("term %d, want a positive number", term.Number())
	}
	if !e.Holds(t, term) {
		t.Error("the fence of a won term does not hold")
	}
	select {
	case <-term.Lost():
		t.Error("lost at once")
	default:
	}
}

func secondWaits(t *testing.T, e Election) {
	first := win(t, e.Contender(t), 1)
	won := later(t, e.Contender(t), 1)
	select {
	case term := <-won:
		t.Fatalf("term %v beside term %d", term, first.Number())
	case <-time.After(50 * time.Millisecond):
	}
	resign(t, first)
	second, ok := <-won
	if !ok {
		t.FailNow()
	}
	if second.Number() <= first.Number() {
		t.Errorf("term %d after term %d", second.Number(), first.Number())
	}
	if e.Holds(t, first) || !e.Holds(t, second) {
		t.Errorf("fences hold: first %v, second %v", e.Holds(t, first), e.Holds(t, second))
	}
}

func winAgain(t *testing.T, e Election) {
	contender := e.Contender(t)
	first := win(t, contender, 1)
	second := win(t, contender, 1)
	if second.Number() <= first.Number() {
		t.Errorf("term %d after term %d", second.Number(), first.Number())
	}
	wait(t, "first term lost", first.Lost())
	if e.Holds(t, first) || !e.Holds(t, second) {
		t.Errorf("fences hold: first %v, second %v", e.Holds(t, first), e.Holds(t, second))
	}
}

func resignOld(t *testing.T, e Election) {
	contender := e.Contender(t)
	first := win(t, contender, 1)
	second := win(t, contender, 1)
	resign(t, first)
	resign(t, first)
	if !e.Holds(t, second) {
		t.Error("an old term resigned the current one")
	}
	resign(t, second)
	if e.Holds(t, second) {
		t.Error("a resigned term holds")
	}
	wait(t, "resigned term lost", second.Lost())
}

// FC-50: a term whose lease is gone neither writes any more nor goes on believing in itself.
func expiredLease(t *testing.T, e Election) {
	first := win(t, e.Contender(t), 1)
	won := later(t, e.Contender(t), 1)
	e.Expire(t, first)
	wait(t, "expired term lost", first.Lost())
	second, ok := <-won
	if !ok {
		t.FailNow()
	}
	if e.Holds(t, first) || !e.Holds(t, second) {
		t.Errorf("fences hold: first %v, second %v", e.Holds(t, first), e.Holds(t, second))
	}
}

func independent(t *testing.T, e Election) {
	a, b := e.Contender(t), e.Contender(t)
	first, second := win(t, a, 1), win(t, b, 2)
	third := win(t, a, 3)
	for _, term := range []Term{first, second, third} {
		if !e.Holds(t, term) {
			t.Errorf("term %d does not hold", term.Number())
		}
	}
}

func cancelledWait(t *testing.T, e Election) {
	first := win(t, e.Contender(t), 1)
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("enough")
	result := make(chan error, 1)
	contender := e.Contender(t)
	go func() {
		_, err := contender.Win(ctx, 1)
		result <- err
	}()
	cancel(cause)
	select {
	case err := <-result:
		if !errors.Is(err, cause) {
			t.Errorf("%v, want the cause of the context", err)
		}
	case <-time.After(patience):
		t.Fatal("still waiting")
	}
	if !e.Holds(t, first) {
		t.Error("a contender that gave up ended the term")
	}
}

func placedWins(t *testing.T, e Election) {
	a, b := e.Contender(t), e.Contender(t)
	if !a.Expected(1) || !b.Expected(1) {
		t.Error("nobody is placed, and somebody is not expected to lead")
	}
	e.Place(b)
	if a.Expected(1) || !b.Expected(1) {
		t.Errorf("b is to lead; expected: a %v, b %v", a.Expected(1), b.Expected(1))
	}
	won := later(t, a, 1)
	select {
	case term := <-won:
		t.Fatalf("a took the free seat of b: %v", term)
	case <-time.After(50 * time.Millisecond):
	}
	term := win(t, b, 1)
	notYet(t, "b, which is to lead, hears that another is", term.Elsewhere())
	e.Place(a)
	resign(t, term)
	if _, ok := <-won; !ok {
		t.FailNow()
	}
}

func handsOver(t *testing.T, e Election) {
	a, b := e.Contender(t), e.Contender(t)
	first := win(t, a, 1)
	notYet(t, "nobody is placed, and the leader hears that another is to lead", first.Elsewhere())
	e.Place(b)
	wait(t, "a hears that b is to lead", first.Elsewhere())
	if !e.Holds(t, first) {
		t.Error("the term ended before it was resigned")
	}
	won := later(t, b, 1)
	resign(t, first)
	second, ok := <-won
	if !ok {
		t.FailNow()
	}
	e.Place(b)
	notYet(t, "b hears that another is to lead", second.Elsewhere())
}

func notYet(t testing.TB, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
		t.Error(what)
	case <-time.After(20 * time.Millisecond):
	}
}
