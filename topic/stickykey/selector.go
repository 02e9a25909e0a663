package stickykey

import "errors"

// Member stands for a consumer. The caller numbers them.
type Member uint64

// Range is the hashes from Start to End, both included.
type Range struct{ Start, End int32 }

// Selector tells the member of a hash.
type Selector interface {
	// Add takes a member in, once. Name and ranges are those of its consumer; only Ring looks at the name, and only Fixed at
	// the ranges. Errors: what a consumer that asks for ranges did wrong; then nothing is changed.
	Add(m Member, name string, ranges []Range) error
	// Remove takes a member out; one that is not there makes no difference.
	Remove(m Member)
	// Select returns the member of a hash, which is 1 to Size-1.
	Select(hash int) (m Member, found bool)
}

// Errors of Fixed.Add. Source: HashRangeExclusiveStickyKeyConsumerSelector.validateKeySharedMeta.
var (
	ErrNoRanges = errors.New("ranges for KeyShared policy must not be empty")
	ErrBackward = errors.New("fixed hash range start > end")
	ErrOutside  = errors.New("fixed hash range is not within 0 to 65535")
	ErrConflict = errors.New("range conflict with consumer")
)
