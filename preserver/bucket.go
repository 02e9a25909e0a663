package preserver

import "github.com/pulsar-tc/pulsar-tc/txn"

// Key names a bucket. An empty Name is the bucket of the owner's transactions without a client name.
type Key struct {
	Owner txn.Owner
	Name  string
}

// Bucket holds the outcomes of one Key, oldest first. Live transactions point at their bucket, so owner and name are stored
// once however many transactions they have.
type Bucket struct {
	key    Key
	number uint32
	limit  int // outcomes that count keeps
	live   int // live transactions that will end here
	heapAt int
	base   uint64   // rank of the oldest
	chunks []*chunk // chunks[0][head] is the oldest
	head   int
	length int
	loaded []slot // between Load and Loaded: what was read, in any order

	forgottenAt int    // place in Index.forgotten, from 1; 0: none
	changed     uint64 // place of the last change that was no outcome
}

// chunk is so small that a name with few outcomes costs little, and so large that its pointer does not count.
type chunk [chunkSlots]slot

const chunkSlots = 16

// Key returns the owner and client name of the bucket.
func (b *Bucket) Key() Key { return b.key }

// Len is the number of outcomes held, including those that Get no longer shows.
func (b *Bucket) Len() int { return b.length }

func (b *Bucket) front() *slot { return &b.chunks[0][b.head] }

// slot returns the i-th oldest, 0 <= i < Len.
func (b *Bucket) slot(i int) *slot {
	i += b.head
	return &b.chunks[i/chunkSlots][i%chunkSlots]
}

// at returns the slot with the given rank, or nil.
func (b *Bucket) at(rank uint64) *slot {
	i := rank - b.base
	if i >= uint64(b.length) {
		return nil
	}
	return b.slot(int(i))
}

// excess is by how much the bucket is over its limit; negative below it.
func (b *Bucket) excess() int { return b.length - b.limit }

func (b *Bucket) push(s slot) (rank uint64) {
	end := b.head + b.length
	if end == len(b.chunks)*chunkSlots {
		b.chunks = append(b.chunks, new(chunk))
	}
	b.length++
	*b.slot(b.length - 1) = s
	return b.base + uint64(b.length-1)
}

// pop removes the oldest outcome, and its chunk with the last of it.
func (b *Bucket) pop() slot {
	s := *b.front()
	b.head++
	b.base++
	b.length--
	if b.head == chunkSlots {
		b.chunks[0] = nil
		b.chunks = b.chunks[1:]
		b.head = 0
	}
	if b.length == 0 {
		b.chunks, b.head = nil, 0
	}
	return s
}
