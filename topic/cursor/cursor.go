package cursor

import "github.com/pulsar-tc/pulsar-tc/topic/ledger"

// Partial is a batch of which some messages are acknowledged, but not all.
type Partial struct {
	Size  int // messages in the batch
	Acked ledger.Bits
}

// Cursor is the acknowledged part of a topic, as one subscription has it. Use New or Restore.
type Cursor struct {
	frontier ledger.Position
	done     ledger.Set // behind the frontier only
	partial  map[ledger.Position]Partial
	// partBytes is what the sets in partial take.
	partBytes int

	changed changed
	stored  stored
}

// New returns a cursor to which everything before start is done.
func New(start ledger.Position) *Cursor {
	return &Cursor{
		frontier: start,
		partial:  make(map[ledger.Position]Partial),
		changed:  newChanged(),
		stored:   newStored(),
	}
}

// Frontier is the first position that is not done.
func (c *Cursor) Frontier() ledger.Position { return c.frontier }

// Holes is the number of separate done ranges behind the frontier.
func (c *Cursor) Holes() int { return c.done.Len() }

// Ranges are the done ranges behind the frontier, in order. The cursor keeps them: they are not to be changed.
func (c *Cursor) Ranges() []ledger.Range { return c.done.Ranges() }

// Done reports whether all of p is done.
func (c *Cursor) Done(p ledger.Position) bool {
	return p.Before(c.frontier) || c.done.Contains(p)
}

// Passed reports whether p lies before the frontier.
func (c *Cursor) Passed(p ledger.Position) bool { return p.Before(c.frontier) }

// Acked returns the acknowledged indexes of the batch at p: nil if there are none, or all of p is done.
func (c *Cursor) Acked(p ledger.Position) ledger.Bits { return c.partial[p].Acked }

// PartBytes is what the sets of acknowledged indexes take in memory, and about what they take stored.
func (c *Cursor) PartBytes() int { return c.partBytes }

// setPartial notes what is acknowledged of the batch at p.
func (c *Cursor) setPartial(p ledger.Position, part Partial) {
	c.dropPartial(p)
	c.partial[p] = part
	c.partBytes += ledger.BitsBytes(part.Size)
}

func (c *Cursor) dropPartial(p ledger.Position) {
	if part, found := c.partial[p]; found {
		c.partBytes -= ledger.BitsBytes(part.Size)
		delete(c.partial, p)
	}
}

// SkipDone returns the first position at or behind p that is not done.
func (c *Cursor) SkipDone(p ledger.Position) ledger.Position {
	if p.Before(c.frontier) {
		p = c.frontier
	}
	if r, found := c.done.Around(p); found {
		return r.To
	}
	return p
}

// Ack marks all of p as done.
func (c *Cursor) Ack(p ledger.Position) {
	if c.Done(p) {
		return
	}
	c.complete(p)
	c.add(ledger.One(p))
}

// AckAll marks all of each of ps as done. It costs one pass over what is done, however many they are.
func (c *Cursor) AckAll(ps []ledger.Position) {
	ranges := make([]ledger.Range, 0, len(ps))
	for _, p := range ps {
		if !c.Done(p) {
			c.complete(p)
			ranges = append(ranges, ledger.One(p))
		}
	}
	if len(ranges) > 0 {
		c.done.AddAll(ranges)
		c.advance()
	}
}

// complete notes that p, of which a part may be acknowledged, is done from now on.
func (c *Cursor) complete(p ledger.Position) {
	if _, found := c.stored.partial[p]; found {
		c.changed.partial[p] = struct{}{}
	}
	c.dropPartial(p)
	c.changed.bucket[bucketOf(p)] = struct{}{}
}

// AckBits marks indexes of the batch of size messages at p as done.
func (c *Cursor) AckBits(p ledger.Position, acked ledger.Bits, size int) {
	if c.Done(p) || acked.Empty() {
		return
	}
	acked = acked.Or(c.partial[p].Acked)
	if acked.Count() >= size {
		c.Ack(p)
		return
	}
	c.setPartial(p, Partial{Size: size, Acked: acked})
	c.changed.partial[p] = struct{}{}
}

// AckThrough marks everything up to and including p as done.
func (c *Cursor) AckThrough(p ledger.Position) { c.AckBefore(p.Next()) }

// AckBefore marks everything before p as done.
func (c *Cursor) AckBefore(p ledger.Position) {
	if c.frontier.Before(p) {
		c.add(ledger.Range{From: c.frontier, To: p})
	}
}

// Void says that there is and will be no entry in r. It is not stored: whoever reads the topic again finds it again.
func (c *Cursor) Void(r ledger.Range) {
	if r.From.Before(c.frontier) {
		r.From = c.frontier
	}
	c.add(r)
}

// Reset makes the cursor one to which everything before p is done and nothing behind it.
func (c *Cursor) Reset(p ledger.Position) {
	c.frontier = p
	c.done.Clear()
	clear(c.partial)
	c.partBytes = 0
	c.changed = newChanged()
	c.changed.frontier, c.changed.reset = true, true
}

// Forget forgets what was changed since the last Saved. For a cursor that is not stored.
func (c *Cursor) Forget() { c.changed = newChanged() }

func (c *Cursor) add(r ledger.Range) {
	if r.Empty() {
		return
	}
	c.done.Add(r)
	c.advance()
}

// advance moves the frontier over what is done right behind it.
func (c *Cursor) advance() {
	first, _ := c.done.First()
	if c.frontier.Before(first.From) {
		return
	}
	from := c.frontier
	c.frontier = first.To
	c.done.Remove(first)
	c.changed.frontier = true
	c.passPartials(from)
}

// passPartials forgets the partials that the frontier passed on its way from from: by position, where that is less to do than
// to look at all of them.
func (c *Cursor) passPartials(from ledger.Position) {
	if from.Ledger == c.frontier.Ledger && c.frontier.Entry-from.Entry < uint64(len(c.partial)) {
		for ; from.Before(c.frontier); from = from.Next() {
			c.dropPartial(from)
		}
		return
	}
	for p := range c.partial {
		if p.Before(c.frontier) {
			c.dropPartial(p)
		}
	}
}
