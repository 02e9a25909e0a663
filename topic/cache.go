package topic

import (
	"sort"
	"sync/atomic"

	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// cacheBudget is what the caches of all topics share with what their subscriptions read ahead.
type cacheBudget struct {
	limit int64
	used  atomic.Int64
}

// relieve drops what s has read ahead and nobody takes, if there is too much of it.
func (b *cacheBudget) relieve(s *subscription) {
	if s.ahead.bytes > 0 && b.used.Load() > b.limit {
		s.setAhead(page{})
	}
}

// cache is the newest entries of a topic, without a gap: all there are from from on. The slots of aborted entries stay, empty.
type cache struct {
	budget *cacheBudget
	from   ledger.Position
	slots  []cacheSlot
	head   int // slots before it are evicted
	bytes  int64
}

type cacheSlot struct {
	ledger.Entry
	gone bool
}

// slotOverhead is about what an entry takes beside its payload.
const slotOverhead = 160

func (c *cache) covers(p ledger.Position) bool { return !p.Before(c.from) }

func (c *cache) live() []cacheSlot { return c.slots[c.head:] }

func (c *cache) add(e ledger.Entry) {
	c.slots = append(c.slots, cacheSlot{Entry: e})
	c.grow(int64(len(e.Payload) + slotOverhead))
}

func (c *cache) grow(bytes int64) {
	c.bytes += bytes
	c.budget.used.Add(bytes)
}

func (c *cache) search(p ledger.Position) int {
	live := c.live()
	return c.head + sort.Search(len(live), func(i int) bool { return !live[i].Position.Before(p) })
}

// find returns the first entry at or behind at that lies before limit, or nil. at must be covered.
func (c *cache) find(at, limit ledger.Position) *ledger.Entry {
	for i := c.search(at); i < len(c.slots) && c.slots[i].Position.Before(limit); i++ {
		if !c.slots[i].gone {
			return &c.slots[i].Entry
		}
	}
	return nil
}

// before returns the last entry that lies before p, or nil.
func (c *cache) before(p ledger.Position) *ledger.Entry {
	for i := c.search(p) - 1; i >= c.head; i-- {
		if !c.slots[i].gone {
			return &c.slots[i].Entry
		}
	}
	return nil
}

// abort empties the slots of the block of id that ends at last.
func (c *cache) abort(id txn.ID, last ledger.Position) {
	for i := c.search(last); i >= c.head && i < len(c.slots); i-- {
		slot := &c.slots[i]
		if slot.gone || !slot.InTxn || slot.Txn != id {
			return
		}
		c.grow(-int64(len(slot.Payload)))
		slot.gone, slot.Payload = true, nil
	}
}

// evictBefore forgets everything that lies before p, and more, oldest first, as long as the budget is exceeded.
func (c *cache) evictBefore(p ledger.Position) {
	for c.head < len(c.slots) {
		slot := &c.slots[c.head]
		if !slot.Position.Before(p) && c.budget.used.Load() <= c.budget.limit {
			break
		}
		c.grow(-int64(len(slot.Payload) + slotOverhead))
		c.from = slot.Position.Next()
		*slot = cacheSlot{}
		c.head++
	}
	if c.from.Before(p) {
		c.from = p
	}
	if c.head == len(c.slots) {
		c.slots, c.head = c.slots[:0], 0
		if cap(c.slots) > 1024 {
			c.slots = nil
		}
	} else if c.head > 1024 && c.head > len(c.slots)/2 {
		c.slots = append([]cacheSlot(nil), c.live()...)
		c.head = 0
	}
}

func (c *cache) clear() {
	c.grow(-c.bytes)
	c.slots, c.head = nil, 0
}

// evict keeps what connected consumers have not been given yet.
func (t *Topic) evict() {
	keep := t.end()
	for _, s := range t.subscriptions {
		if len(s.consumers) > 0 && s.read.Before(keep) {
			keep = s.read
		}
	}
	t.cache.evictBefore(keep)
}
