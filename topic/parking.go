package topic

import (
	"container/heap"
	"slices"
	"sort"

	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
)

// waitKey names messages that one consumer is given, in order: a hash of package stickykey, or a message in chunks. 0: none.
type waitKey uint64

// parking is the entries that were looked at and wait for the consumer of their key: until it takes messages, or until the
// key is free. It keeps positions alone. A delivery costs the logarithm of the number of keys, whatever waits for others.
type parking struct {
	keys  map[waitKey]*waitingKey
	of    map[ledger.Position]waitKey
	ready int // keys that are in the heap of their consumer
}

// waitingKey is the entries of one key, never none.
type waitingKey struct {
	key       waitKey
	positions []ledger.Position // in order
	owner     *consumer         // in whose heap it is; nil: in none
	place     int               // in that heap
}

func newParking() parking {
	return parking{keys: make(map[waitKey]*waitingKey), of: make(map[ledger.Position]waitKey)}
}

func (w *parking) len() int { return len(w.of) }

func (w *parking) contains(p ledger.Position) bool {
	_, found := w.of[p]
	return found
}

// add lets p wait.
func (w *parking) add(key waitKey, p ledger.Position) {
	if w.contains(p) {
		return
	}
	w.of[p] = key
	k := w.keys[key]
	if k == nil {
		w.keys[key] = &waitingKey{key: key, positions: []ledger.Position{p}}
		return
	}
	i := sort.Search(len(k.positions), func(i int) bool { return p.Before(k.positions[i]) })
	k.positions = slices.Insert(k.positions, i, p)
	if i == 0 && k.owner != nil {
		heap.Fix(&k.owner.waiting, k.place)
	}
}

// offer puts what waits of key into the heap of c.
func (w *parking) offer(key waitKey, c *consumer) {
	if k := w.keys[key]; k != nil && k.owner == nil {
		k.owner = c
		heap.Push(&c.waiting, k)
		w.ready++
	}
}

// first returns the key with the first entry that waits for c, or nil.
func (w *parking) first(c *consumer) *waitingKey {
	if len(c.waiting) == 0 {
		return nil
	}
	return c.waiting[0]
}

// block takes k out of the heap of its consumer.
func (w *parking) block(k *waitingKey) {
	heap.Remove(&k.owner.waiting, k.place)
	k.owner = nil
	w.ready--
}

// pop takes the first entry of k, which is the first key of its consumer.
func (w *parking) pop(k *waitingKey) {
	delete(w.of, k.positions[0])
	k.positions = k.positions[1:]
	if len(k.positions) == 0 {
		w.block(k)
		delete(w.keys, k.key)
		return
	}
	heap.Fix(&k.owner.waiting, k.place)
}

// clear empties it and returns what waited.
func (w *parking) clear(consumers []*consumer) []ledger.Range {
	ranges := make([]ledger.Range, 0, len(w.of))
	for p := range w.of {
		ranges = append(ranges, ledger.One(p))
	}
	clear(w.keys)
	clear(w.of)
	w.ready = 0
	for _, c := range consumers {
		c.waiting = nil
	}
	return ranges
}

// keyHeap is the keys of a consumer of which it may be given messages, by their first entries.
type keyHeap []*waitingKey

func (h keyHeap) Len() int           { return len(h) }
func (h keyHeap) Less(i, j int) bool { return h[i].positions[0].Before(h[j].positions[0]) }
func (h keyHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

func (h *keyHeap) Push(x any) {
	k := x.(*waitingKey)
	k.place = len(*h)
	*h = append(*h, k)
}

func (h *keyHeap) Pop() any {
	last := len(*h) - 1
	k := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return k
}
