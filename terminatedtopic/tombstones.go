package terminatedtopic

import "github.com/pulsar-tc/pulsar-tc/preserver"

// maxTombstones is how many names without outcomes are remembered: a reader that was away for longer than so many names took
// to become empty is not told of the first of them, as on any compacted topic.
const maxTombstones = 4096

// tombstones are the names that became empty last, whether or not anybody reads.
type tombstones struct {
	places map[preserver.Key]uint64
	order  []tombstone // by place; those that places does not agree with are void
}

type tombstone struct {
	key    preserver.Key
	place  uint64
	millis int64
}

// add notes that key became empty, and returns a name that is no longer remembered, if there is one.
func (t *tombstones) add(key preserver.Key, place uint64, millis int64) (forgotten tombstone, is bool) {
	if t.places == nil {
		t.places = map[preserver.Key]uint64{}
	}
	if place <= t.places[key] { // told again by a load
		return tombstone{}, false
	}
	t.places[key] = place
	t.order = append(t.order, tombstone{key, place, millis})
	if len(t.places) > maxTombstones {
		for !is {
			forgotten = t.order[0]
			is = t.holds(forgotten)
			t.order = t.order[1:]
		}
		delete(t.places, forgotten.key)
	}
	if len(t.order) > 2*maxTombstones {
		t.order = append([]tombstone(nil), t.valid()...)
	}
	return forgotten, is
}

// drop notes that key has outcomes.
func (t *tombstones) drop(key preserver.Key) { delete(t.places, key) }

func (t *tombstones) holds(s tombstone) bool { return t.places[s.key] == s.place }

// valid returns all, by place.
func (t *tombstones) valid() []tombstone {
	var all []tombstone
	for _, s := range t.order {
		if t.holds(s) {
			all = append(all, s)
		}
	}
	return all
}
