package ledger

import (
	"slices"
	"sort"
)

// Set is a set of positions, kept as ranges. The zero Set is empty. It costs memory by the number of separate ranges.
type Set struct{ ranges []Range }

// Len is the number of separate ranges.
func (s *Set) Len() int { return len(s.ranges) }

// Ranges returns the ranges in order. The slice is the set's own: it is valid until the next change and must not be changed.
func (s *Set) Ranges() []Range { return s.ranges }

// First returns the lowest range.
func (s *Set) First() (Range, bool) {
	if len(s.ranges) == 0 {
		return Range{}, false
	}
	return s.ranges[0], true
}

// Contains reports whether p is in the set.
func (s *Set) Contains(p Position) bool {
	_, found := s.Around(p)
	return found
}

// Around returns the range that holds p.
func (s *Set) Around(p Position) (Range, bool) {
	i := sort.Search(len(s.ranges), func(i int) bool { return p.Before(s.ranges[i].To) })
	if i < len(s.ranges) && s.ranges[i].Contains(p) {
		return s.ranges[i], true
	}
	return Range{}, false
}

// Between returns the ranges that share a position with those from on that lie before to, whole, in order. The slice is the
// set's own, as with Ranges.
func (s *Set) Between(from, to Position) []Range {
	lo := sort.Search(len(s.ranges), func(i int) bool { return from.Before(s.ranges[i].To) })
	hi := lo + sort.Search(len(s.ranges)-lo, func(i int) bool { return !s.ranges[lo+i].From.Before(to) })
	return s.ranges[lo:hi]
}

// Add puts r into the set, joining what overlaps or touches it.
func (s *Set) Add(r Range) {
	if r.Empty() {
		return
	}
	// lo is the first range that ends at or behind r's start, hi the first that starts behind r's end.
	lo := sort.Search(len(s.ranges), func(i int) bool { return !s.ranges[i].To.Before(r.From) })
	hi := lo + sort.Search(len(s.ranges)-lo, func(i int) bool { return r.To.Before(s.ranges[lo+i].From) })
	if lo == hi {
		s.ranges = append(s.ranges, Range{})
		copy(s.ranges[lo+1:], s.ranges[lo:])
		s.ranges[lo] = r
		return
	}
	if s.ranges[lo].From.Before(r.From) {
		r.From = s.ranges[lo].From
	}
	if r.To.Before(s.ranges[hi-1].To) {
		r.To = s.ranges[hi-1].To
	}
	s.ranges[lo] = r
	s.ranges = append(s.ranges[:lo+1], s.ranges[hi:]...)
}

// fewRanges are added one by one: that allocates nothing.
const fewRanges = 4

// AddAll puts all of more into the set, at the cost of one pass over both from the lowest of more on. It sorts more.
func (s *Set) AddAll(more []Range) {
	if len(more) <= fewRanges {
		for _, r := range more {
			s.Add(r)
		}
		return
	}
	slices.SortFunc(more, func(a, b Range) int { return a.From.Compare(b.From) })
	lo := sort.Search(len(s.ranges), func(i int) bool { return !s.ranges[i].To.Before(more[0].From) })
	old, joined := slices.Clone(s.ranges[lo:]), s.ranges[:lo]
	for len(old)+len(more) > 0 {
		from := &more
		if len(more) == 0 || len(old) > 0 && old[0].From.Before(more[0].From) {
			from = &old
		}
		r := (*from)[0]
		*from = (*from)[1:]
		switch last := len(joined) - 1; {
		case r.Empty():
		case last < 0 || joined[last].To.Before(r.From):
			joined = append(joined, r)
		case joined[last].To.Before(r.To):
			joined[last].To = r.To
		}
	}
	s.ranges = joined
}

// Remove takes everything in r out of the set.
func (s *Set) Remove(r Range) {
	if r.Empty() {
		return
	}
	lo := sort.Search(len(s.ranges), func(i int) bool { return r.From.Before(s.ranges[i].To) })
	hi := lo + sort.Search(len(s.ranges)-lo, func(i int) bool { return !s.ranges[lo+i].From.Before(r.To) })
	if lo == hi {
		return
	}
	var keep []Range
	if left := (Range{s.ranges[lo].From, r.From}); !left.Empty() {
		keep = append(keep, left)
	}
	if right := (Range{r.To, s.ranges[hi-1].To}); !right.Empty() {
		keep = append(keep, right)
	}
	if lo == 0 && len(keep) == 0 {
		s.ranges = s.ranges[hi:] // the front is what goes most often, and costs nothing so
		return
	}
	s.ranges = slices.Replace(s.ranges, lo, hi, keep...)
}

// Clear empties the set.
func (s *Set) Clear() { s.ranges = nil }
