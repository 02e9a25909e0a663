package stickykey

import (
	"cmp"
	"slices"
	"sort"
	"strconv"
)

// Ring puts points of each member's name on a circle of hashes; a hash belongs to the next point. Use NewRing.
//
// Source: ConsistentHashingStickyKeyConsumerSelector; broker.conf subscriptionKeySharedUseConsistentHashing.
type Ring struct {
	pointsEach int
	points     []point // by hash, then name
}

type point struct {
	hash   int
	name   string
	member Member
}

// NewRing returns a ring without members, each of which gets pointsEach points.
func NewRing(pointsEach int) *Ring { return &Ring{pointsEach: pointsEach} }

// Add implements Selector.
func (r *Ring) Add(m Member, name string, _ []Range) error {
	for i := range r.pointsEach {
		r.points = append(r.points, point{Hash([]byte(name + "\x00" + strconv.Itoa(i))), name, m})
	}
	slices.SortFunc(r.points, func(a, b point) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.name, b.name), cmp.Compare(a.member, b.member))
	})
	return nil
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
