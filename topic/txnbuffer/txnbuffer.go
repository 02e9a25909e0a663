package txnbuffer

import (
	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// Buffer is the transaction buffer of one topic. Use New.
type Buffer struct {
	open map[txn.ID]*Transaction
	// oldest and newest are the ends of the list in order of the first entry, which is the order of opening.
	oldest, newest *Transaction
}

// Transaction is one unresolved transaction.
type Transaction struct {
	ID     txn.ID
	First  ledger.Position   // of its first entry
	Last   ledger.Position   // of its last entry
	Blocks []ledger.Position // last positions of its blocks, in order, as far as they are known

	restored   bool
	ending     bool
	action     txn.Action
	prev, next *Transaction
}

// New returns a buffer without transactions.
func New() *Buffer { return &Buffer{open: make(map[txn.ID]*Transaction)} }

// Len is the number of unresolved transactions.
func (b *Buffer) Len() int { return len(b.open) }

// Get returns an unresolved transaction, or nil.
func (b *Buffer) Get(id txn.ID) *Transaction { return b.open[id] }

// Oldest returns the transaction that holds the topic back, or nil.
func (b *Buffer) Oldest() *Transaction { return b.oldest }

// Next returns the transaction that opened after t, or nil.
func (t *Transaction) Next() *Transaction { return t.next }

// Ending reports whether an end is being applied, and which.
func (t *Transaction) Ending() (txn.Action, bool) { return t.action, t.ending }

// Restore adds a transaction as a topic is loaded. Calls must be in the order of first. Its Blocks are not known.
func (b *Buffer) Restore(id txn.ID, first, last ledger.Position) {
	b.push(&Transaction{ID: id, First: first, Last: last, restored: true})
}

// Known reports whether Blocks has all blocks of t.
func (t *Transaction) Known() bool { return !t.restored }

// Found completes the Blocks of a restored transaction with those that were written before it was restored, in order.
func (t *Transaction) Found(blocks []ledger.Position) {
	if t.restored {
		t.Blocks, t.restored = append(blocks, t.Blocks...), false
	}
}

// Wrote notes that a block of entries of id, first to last, is durable. Calls must be in log order.
func (b *Buffer) Wrote(id txn.ID, first, last ledger.Position) {
	t := b.open[id]
	if t == nil {
		t = &Transaction{ID: id, First: first}
		b.push(t)
	}
	t.Last = last
	t.Blocks = append(t.Blocks, last)
}

// MaxRead returns how far the topic may be read: everything before the result. end is the position behind the last entry.
func (b *Buffer) MaxRead(end ledger.Position) ledger.Position {
	if b.oldest != nil {
		return b.oldest.First
	}
	return end
}

// End begins to apply an end. It returns nil if id has nothing here, and the transaction otherwise, repeats of the same
// action included. Errors: *txn.StatusError if the contrary is being applied.
func (b *Buffer) End(id txn.ID, action txn.Action) (*Transaction, error) {
	t := b.open[id]
	if t == nil {
		return nil, nil
	}
	if t.ending && t.action != action {
		return nil, &txn.StatusError{ID: id, Want: action.Deciding(), Got: t.action.Deciding()}
	}
	t.ending, t.action = true, action
	return t, nil
}

// Ended notes that the end of id is applied and durable.
func (b *Buffer) Ended(id txn.ID) {
	t := b.open[id]
	if t == nil {
		return
	}
	delete(b.open, id)
	if t.prev != nil {
		t.prev.next = t.next
	} else {
		b.oldest = t.next
	}
	if t.next != nil {
		t.next.prev = t.prev
	} else {
		b.newest = t.prev
	}
}

func (b *Buffer) push(t *Transaction) {
	b.open[t.ID] = t
	t.prev = b.newest
	if b.newest != nil {
		b.newest.next = t
	} else {
		b.oldest = t
	}
	b.newest = t
}
