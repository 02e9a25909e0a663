package dedup

import (
	"cmp"
	"slices"
	"time"
)

// Limits bound the names that a topic remembers.
type Limits struct {
	// Names is the number of names above which those that were used longest ago are forgotten, unless a producer has them.
	Names int
	// Inactive is how long a name is remembered at least that no producer has.
	Inactive time.Duration
}

// Stale returns names that are to be forgotten, and names that are to be touched, each in order. The stored time of use is that
// of the last message. Names that producers have are touched when half of Inactive has passed, so a name is forgotten only after
// one and a half: then no producer has had it for all of Inactive.
func (s *State) Stale(now time.Time, attached func(producer string) bool, limits Limits) (forget, touch []string) {
	inactive := uint64(max(2, limits.Inactive/time.Minute))
	minute := minutes(now)
	tooMany := len(s.places) > limits.Names
	var kept []record // if there are too many, those without a producer
	for producer, number := range s.places {
		r := s.pages[number].find(producer)
		age := minute - min(minute, r.used)
		switch {
		case attached(producer):
			if age > inactive/2 {
				touch = append(touch, producer)
			}
		case age > inactive+inactive/2:
			forget = append(forget, producer)
		case tooMany:
			kept = append(kept, *r)
		}
	}
	if excess := len(s.places) - len(forget) - limits.Names; excess > 0 {
		slices.SortFunc(kept, func(a, b record) int { return cmp.Or(cmp.Compare(a.used, b.used), cmp.Compare(a.producer, b.producer)) })
		for _, r := range kept[:min(excess, len(kept))] {
			forget = append(forget, r.producer)
		}
	}
	slices.Sort(forget)
	slices.Sort(touch)
	return forget, touch
}
