package stickykey

import (
	"cmp"
	"slices"
	"sort"
	"strconv"
)

// Ring puts points of each member's name on a circle of hashes; a hash belongs to the next point. Members of the same name are
// numbered, so that each has points of its own. Use NewRing.
//
// Source: ConsistentHashingStickyKeyConsumerSelector, ConsumerNameIndexTracker; broker.conf subscriptionKeySharedUseConsistentHashing.
type Ring struct {
	pointsEach int
	points     []point // by hash, then name
}

type point struct {
	hash   int
	name   string
	number int // among those of the name
	member Member
}

// NewRing returns a ring without members, each of which gets pointsEach points.
func NewRing(pointsEach int) *Ring { return &Ring{pointsEach: pointsEach} }

// Add implements Selector.
func (r *Ring) Add(m Member, name string, _ []Range) error {
	number := r.free(name)
	for i := range r.pointsEach {
		text := name + "\x00" + strconv.Itoa(number) + "\x00" + strconv.Itoa(i)
		r.points = append(r.points, point{Hash([]byte(text)), name, number, m})
	}
	slices.SortFunc(r.points, func(a, b point) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.name, b.name), cmp.Compare(a.member, b.member))
	})
	return nil
}

// free returns the lowest number that no member of a name has.
func (r *Ring) free(name string) int {
	used := make(map[int]bool)
	for _, p := range r.points {
		if p.name == name {
			used[p.number] = true
		}
	}
	number := 0
	for used[number] {
		number++
	}
	return number
}

// Remove implements Selector.
func (r *Ring) Remove(m Member) {
	r.points = slices.DeleteFunc(r.points, func(p point) bool { return p.member == m })
}

// Select implements Selector.
func (r *Ring) Select(hash int) (Member, bool) {
	if len(r.points) == 0 {
		return 0, false
	}
	i := sort.Search(len(r.points), func(i int) bool { return hash <= r.points[i].hash })
	return r.points[i%len(r.points)].member, true
}
