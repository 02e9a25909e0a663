package preserver

import (
	"cmp"
	"container/heap"
	"slices"
)

// Load takes an outcome as read from the log, in any order and possibly more than once. After the last one call Loaded.
// Nothing else may be called in between, except Hold and Release.
func (x *Index) Load(key Key, o Outcome) {
	b := x.bucket(key)
	b.loaded = append(b.loaded, pack(o))
}

// Loaded ends a load: outcomes are put in order, and what count, time and cap no longer allow is forgotten (P-24), all of a bucket
// that keeps nothing.
func (x *Index) Loaded(now int64) {
	for _, b := range x.numbered {
		if b != nil {
			x.settle(b, now)
		}
	}
	x.cuts = nil
	heap.Init(&x.byExcess)
	for x.total > x.opts.Max {
		x.evict(x.byExcess[0])
	}
}

// settle enters what retention leaves of a bucket's loaded outcomes into the index.
func (x *Index) settle(b *Bucket, now int64) {
	all := b.loaded
	b.loaded = nil
	byPlace := func(s, t slot) int { return cmp.Compare(s.place, t.place) }
	if !slices.IsSortedFunc(all, byPlace) {
		slices.SortFunc(all, byPlace)
	}
	all = slices.CompactFunc(all, func(s, t slot) bool { return s.place == t.place })
	cut := x.cuts[b.key]
	b.changed = cut.Change
	for len(all) > 0 && all[0].number() <= cut.Place {
		all = all[1:]
	}
	for len(all) > 0 && (!x.Keeps(b) || x.tooOld(&all[0], now) || len(all) > b.limit && x.unprotected(&all[0], now)) {
		x.forget(b, all[0].number())
		all = all[1:]
	}
	for _, s := range all {
		x.enter(b, s)
	}
	x.drop(b)
}
