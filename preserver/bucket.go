package preserver

import (
	"slices"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

// Key names a bucket. An empty Name is the bucket of the owner's transactions without a client name.
type Key struct {
	Owner txn.Owner
	Name  string
}

// Bucket holds the outcomes of one Key, oldest first. Live transactions point at their bucket, so owner and name are stored
// once however many transactions they have.
type Bucket struct {
	key      Key
	number   uint32
	limit    int // outcomes that count keeps
	live     int // live transactions that will end here
	heapAt   int
	base     uint64 // rank of slots[head]
	head     int
	slots    []slot
	unsorted bool // only while loading
}

// Key returns the owner and client name of the bucket.
func (b *Bucket) Key() Key { return b.key }

// Len is the number of outcomes held, including those that Get no longer shows.
func (b *Bucket) Len() int { return len(b.slots) - b.head }

func (b *Bucket) front() *slot { return &b.slots[b.head] }

// at returns the slot with the given rank, or nil.
func (b *Bucket) at(rank uint64) *slot {
	i := rank - b.base
	if i >= uint64(b.Len()) {
		return nil
	}
	return &b.slots[b.head+int(i)]
}

// excess is by how much the bucket is over its limit; negative below it.
func (b *Bucket) excess() int { return b.Len() - b.limit }

func (b *Bucket) push(s slot) (rank uint64) {
	b.slots = append(b.slots, s)
	return b.base + uint64(b.Len()-1)
}

// pop removes the oldest outcome and gives memory back when more than half of the slots are free.
func (b *Bucket) pop() slot {
	s := b.slots[b.head]
	b.head++
	b.base++
	if free := b.head; free >= 64 && free > b.Len() {
		b.slots = slices.Clone(b.slots[b.head:])
		b.head = 0
	}
	if b.Len() == 0 {
		b.slots, b.head = nil, 0
	}
	return s
}

// sort puts loaded outcomes into order and drops copies of the same transaction.
func (b *Bucket) sort() {
	if !b.unsorted {
		return
	}
	b.unsorted = false
	slices.SortFunc(b.slots, func(x, y slot) int {
		switch {
		case x.place < y.place:
			return -1
		case x.place > y.place:
			return 1
		}
		return 0
	})
	b.slots = slices.CompactFunc(b.slots, func(x, y slot) bool { return x.place == y.place })
}
