package terminatedtopic

import (
	"cmp"
	"slices"
	"sort"

	"github.com/pulsar-tc/pulsar-tc/preserver"
)

// view is the names of a topic in order of their newest change.
type view struct {
	names map[string]*name
	// order is by place; steps whose name has changed since are void. Until it is sorted it is empty.
	order  []step
	sorted bool
	last   uint64 // largest place
}

// name is one client name of all owners that use it.
type name struct {
	text   string
	place  uint64
	millis int64
	owners []owned
}

// owned is what one owner has under a name.
type owned struct {
	key   preserver.Key
	place uint64
	empty bool
}

type step struct {
	place uint64
	name  *name
}

func newView() *view { return &view{names: map[string]*name{}} }

// note takes a change.
func (v *view) note(key preserver.Key, place uint64, millis int64, empty bool) {
	n := v.names[key.Name]
	if n == nil {
		n = &name{text: key.Name}
		v.names[key.Name] = n
	}
	i := slices.IndexFunc(n.owners, func(o owned) bool { return o.key == key })
	switch {
	case i < 0:
		n.owners = append(n.owners, owned{key, place, empty})
	case place > n.owners[i].place:
		n.owners[i] = owned{key, place, empty}
	}
	v.last = max(v.last, place)
	if place <= n.place {
		return
	}
	n.place, n.millis = place, millis
	if v.sorted {
		v.order = append(v.order, step{place, n})
		v.tidy()
	}
}

// forget drops an owner's part of a name that is empty, unless it has changed since place.
func (v *view) forget(key preserver.Key, place uint64) {
	n := v.names[key.Name]
	if n == nil {
		return
	}
	n.owners = slices.DeleteFunc(n.owners, func(o owned) bool { return o.key == key && o.empty })
	if len(n.owners) == 0 && n.place <= place {
		delete(v.names, key.Name)
	}
}

// sort ends the time of notes in any order.
func (v *view) sort() {
	for _, n := range v.names {
		v.order = append(v.order, step{n.place, n})
	}
	slices.SortFunc(v.order, func(a, b step) int { return cmp.Compare(a.place, b.place) })
	v.sorted = true
}

// tidy drops void steps when they are more than half.
func (v *view) tidy() {
	if len(v.order) > 2*len(v.names)+64 {
		v.order = slices.DeleteFunc(v.order, func(s step) bool { return !v.valid(s) })
	}
}

func (v *view) valid(s step) bool { return s.name.place == s.place && v.names[s.name.text] == s.name }

// next returns the first name whose newest change lies behind place, or nil.
func (v *view) next(place uint64) *name {
	i := sort.Search(len(v.order), func(i int) bool { return v.order[i].place > place })
	for ; i < len(v.order); i++ {
		if v.valid(v.order[i]) {
			return v.order[i].name
		}
	}
	return nil
}

// newest returns the place of the last name, 0 without any.
func (v *view) newest() uint64 {
	for i := len(v.order) - 1; i >= 0; i-- {
		if v.valid(v.order[i]) {
			return v.order[i].place
		}
	}
	return 0
}

// since returns the place of the first name that changed at millis or later, or the one behind the last.
func (v *view) since(millis int64) uint64 {
	for _, s := range v.order {
		if v.valid(s) && s.name.millis >= millis {
			return s.place
		}
	}
	return v.last + 1
}
