package stickykey

import (
	"slices"
	"sort"
)

// Fixed gives each member the ranges that its consumer asks for. The zero Fixed is empty.
//
// Source: HashRangeExclusiveStickyKeyConsumerSelector.
type Fixed struct {
	owned []owned // in order, none touches another
}

type owned struct {
	Range
	member Member
}

// Add implements Selector. Errors: ErrNoRanges, ErrBackward, ErrOutside, ErrConflict if a range shares a hash with any other,
// of this consumer too.
func (f *Fixed) Add(m Member, _ string, ranges []Range) error {
	if len(ranges) == 0 {
		return ErrNoRanges
	}
	all := slices.Clone(f.owned)
	for _, r := range ranges {
		switch {
		case r.Start > r.End:
			return ErrBackward
		case r.Start < 0 || r.End >= Size:
			return ErrOutside
		}
		all = append(all, owned{r, m})
	}
	slices.SortFunc(all, func(a, b owned) int { return int(a.Start) - int(b.Start) })
	for i := 1; i < len(all); i++ {
		if all[i].Start <= all[i-1].End {
			return ErrConflict
		}
	}
	f.owned = all
	return nil
}

// Remove implements Selector.
func (f *Fixed) Remove(m Member) {
	f.owned = slices.DeleteFunc(f.owned, func(o owned) bool { return o.member == m })
}

// Select implements Selector.
func (f *Fixed) Select(hash int) (Member, bool) {
	i := sort.Search(len(f.owned), func(i int) bool { return hash <= int(f.owned[i].End) })
	if i == len(f.owned) || hash < int(f.owned[i].Start) {
		return 0, false
	}
	return f.owned[i].member, true
}
