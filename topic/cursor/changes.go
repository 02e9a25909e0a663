package cursor

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
)

// BucketEntries is the number of entries that share a stored bitmap.
const BucketEntries = 1024

// Bucket names the stored bitmap of entries Index*BucketEntries and on of a ledger. It is ordered like a position.
type Bucket struct{ Ledger, Index uint64 }

func bucketOf(p ledger.Position) Bucket { return Bucket{p.Ledger, p.Entry / BucketEntries} }

func (b Bucket) first() ledger.Position {
	return ledger.Position{Ledger: b.Ledger, Entry: b.Index * BucketEntries}
}

func (b Bucket) before(c Bucket) bool {
	return b.Ledger < c.Ledger || b.Ledger == c.Ledger && b.Index < c.Index
}

// changed is what differs from the stored form since the last Saved.
type changed struct {
	frontier bool
	reset    bool // everything stored but the frontier goes
	bucket   map[Bucket]struct{}
	partial  map[ledger.Position]struct{}
}

func newChanged() changed {
	return changed{bucket: make(map[Bucket]struct{}), partial: make(map[ledger.Position]struct{})}
}

// stored tells which keys exist.
type stored struct {
	bucket  map[Bucket]struct{}
	partial map[ledger.Position]struct{}
}

func newStored() stored {
	return stored{bucket: make(map[Bucket]struct{}), partial: make(map[ledger.Position]struct{})}
}

// Changes is what has to be written so that the stored form equals the cursor. Deletes never cover a put.
type Changes struct {
	Reset    bool   // delete all buckets and partials first
	Frontier []byte // nil: unchanged
	// PassedBuckets and PassedPartials tell that keys before the frontier's bucket and before the frontier are to be deleted.
	PassedBuckets  bool
	PassedPartials bool
	PutBuckets     []BucketValue
	PutPartials    []PartialValue
	DropPartials   []ledger.Position
	Complete       bool // nothing is left to write behind this

	at ledger.Position // the frontier that the changes were made for
}

// At is the frontier that the changes were made for: PassedBuckets and PassedPartials speak of it.
func (c *Changes) At() ledger.Position { return c.at }

// AtBucket is the bucket in which At lies.
func (c *Changes) AtBucket() Bucket { return bucketOf(c.at) }

// BucketValue is one bucket to store.
type BucketValue struct {
	Bucket Bucket
	Value  []byte
}

// PartialValue is one partly acknowledged batch to store.
type PartialValue struct {
	Position ledger.Position
	Value    []byte
}

// Empty reports whether there is nothing to write.
func (c *Changes) Empty() bool {
	return !c.Reset && c.Frontier == nil && len(c.PutBuckets) == 0 && len(c.PutPartials) == 0 && len(c.DropPartials) == 0
}

// Ops is the number of store operations that the changes need.
func (c *Changes) Ops() int {
	n := len(c.PutBuckets) + len(c.PutPartials) + len(c.DropPartials)
	if c.Reset {
		n += 2
	}
	if c.Frontier != nil {
		n++
	}
	if c.PassedBuckets {
		n++
	}
	if c.PassedPartials {
		n++
	}
	return n
}

// leastOps is what the frontier, a reset and the deletes behind the frontier need at most.
const leastOps = 5

// PutOverhead is about what a put takes beside its value, in bytes.
const PutOverhead = 200

// Changes returns what to write, in at most maxOps operations or 5, if that is more. Puts take at most maxBytes of them; those
// behind a reset are left to the next write. It changes nothing: call Saved when it is durable, or Changes again.
func (c *Cursor) Changes(maxOps, maxBytes int) Changes {
	out := Changes{Reset: c.changed.reset, at: c.frontier}
	if c.changed.frontier {
		out.Frontier = EncodeFrontier(c.frontier)
	}
	at := out.AtBucket()
	if !out.Reset && c.changed.frontier {
		for b := range c.stored.bucket {
			out.PassedBuckets = out.PassedBuckets || b.before(at)
		}
		for p := range c.stored.partial {
			out.PassedPartials = out.PassedPartials || p.Before(c.frontier)
		}
	}
	for b := range c.changed.bucket {
		if b.before(at) {
			continue
		}
		if value := c.bitmap(b); len(value) > 0 {
			out.PutBuckets = append(out.PutBuckets, BucketValue{b, value})
		}
	}
	for p := range c.changed.partial {
		if p.Before(c.frontier) {
			continue
		}
		if part, found := c.partial[p]; found {
			out.PutPartials = append(out.PutPartials, PartialValue{p, part.encode()})
		} else if _, found := c.stored.partial[p]; found && !out.Reset {
			out.DropPartials = append(out.DropPartials, p)
		}
	}
	slices.SortFunc(out.PutBuckets, func(a, b BucketValue) int { return a.Bucket.first().Compare(b.Bucket.first()) })
	slices.SortFunc(out.PutPartials, func(a, b PartialValue) int { return a.Position.Compare(b.Position) })
	slices.SortFunc(out.DropPartials, ledger.Position.Compare)
	if out.Reset {
		maxOps = 0 // the deletes would cover the puts
	}
	out.cut(max(0, maxOps-leastOps), maxBytes)
	return out
}

// Bytes is what the puts take.
func (c *Changes) Bytes() int {
	n := 0
	for _, b := range c.PutBuckets {
		n += PutOverhead + len(b.Value)
	}
	for _, p := range c.PutPartials {
		n += PutOverhead + len(p.Value)
	}
	return n
}

