package preserver

import "container/heap"

// Load takes an outcome as read from the log, in any order and possibly more than once. After the last one call Loaded.
// Nothing else may be called in between, except Hold and Release.
func (x *Index) Load(key Key, o Outcome) {
	if !x.opts.Enabled() {
		return
	}
	b := x.bucket(key)
	if b.limit <= 0 {
		x.drop(b)
		return
	}
	if n := len(b.slots); n > 0 && b.slots[n-1].place >= o.Place {
		b.unsorted = true
	}
	b.slots = append(b.slots, pack(o))
}

// Loaded ends a load: outcomes are put in order, and what count, time and cap no longer allow is forgotten (P-24).
func (x *Index) Loaded(now int64) {
	count := 0
	for _, b := range x.numbered {
		if b != nil {
			b.sort()
			count += b.Len()
		}
	}
	x.byID = make(map[uint64]uint64, min(count, x.opts.Max))
	for _, b := range x.numbered {
		if b != nil {
			x.settle(b, now)
		}
	}
	heap.Init(&x.byExcess)
	for x.total > x.opts.Max {
		x.evict(x.byExcess[0])
	}
}

// settle applies retention to a loaded bucket and enters what stays into the index.
func (x *Index) settle(b *Bucket, now int64) {
	for b.Len() > 0 && (b.front().ended+x.opts.Retention <= now || x.overCount(b, now)) {
		b.pop()
	}
	for i := range b.slots[b.head:] {
		s := &b.slots[b.head+i]
		x.byID[s.least] = uint64(b.number)<<rankBits | (b.base+uint64(i))&rankMask
	}
	x.total += b.Len()
	x.bytes += int64(b.Len()) * b.outcomeCost()
	if b.Len() == 0 && b.live == 0 {
		x.drop(b)
	}
}

// Visit calls visit for every outcome of b that Get shows, newest first, until it returns false.
func (x *Index) Visit(b *Bucket, now int64, visit func(Outcome) bool) {
	for i := len(b.slots) - 1; i >= b.head; i-- {
		s := &b.slots[i]
		if s.ended+x.opts.Retention <= now {
			return
		}
		if len(b.slots)-1-i >= b.limit && s.ended+x.opts.MinTime <= now {
			return
		}
		if !visit(s.outcome()) {
			return
		}
	}
}
