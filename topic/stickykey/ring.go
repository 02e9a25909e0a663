package stickykey

import (
	"cmp"
	"slices"
	"sort"
	"strconv"
	"strings"
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

// Add implements Selector. It costs a step for each point that there is.
func (r *Ring) Add(m Member, name string, _ []Range) error {
	number := r.free(name)
	fresh := make([]point, r.pointsEach)
	for i := range fresh {
		fresh[i] = point{Hash([]byte(name + "\x00" + strconv.Itoa(number) + "\x00" + strconv.Itoa(i))), name, number, m}
	}
	slices.SortFunc(fresh, point.compare)
	old, next := len(r.points)-1, len(fresh)-1
	r.points = append(r.points, fresh...)
	for i := len(r.points) - 1; next >= 0; i-- {
		if old >= 0 && r.points[old].compare(fresh[next]) > 0 {
			r.points[i] = r.points[old]
			old--
		} else {
			r.points[i] = fresh[next]
			next--
		}
	}
	return nil
}

func (p point) compare(q point) int {
	if p.hash != q.hash {
		return cmp.Compare(p.hash, q.hash)
	}
	return cmp.Or(strings.Compare(p.name, q.name), cmp.Compare(p.member, q.member))
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
