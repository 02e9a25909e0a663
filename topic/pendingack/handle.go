package pendingack

import (
	"fmt"
	"slices"

	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// Hold is one acknowledged entry, or indexes of one.
type Hold struct {
	Position ledger.Position
	Size     int         // messages in the batch; counts only with Acked
	Acked    ledger.Bits // indexes of the batch; nil: the whole entry
}

// Cursor is what a handle asks of the subscription's cursor.
type Cursor interface {
	Done(p ledger.Position) bool
	// Passed reports whether p lies at or before the mark-delete position.
	Passed(p ledger.Position) bool
	// Acked returns the acknowledged indexes of a batch of which a part is done.
	Acked(p ledger.Position) ledger.Bits
}

// Held is everything that one transaction holds.
type Held struct {
	Individual []Hold // in order of position; one entry may be there several times, with other indexes
	Cumulative *Hold  // nil: none
}

// Empty reports whether nothing is held.
func (h Held) Empty() bool { return len(h.Individual) == 0 && h.Cumulative == nil }

// Handle holds the pending acknowledgements of one subscription. Use New.
type Handle struct {
	byTxn map[txn.ID]*Held
	// entries tells what of an entry is held, over all transactions.
	entries map[ledger.Position]entry
	// partBytes is what the sets of individual holds take.
	partBytes int

	cumulative   *Hold
	cumulativeBy txn.ID
}

type entry struct {
	whole bool
	acked ledger.Bits
}

// New returns a handle that holds nothing.
func New() *Handle {
	return &Handle{byTxn: make(map[txn.ID]*Held), entries: make(map[ledger.Position]entry)}
}

// Transactions is the number of transactions that hold something.
func (h *Handle) Transactions() int { return len(h.byTxn) }

// Entries is the number of entries of which something is held individually.
func (h *Handle) Entries() int { return len(h.entries) }

// PartBytes is what the sets of indexes that are held individually take in memory, and about what they take stored.
func (h *Handle) PartBytes() int { return h.partBytes }

// Holds reports whether id holds something.
func (h *Handle) Holds(id txn.ID) bool { return h.byTxn[id] != nil }

// Individual adds holds for id, all or none. The same whole entry twice in holds counts once. It returns what it added, to be
// stored, and to be handed to Undo if that fails.
//
// Errors: txn.ErrConflict, if any of them is acknowledged already, or held by any transaction, this one included.
func (h *Handle) Individual(id txn.ID, holds []Hold, cursor Cursor) ([]Hold, error) {
	added := make([]Hold, 0, len(holds))
	whole := make(map[ledger.Position]bool)
	for _, hold := range holds {
		if hold.Acked == nil {
			if whole[hold.Position] {
				continue
			}
			whole[hold.Position] = true
		}
		if err := h.conflict(id, hold, cursor); err != nil {
			h.Undo(id, added)
			return nil, err
		}
		h.add(id, hold)
		added = append(added, hold)
	}
	return added, nil
}

func (h *Handle) conflict(id txn.ID, hold Hold, cursor Cursor) error {
	if cursor.Done(hold.Position) {
		return fmt.Errorf("%w: transaction %v: message %v is acknowledged already", txn.ErrConflict, id, hold.Position)
	}
	if hold.Acked.Overlaps(cursor.Acked(hold.Position)) {
		return fmt.Errorf("%w: transaction %v: a part of batch %v is acknowledged already", txn.ErrConflict, id, hold.Position)
	}
	held, found := h.entries[hold.Position]
	if !found {
		return nil
	}
	if held.whole || hold.Acked == nil || held.acked.Overlaps(hold.Acked) {
		return fmt.Errorf("%w: transaction %v: message %v is pending in a transaction already", txn.ErrConflict, id, hold.Position)
	}
	return nil
}

// Cumulative makes id hold everything up to and including hold. It returns what was held cumulatively before, for Undo.
//
// Errors: txn.ErrConflict, if hold is at or before the mark-delete position, another transaction holds a cumulative
// acknowledgement, or id holds one that is not lower.
func (h *Handle) Cumulative(id txn.ID, hold Hold, cursor Cursor) (before *Hold, err error) {
	switch {
	case cursor.Passed(hold.Position):
		return nil, fmt.Errorf("%w: transaction %v: %v is at or before the mark-delete position", txn.ErrConflict, id, hold.Position)
	case h.cumulative != nil && h.cumulativeBy != id:
		return nil, fmt.Errorf("%w: transaction %v: transaction %v has a cumulative acknowledgement pending", txn.ErrConflict, id, h.cumulativeBy)
	case h.cumulative != nil && !further(hold, *h.cumulative):
		return nil, fmt.Errorf("%w: transaction %v: %v is not behind its pending cumulative acknowledgement %v", txn.ErrConflict, id, hold.Position, h.cumulative.Position)
	}
	before = h.cumulative
	h.hold(id, hold)
	return before, nil
}

func (h *Handle) hold(id txn.ID, hold Hold) {
	h.cumulative, h.cumulativeBy = &hold, id
	h.of(id).Cumulative = &hold
}

// further reports whether a acknowledges more than b.
func further(a, b Hold) bool {
	if c := a.Position.Compare(b.Position); c != 0 {
		return c > 0
	}
	return b.Acked != nil && (a.Acked == nil || b.Acked.AndNot(a.Acked).Empty() && a.Acked.Count() > b.Acked.Count())
}

// Undo takes back what Individual added. Of several calls for id the last is taken back first.
func (h *Handle) Undo(id txn.ID, added []Hold) {
	held := h.byTxn[id]
	if held == nil || len(added) == 0 {
		return
	}
	rest := len(held.Individual) - len(added)
	for _, hold := range held.Individual[rest:] {
		h.release(hold)
	}
	clear(held.Individual[rest:])
	held.Individual = held.Individual[:rest]
	h.forgetEmpty(id)
}

// UndoCumulative puts back what Cumulative returned.
func (h *Handle) UndoCumulative(id txn.ID, before *Hold) {
	if h.cumulative == nil || h.cumulativeBy != id {
		return
	}
	h.cumulative = before
	h.of(id).Cumulative = before
	h.forgetEmpty(id)
}

// Held returns what id holds. The slice is the handle's own: it is valid until the next change and must not be changed.
func (h *Handle) Held(id txn.ID) Held {
	if held := h.byTxn[id]; held != nil {
		return *held
	}
	return Held{}
}

// Release ends id: it holds nothing any more, and the result is exactly what it held, the individual ones in order.
func (h *Handle) Release(id txn.ID) Held {
	held := h.byTxn[id]
	if held == nil {
		return Held{}
	}
	delete(h.byTxn, id)
	for _, hold := range held.Individual {
		h.release(hold)
	}
	if held.Cumulative != nil {
		h.cumulative = nil
	}
	slices.SortStableFunc(held.Individual, func(a, b Hold) int { return a.Position.Compare(b.Position) })
	return *held
}

// Hidden reports what of p nobody may be given: all of it, or indexes of the batch.
func (h *Handle) Hidden(p ledger.Position) (whole bool, acked ledger.Bits) {
	held := h.entries[p]
	if held.whole {
		return true, nil
	}
	acked = held.acked
	if h.cumulative == nil || h.cumulative.Position.Before(p) {
		return false, acked
	}
	if p != h.cumulative.Position || h.cumulative.Acked == nil {
		return true, nil
	}
	return false, acked.Or(h.cumulative.Acked)
}

func (h *Handle) of(id txn.ID) *Held {
	held := h.byTxn[id]
	if held == nil {
		held = &Held{}
		h.byTxn[id] = held
	}
	return held
}

func (h *Handle) forgetEmpty(id txn.ID) {
	if held := h.byTxn[id]; held != nil && held.Empty() {
		delete(h.byTxn, id)
	}
}

func (h *Handle) add(id txn.ID, hold Hold) {
	held := h.of(id)
	held.Individual = append(held.Individual, hold)
	h.partBytes += 8 * len(hold.Acked)
	e := h.entries[hold.Position]
	if hold.Acked == nil {
		e.whole = true
	} else {
		e.acked = e.acked.Or(hold.Acked)
	}
	h.entries[hold.Position] = e
}

func (h *Handle) release(hold Hold) {
	h.partBytes -= 8 * len(hold.Acked)
	e := h.entries[hold.Position]
	if hold.Acked == nil {
		e.whole = false
	} else {
		e.acked = e.acked.AndNot(hold.Acked)
	}
	if !e.whole && e.acked.Empty() {
		delete(h.entries, hold.Position)
		return
	}
	h.entries[hold.Position] = e
}
