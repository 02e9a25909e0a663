package stickykey

import (
	"slices"
	"sort"
)

// AutoSplit gives each newcomer the lower half of the widest part. The part of a member that goes is joined to the one above
// it, the highest to the one below. The zero AutoSplit is empty.
//
// Source: HashRangeAutoSplitStickyKeyConsumerSelector.
type AutoSplit struct {
	parts []part // by end; the last ends at Size
}

// part is the hashes up to and including end that are behind the part before it.
type part struct {
	end    int
	member Member
}

// Add implements Selector. With more members than hashes the newcomer gets none.
func (s *AutoSplit) Add(m Member, _ string, _ []Range) error {
	if len(s.parts) == 0 {
		s.parts = []part{{Size, m}}
		return nil
	}
	widest, width, before := 0, 0, 0
	for i, p := range s.parts {
		if p.end-before > width {
			widest, width = i, p.end-before
		}
		before = p.end
	}
	if width < 2 {
		return nil
	}
	s.parts = slices.Insert(s.parts, widest, part{s.parts[widest].end - width/2, m})
	return nil
}

// Remove implements Selector.
func (s *AutoSplit) Remove(m Member) {
	i := slices.IndexFunc(s.parts, func(p part) bool { return p.member == m })
	if i < 0 {
		return
	}
	s.parts = slices.Delete(s.parts, i, i+1)
	if n := len(s.parts); n > 0 {
		s.parts[n-1].end = Size
	}
}

// Select implements Selector.
func (s *AutoSplit) Select(hash int) (Member, bool) {
	i := sort.Search(len(s.parts), func(i int) bool { return hash <= s.parts[i].end })
	if i == len(s.parts) {
		return 0, false
	}
	return s.parts[i].member, true
}
