package preserver

import (
	"container/heap"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

// Options say what is kept. All times are milliseconds.
type Options struct {
	// Count is how many outcomes of one client name stay (transactionMetaPersistCount). 0 turns the whole feature off.
	Count int
	// UnnamedCount is the same for the transactions of one owner that have no client name.
	UnnamedCount int
	// Retention is the age at which an outcome is forgotten.
	Retention int64
	// MinTime protects younger outcomes from Count. 0 turns the protection off.
	MinTime int64
	// Max is the cap on all outcomes together; it ignores MinTime.
	Max int
	// NamesPerOwner bounds the client names of one owner that have outcomes or live transactions (P-26).
	NamesPerOwner int
}

// Enabled reports whether anything is kept at all.
func (o Options) Enabled() bool { return o.Count > 0 }

// Index holds the outcomes of one coordinator. One goroutine owns it (P-9).
type Index struct {
	opts     Options
	byID     map[uint64]uint64 // least half -> bucket number << rankBits | rank
	byKey    map[Key]*Bucket
	numbered []*Bucket // by number; nil where free
	free     []uint32
	byExcess excessHeap
	names    map[txn.Owner]int // named buckets
	named    int               // of all owners
	total    int
	bytes    int64
	expireAt int // bucket number at which the expiry pass goes on

	forgotten []forgotten       // since the last TakeForgotten
	cuts      map[Key]Forgotten // between Load and Loaded: what was forgotten before
}

const (
	rankBits = 40
	rankMask = 1<<rankBits - 1
	// outcomeBytes is what one outcome costs in the log besides the names.
	outcomeBytes = 40
)

// New returns an empty index.
func New(opts Options) *Index {
	return &Index{
		opts:  opts,
		byID:  map[uint64]uint64{},
		byKey: map[Key]*Bucket{},
		names: map[txn.Owner]int{},
	}
}

// Len is the number of outcomes held.
func (x *Index) Len() int { return x.total }

// Names is the number of client names that have a bucket.
func (x *Index) Names() int { return x.named }

// Bytes estimates what the outcomes held cost in the log.
func (x *Index) Bytes() int64 { return x.bytes }

func (b *Bucket) outcomeCost() int64 {
	return outcomeBytes + int64(len(b.key.Name)+len(b.key.Owner.Role))
}

// Admits reports whether a transaction of key may be opened: a new client name of an owner that already has NamesPerOwner is
// refused (P-26).
func (x *Index) Admits(key Key) bool {
	if key.Name == "" || x.byKey[key] != nil {
		return true
	}
	return x.opts.NamesPerOwner <= 0 || x.names[key.Owner] < x.opts.NamesPerOwner
}

// Hold returns the bucket that a live transaction of key will end in and keeps it until Release.
func (x *Index) Hold(key Key) *Bucket {
	b := x.bucket(key)
	b.live++
	return b
}

// Release ends what Hold began.
func (x *Index) Release(b *Bucket) {
	b.live--
	x.drop(b)
}

func (x *Index) bucket(key Key) *Bucket {
	if b := x.byKey[key]; b != nil {
		return b
	}
	b := &Bucket{key: key, limit: x.opts.Count}
	if key.Name == "" {
		b.limit = x.opts.UnnamedCount
	} else {
		x.names[key.Owner]++
		x.named++
	}
	if n := len(x.free); n > 0 {
		b.number = x.free[n-1]
		x.free = x.free[:n-1]
		x.numbered[b.number] = b
	} else {
		b.number = uint32(len(x.numbered))
		x.numbered = append(x.numbered, b)
	}
	x.byKey[key] = b
	heap.Push(&x.byExcess, b)
	return b
}

// drop forgets a bucket that nothing needs.
func (x *Index) drop(b *Bucket) {
	if b.live > 0 || b.Len() > 0 || len(b.loaded) > 0 {
		return
	}
	heap.Remove(&x.byExcess, b.heapAt)
	delete(x.byKey, b.key)
	x.numbered[b.number] = nil
	x.free = append(x.free, b.number)
	if b.key.Name == "" {
		return
	}
	x.named--
	if x.names[b.key.Owner]--; x.names[b.key.Owner] == 0 {
		delete(x.names, b.key.Owner)
	}
}

// Put keeps o in b, which the caller holds, and evicts what count and cap no longer allow. now is o's end or later. It
// returns false if b keeps nothing.
func (x *Index) Put(b *Bucket, o Outcome, now int64) bool {
	if !x.Keeps(b) {
		return false
	}
	x.enter(b, pack(o))
	heap.Fix(&x.byExcess, b.heapAt)
	for i := 0; i < 2 && x.overCount(b, now); i++ {
		x.evict(b)
	}
	for i := 0; i < 2 && x.total > x.opts.Max; i++ {
		x.evict(x.byExcess[0])
	}
	return true
}

// Keeps reports whether b keeps any outcome.
func (x *Index) Keeps(b *Bucket) bool { return x.opts.Enabled() && b.limit > 0 }

func (x *Index) enter(b *Bucket, s slot) {
	x.byID[s.least] = uint64(b.number)<<rankBits | b.push(s)&rankMask
	x.total++
	x.bytes += b.outcomeCost()
}

// tooOld reports whether the retention of s has passed.
func (x *Index) tooOld(s *slot, now int64) bool { return s.ended+x.opts.Retention <= now }

// unprotected reports whether s is old enough to be forgotten by count.
func (x *Index) unprotected(s *slot, now int64) bool { return s.ended+x.opts.MinTime <= now }

// overCount reports whether the oldest of b is beyond its count and not protected by its age.
func (x *Index) overCount(b *Bucket, now int64) bool {
	return b.excess() > 0 && x.unprotected(b.front(), now)
}

func (x *Index) evict(b *Bucket) {
	s := b.pop()
	delete(x.byID, s.least)
	x.total--
	x.bytes -= b.outcomeCost()
	x.forget(b, s.number())
	heap.Fix(&x.byExcess, b.heapAt)
	x.drop(b)
}

// Get returns the outcome of a transaction and whose it is, unless count or time have ended it by now. One that they have
// ended is forgotten for good, with all before it: whatever the clock and the settings do later, the answer stays.
func (x *Index) Get(least uint64, now int64) (Outcome, Key, bool) {
	b, s, rank := x.find(least)
	if s == nil {
		return Outcome{}, Key{}, false
	}
	newer := b.base + uint64(b.Len()) - rank - 1
	if x.tooOld(s, now) || newer >= uint64(b.limit) && x.unprotected(s, now) {
		for b.Len() > 0 && b.base <= rank {
			x.evict(b)
		}
		return Outcome{}, Key{}, false
	}
	return s.outcome(), b.key, true
}

// Held returns the outcome of a transaction as long as the index holds it at all: what the log must still store.
func (x *Index) Held(least uint64) (Outcome, Key, bool) {
	b, s, _ := x.find(least)
	if s == nil {
		return Outcome{}, Key{}, false
	}
	return s.outcome(), b.key, true
}

func (x *Index) find(least uint64) (*Bucket, *slot, uint64) {
	ref, ok := x.byID[least]
	if !ok {
		return nil, nil, 0
	}
	b, rank := x.numbered[ref>>rankBits], ref&rankMask
	return b, b.at(rank), rank
}

// Expire forgets outcomes whose time or count has passed, at most budget of them, going round all buckets over repeated
// calls. It returns how many it forgot and whether it came to the end of its round.
func (x *Index) Expire(now int64, budget int) (forgotten int, done bool) {
	for ; x.expireAt < len(x.numbered); x.expireAt++ {
		b := x.numbered[x.expireAt]
		if b == nil {
			continue
		}
		for b.Len() > 0 && (x.tooOld(b.front(), now) || x.overCount(b, now)) {
			if forgotten == budget {
				return forgotten, false
			}
			x.evict(b)
			forgotten++
		}
	}
	x.expireAt = 0
	return forgotten, true
}

// excessHeap orders buckets by who loses an outcome first at the cap.
type excessHeap []*Bucket

func (h excessHeap) Len() int { return len(h) }

func (h excessHeap) Less(i, j int) bool {
	a, b := h[i], h[j]
	if ea, eb := max(a.excess(), 0), max(b.excess(), 0); ea != eb {
		return ea > eb
	}
	if a.Len() != b.Len() || a.Len() == 0 {
		return a.Len() > b.Len()
	}
	return a.front().place < b.front().place
}

func (h excessHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].heapAt, h[j].heapAt = i, j
}

func (h *excessHeap) Push(v any) {
	b := v.(*Bucket)
	b.heapAt = len(*h)
	*h = append(*h, b)
}

func (h *excessHeap) Pop() any {
	old := *h
	b := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return b
}
