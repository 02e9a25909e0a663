package cursor

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
)

// shelf is the keys of one cursor.
type shelf struct {
	frontier []byte
	buckets  map[Bucket][]byte
	partials map[ledger.Position][]byte
}

func newShelf(c *Cursor) *shelf {
	return &shelf{EncodeFrontier(c.Frontier()), make(map[Bucket][]byte), make(map[ledger.Position][]byte)}
}

// apply does what a topic does with changes, and fails if a delete covers a put.
func (s *shelf) apply(t *rapid.T, c *Changes) {
	if c.Reset {
		clear(s.buckets)
		clear(s.partials)
	}
	for b := range s.buckets {
		if c.PassedBuckets && b.before(c.AtBucket()) {
			delete(s.buckets, b)
		}
	}
	for p := range s.partials {
		if c.PassedPartials && p.Before(c.At()) {
			delete(s.partials, p)
		}
	}
	if c.Frontier != nil {
		s.frontier = c.Frontier
	}
	for _, b := range c.PutBuckets {
		if c.PassedBuckets && b.Bucket.before(c.AtBucket()) {
			t.Fatalf("bucket %v is put and deleted", b.Bucket)
		}
		s.buckets[b.Bucket] = b.Value
	}
	for _, p := range c.PutPartials {
		if c.PassedPartials && p.Position.Before(c.At()) {
			t.Fatalf("partial %v is put and deleted", p.Position)
		}
		s.partials[p.Position] = p.Value
	}
	for _, p := range c.DropPartials {
		delete(s.partials, p)
	}
}

