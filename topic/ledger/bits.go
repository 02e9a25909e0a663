package ledger

import "math/bits"

// Bits is a set of indexes of one batch. All sets of one batch have the same length; indexes at and beyond the size of the
// batch are never in it. nil is the empty set.
type Bits []uint64

func words(size int) int { return (size + 63) / 64 }

// BitsBytes is what a set of a batch of size messages takes, in memory and stored.
func BitsBytes(size int) int { return 8 * words(size) }

// AllBits is the set of every index of a batch of size messages.
func AllBits(size int) Bits {
	b := make(Bits, words(size))
	for i := range b {
		b[i] = ^uint64(0)
	}
	return b.cut(size)
}

func (b Bits) cut(size int) Bits {
	if tail := size % 64; tail != 0 && len(b) > 0 {
		b[len(b)-1] &= 1<<tail - 1
	}
	return b
}

// AckedBits reads the ack_set of an acknowledgement: words of 64 bits, bit 1 = not acknowledged. Words that are missing are
// zero, because clients cut zero words off the end. The result is what the request acknowledges.
//
// Source: java.util.BitSet.toLongArray, which fills ack_set.
func AckedBits(ackSet []int64, size int) Bits {
	b := make(Bits, words(size))
	for i := range b {
		if i < len(ackSet) {
			b[i] = ^uint64(ackSet[i])
		} else {
			b[i] = ^uint64(0)
		}
	}
	return b.cut(size)
}

// AckSet is the wire form of the indexes that are still to be delivered.
func (b Bits) AckSet() []int64 {
	set := make([]int64, len(b))
	for i, w := range b {
		set[i] = int64(w)
	}
	return set
}

// Empty reports whether no index is in the set.
func (b Bits) Empty() bool {
	for _, w := range b {
		if w != 0 {
			return false
		}
	}
	return true
}

// Has reports whether index i is in b.
func (b Bits) Has(i int) bool { return i/64 < len(b) && b[i/64]&(1<<(i%64)) != 0 }

// Count is the number of indexes in the set.
func (b Bits) Count() int {
	n := 0
	for _, w := range b {
		n += bits.OnesCount64(w)
	}
	return n
}

// Overlaps reports whether the sets share an index.
func (b Bits) Overlaps(c Bits) bool {
	for i := range min(len(b), len(c)) {
		if b[i]&c[i] != 0 {
			return true
		}
	}
	return false
}

// Or returns a new set with the indexes of both.
func (b Bits) Or(c Bits) Bits {
	out := make(Bits, max(len(b), len(c)))
	copy(out, b)
	for i, w := range c {
		out[i] |= w
	}
	return out
}

// AndNot returns a new set with the indexes of b that are not in c.
func (b Bits) AndNot(c Bits) Bits {
	out := make(Bits, len(b))
	copy(out, b)
	for i := range min(len(b), len(c)) {
		out[i] &^= c[i]
	}
	return out
}

// And returns a new set with the indexes that are in both.
func (b Bits) And(c Bits) Bits {
	out := make(Bits, min(len(b), len(c)))
	for i := range out {
		out[i] = b[i] & c[i]
	}
	return out
}
