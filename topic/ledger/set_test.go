package ledger

import (
	"testing"

	"pgregory.net/rapid"
)

// TestSetAgainstMap holds Set against a plain set of positions of two ledgers.
func TestSetAgainstMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const entries = 12
		all := make([]Position, 0, 2*entries)
		for l := range uint64(2) {
			for e := range uint64(entries) {
				all = append(all, Position{l, e})
			}
		}
		place := rapid.SampledFrom(append(all, Position{2, 0}))
		var s Set
		model := make(map[Position]bool)
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			changed := []Range{{place.Draw(t, "from"), place.Draw(t, "to")}}
			kind := rapid.IntRange(0, 2).Draw(t, "kind")
			switch kind {
			case 0:
				s.Remove(changed[0])
			case 1:
				s.Add(changed[0])
			case 2:
				for range rapid.IntRange(0, 9).Draw(t, "more") {
					changed = append(changed, Range{place.Draw(t, "from"), place.Draw(t, "to")})
				}
				s.AddAll(changed)
			}
			for _, p := range all {
				for _, r := range changed {
					if r.Contains(p) {
						model[p] = kind != 0
					}
				}
			}
			for _, p := range all {
				if s.Contains(p) != model[p] {
					t.Fatalf("%v: in the set %v, want %v; ranges %v", p, s.Contains(p), model[p], s.Ranges())
				}
			}
			for i, r := range s.Ranges() {
				if r.Empty() || i > 0 && !s.Ranges()[i-1].To.Before(r.From) {
					t.Fatalf("ranges are not ordered, apart and non-empty: %v", s.Ranges())
				}
			}
			between := Range{place.Draw(t, "a"), place.Draw(t, "b")}
			n := 0
			for _, r := range s.Ranges() {
				if r.From.Before(between.To) && between.From.Before(r.To) && !between.Empty() {
					n++
				}
			}
			if got := len(s.Between(between.From, between.To)); !between.Empty() && got != n {
				t.Fatalf("%d ranges between %v, want %d", got, between, n)
			}
		}
	})
}

func TestNeighbouringRangesJoinOverLedgers(t *testing.T) {
	var s Set
	s.Add(One(Position{3, 99}))
	s.Add(Range{Position{3, 100}, Position{7, 0}})
	s.Add(One(Position{7, 0}))
	if s.Len() != 1 {
		t.Fatalf("%v, want one range", s.Ranges())
	}
}