func (s *shelf) restore(t *rapid.T) *Cursor {
	c, err := Restore(s.frontier)
	if err != nil {
		t.Fatal(err)
	}
	for b, value := range s.buckets {
		if err := c.RestoreBucket(b, value); err != nil {
			t.Fatal(err)
		}
	}
	for p, value := range s.partials {
		if err := c.RestorePartial(p, value); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// TestCursorAgainstModel acknowledges at random, stores in pieces of few operations, restarts, and compares with a plain set
// of acknowledged entries and indexes. Batches have 3 messages.
func TestCursorAgainstModel(t *testing.T) {
	const size = 3
	rapid.Check(t, func(t *rapid.T) {
		var all []ledger.Position
		for _, l := range []uint64{4, 9} {
			for _, e := range []uint64{0, 1, 2, 3, 1022, 1023, 1024, 1025, 5000} {
				all = append(all, ledger.Position{Ledger: l, Entry: e})
			}
		}
		at := rapid.SampledFrom(all)
		c := New(all[0])
		stored := newShelf(c)
		model := make(map[ledger.Position]ledger.Bits)
		for _, p := range all {
			model[p] = make(ledger.Bits, 1)
		}
		whole := ledger.AllBits(size)
		save := func() {
			for {
				changes := c.Changes(rapid.IntRange(0, 8).Draw(t, "ops"), rapid.SampledFrom([]int{0, 220, 1000, 1 << 20}).Draw(t, "bytes"))
				stored.apply(t, &changes)
				c.Saved(&changes)
				if changes.Complete {
					break
				}
			}
			if left := c.Changes(1<<20, 1<<20); !left.Empty() {
				t.Fatalf("after saving all there is still %+v", left)
			}
		}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			p := at.Draw(t, "position")
			switch rapid.IntRange(0, 6).Draw(t, "step") {
			case 0:
				c.Ack(p)
				model[p] = whole
			case 1:
				several := rapid.SliceOfN(at, 0, 6).Draw(t, "several")
				c.AckAll(several)
				for _, q := range several {
					model[q] = whole
				}
			case 2:
				bits := ledger.Bits{uint64(rapid.IntRange(0, 7).Draw(t, "bits"))}
				c.AckBits(p, bits, size)
				model[p] = model[p].Or(bits)
			case 3:
				c.AckThrough(p)
				for _, q := range all {
					if !p.Before(q) {
						model[q] = whole
					}
				}
			case 4:
				save()
			case 5:
				save()
				c = stored.restore(t)
			case 6:
				c.Reset(p)
				for _, q := range all {
					model[q] = make(ledger.Bits, 1)
					if q.Before(p) {
						model[q] = whole
					}
				}
			}
			if want := len(c.partial) * ledger.BitsBytes(size); c.PartBytes() != want {
				t.Fatalf("the sets of %d batches take %d bytes, want %d", len(c.partial), c.PartBytes(), want)
			}
			for _, q := range all {
				done := model[q].Count() == size
				if c.Done(q) != done {
					t.Fatalf("%v: done %v, want %v (frontier %v)", q, c.Done(q), done, c.Frontier())
				}
				if acked := c.Acked(q); !done && acked.Count() != model[q].Count() {
					t.Fatalf("%v: acknowledged %b, want %b", q, acked, model[q])
				}
			}
		}
	})
}

func TestFrontierPassesWhatIsVoid(t *testing.T) {
	at := func(l, e uint64) ledger.Position { return ledger.Position{Ledger: l, Entry: e} }
	c := New(at(1, 0))
	c.Ack(at(1, 0))
	c.Ack(at(7, 0))
	if c.Frontier() != at(1, 1) {
		t.Fatalf("frontier %v, want 1:1", c.Frontier())
	}
	c.Void(ledger.Range{From: at(1, 1), To: at(7, 0)})
	if c.Frontier() != at(7, 1) {
		t.Fatalf("frontier %v, want 7:1", c.Frontier())
	}
	if got := c.SkipDone(at(1, 0)); got != at(7, 1) {
		t.Fatalf("first that is not done %v, want 7:1", got)
	}
}

// TestVoidWhileSaving moves the frontier between the write and its confirmation: it stays to be written.
func TestVoidWhileSaving(t *testing.T) {
	c := New(ledger.Position{Ledger: 1})
	c.Ack(ledger.Position{Ledger: 1})
	changes := c.Changes(100, 1<<20)
	c.Void(ledger.Range{From: ledger.Position{Ledger: 1, Entry: 1}, To: ledger.Position{Ledger: 2}})
	c.Saved(&changes)
	if left := c.Changes(100, 1<<20); left.Frontier == nil {
		t.Fatal("the new frontier is forgotten")
	}
}

// TestHolesAreNotRewritten: acknowledging every other entry of 20,000 writes a bounded value each time.
func TestHolesAreNotRewritten(t *testing.T) {
	c := New(ledger.Position{Ledger: 1})
	for e := uint64(1); e < 20000; e += 2 {
		c.Ack(ledger.Position{Ledger: 1, Entry: e})
		changes := c.Changes(100, 1<<20)
		if n := len(changes.PutBuckets); n != 1 || len(changes.PutBuckets[0].Value) > BucketEntries/8 || changes.Frontier != nil {
			t.Fatalf("entry %d: %d buckets, frontier %v", e, n, changes.Frontier)
		}
		c.Saved(&changes)
	}
	if c.Holes() != 10000 {
		t.Fatalf("%d holes, want 10000", c.Holes())
	}
}

func FuzzRestorePartial(f *testing.F) {
	f.Add(Partial{Size: 3, Acked: ledger.Bits{0b101}}.encode())
	f.Add(Partial{Size: 130, Acked: ledger.AllBits(130)}.encode())
	f.Fuzz(func(t *testing.T, value []byte) {
		c := New(ledger.Position{})
		if c.RestorePartial(ledger.Position{Ledger: 1}, value) != nil {
			return
		}
		p := c.partial[ledger.Position{Ledger: 1}]
		if p.Acked.Count() > p.Size {
			t.Fatalf("%d of %d messages", p.Acked.Count(), p.Size)
		}
	})
}

// TestAckOfMany: a command that names very many messages, in whatever order and between others, does not end within the time
// of a test if it costs a pass over all for each.
func TestAckOfMany(t *testing.T) {
	const many = 1 << 20
	c := New(ledger.Position{Ledger: 1})
	odd, even := make([]ledger.Position, 0, many), make([]ledger.Position, 0, many)
	for e := uint64(2 * many); e > 0; e -= 2 {
		odd, even = append(odd, ledger.Position{Ledger: 1, Entry: e - 1}), append(even, ledger.Position{Ledger: 1, Entry: e - 2})
	}
	c.AckAll(odd)
	if c.Holes() != many {
		t.Fatalf("%d holes, want %d", c.Holes(), many)
	}
	c.AckAll(even)
	if end := (ledger.Position{Ledger: 1, Entry: 2 * many}); c.Frontier() != end || c.Holes() != 0 {
		t.Fatalf("frontier %v with %d holes, want %v and none", c.Frontier(), c.Holes(), end)
	}
}
