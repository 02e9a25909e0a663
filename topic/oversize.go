package topic

import (
	"errors"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// refusable is an item that can be answered with a refusal when it is too large to be written.
type refusable interface {
	item
	// tooLarge makes err the reason of the answer; the item is prepared again.
	tooLarge(err error)
}

// refusedForSize reports whether the store refused a write before it looked at it. So nothing of it was written.
func refusedForSize(err error) bool {
	return errors.Is(err, rpctypes.ErrRequestTooLarge) || errors.Is(err, rpctypes.ErrTooManyOps)
}

// divide takes back a group that the store refused for its size. Its items are written one at a time, and one that is too large
// by itself is refused.
func (t *Topic) divide(g *group, err error) {
	g.undo()
	t.queue.pushFront(g.items)
	if !g.single && len(g.items) > 0 {
		t.log.Warn().Err(err).Int("commands", len(g.items)).Msg("a write is too large for the store, its commands are written one at a time")
		t.singles = len(g.items)
		return
	}
	if g.single {
		if it, can := g.items[0].(refusable); can {
			t.log.Warn().Err(err).Msg("a command is too large for the store and refused")
			it.tooLarge(err)
			return
		}
	}
	t.log.Error().Err(err).Msg("a write is too large for the store, topic closes")
	t.shut(ErrPersistence)
}

// gatherOne makes a group of the first item alone while a divided group is being written, otherwise it returns nil.
func (t *Topic) gatherOne() *group {
	if t.singles == 0 {
		return nil
	}
	t.singles--
	g := newGroup(t)
	g.single = true
	if t.queue.empty() || !t.queue.peek().prepare(g) {
		t.singles = 0
		g.release()
		return nil
	}
	g.items = append(g.items, t.queue.peek())
	t.queue.pop()
	return g
}