func (c *Changes) cut(maxOps, maxBytes int) {
	all := len(c.PutBuckets) + len(c.PutPartials) + len(c.DropPartials)
	fits := func(value []byte) bool {
		if maxOps == 0 || maxBytes < PutOverhead+len(value) {
			return false
		}
		maxOps, maxBytes = maxOps-1, maxBytes-PutOverhead-len(value)
		return true
	}
	buckets, partials := 0, 0
	for buckets < len(c.PutBuckets) && fits(c.PutBuckets[buckets].Value) {
		buckets++
	}
	for partials < len(c.PutPartials) && fits(c.PutPartials[partials].Value) {
		partials++
	}
	c.PutBuckets, c.PutPartials = c.PutBuckets[:buckets], c.PutPartials[:partials]
	c.DropPartials = c.DropPartials[:min(maxOps, len(c.DropPartials))]
	c.Complete = buckets+partials+len(c.DropPartials) == all
}

// Saved says that changes, the result of the last Changes, are durable. Nothing but Void may have been called in between.
func (c *Cursor) Saved(changes *Changes) {
	if changes.Reset {
		c.stored = newStored()
	}
	if changes.PassedBuckets {
		for b := range c.stored.bucket {
			if b.before(changes.AtBucket()) {
				delete(c.stored.bucket, b)
			}
		}
	}
	if changes.PassedPartials {
		for p := range c.stored.partial {
			if p.Before(changes.at) {
				delete(c.stored.partial, p)
			}
		}
	}
	for _, b := range changes.PutBuckets {
		c.stored.bucket[b.Bucket] = struct{}{}
		delete(c.changed.bucket, b.Bucket)
	}
	for _, p := range changes.PutPartials {
		c.stored.partial[p.Position] = struct{}{}
		delete(c.changed.partial, p.Position)
	}
	for _, p := range changes.DropPartials {
		delete(c.stored.partial, p)
		delete(c.changed.partial, p)
	}
	c.changed.frontier, c.changed.reset = c.frontier != changes.at, false
	if changes.Complete {
		clear(c.changed.bucket)
		clear(c.changed.partial)
	}
}

func (c *Cursor) bitmap(b Bucket) []byte {
	var bits [BucketEntries / 8]byte
	last := 0
	from := b.first()
	to := ledger.Position{Ledger: from.Ledger, Entry: from.Entry + BucketEntries}
	for _, r := range c.done.Between(from, to) {
		first, end := uint64(0), uint64(BucketEntries)
		if from.Before(r.From) {
			first = r.From.Entry - from.Entry
		}
		if r.To.Before(to) {
			end = r.To.Entry - from.Entry
		}
		for i := first; i < end; i++ {
			bits[i/8] |= 1 << (i % 8)
		}
		last = int((end + 7) / 8)
	}
	return slices.Clone(bits[:last])
}

// EncodeFrontier returns the stored form of a frontier.
func EncodeFrontier(p ledger.Position) []byte {
	out := append(make([]byte, 0, 17), 1)
	out = binary.BigEndian.AppendUint64(out, p.Ledger)
	return binary.BigEndian.AppendUint64(out, p.Entry)
}

// Restore reads a stored frontier.
func Restore(value []byte) (*Cursor, error) {
	if len(value) != 17 || value[0] != 1 {
		return nil, fmt.Errorf("cursor frontier of %d bytes", len(value))
	}
	return New(ledger.Position{Ledger: binary.BigEndian.Uint64(value[1:]), Entry: binary.BigEndian.Uint64(value[9:])}), nil
}

// RestoreBucket adds a stored bucket to a cursor whose frontier was just restored.
func (c *Cursor) RestoreBucket(b Bucket, value []byte) error {
	if len(value) > BucketEntries/8 || b.Index > ^uint64(0)/BucketEntries-1 {
		return errors.New("cursor bucket is too large")
	}
	c.stored.bucket[b] = struct{}{}
	first := b.first()
	for i := range uint64(len(value) * 8) {
		if value[i/8]&(1<<(i%8)) != 0 {
			c.Void(ledger.One(ledger.Position{Ledger: first.Ledger, Entry: first.Entry + i}))
		}
	}
	c.changed.frontier = false
	return nil
}

// RestorePartial adds a stored partial to a cursor whose frontier and buckets were just restored.
func (c *Cursor) RestorePartial(p ledger.Position, value []byte) error {
	if len(value) < 2 || value[0] != 1 {
		return errors.New("partial acknowledgement: unknown version")
	}
	size, n := binary.Uvarint(value[1:])
	if n <= 0 || size == 0 || size > 8*uint64(len(value)) || len(value) != 1+n+(int(size)+63)/64*8 {
		return fmt.Errorf("partial acknowledgement of %d bytes", len(value))
	}
	c.stored.partial[p] = struct{}{}
	if c.Done(p) {
		return nil
	}
	acked := make(ledger.Bits, (size+63)/64)
	for i := range acked {
		acked[i] = binary.LittleEndian.Uint64(value[1+n+8*i:])
	}
	c.setPartial(p, Partial{Size: int(size), Acked: acked.And(ledger.AllBits(int(size)))})
	return nil
}

func (p Partial) encode() []byte {
	out := append(make([]byte, 0, 1+binary.MaxVarintLen32+8*len(p.Acked)), 1)
	out = binary.AppendUvarint(out, uint64(p.Size))
	for _, w := range p.Acked {
		out = binary.LittleEndian.AppendUint64(out, w)
	}
	return out
}
