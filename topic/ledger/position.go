package ledger

import (
	"cmp"
	"strconv"
)

// Position names one entry of a topic. The zero Position lies before every entry.
type Position struct {
	Ledger uint64
	Entry  uint64
}

// Compare orders positions as the log does.
func (p Position) Compare(q Position) int {
	return cmp.Or(cmp.Compare(p.Ledger, q.Ledger), cmp.Compare(p.Entry, q.Entry))
}

// Before reports whether p lies before q.
func (p Position) Before(q Position) bool {
	return p.Ledger < q.Ledger || p.Ledger == q.Ledger && p.Entry < q.Entry
}

// Next is the position directly behind p.
func (p Position) Next() Position { return Position{p.Ledger, p.Entry + 1} }

// String returns Pulsar's text form, "ledger:entry".
func (p Position) String() string {
	return strconv.FormatUint(p.Ledger, 10) + ":" + strconv.FormatUint(p.Entry, 10)
}

// Range is the positions from From on that lie before To.
type Range struct{ From, To Position }

// One is the range that holds p alone.
func One(p Position) Range { return Range{p, p.Next()} }

// Empty reports whether r holds nothing.
func (r Range) Empty() bool { return !r.From.Before(r.To) }

// Contains reports whether p is in r.
func (r Range) Contains(p Position) bool { return !p.Before(r.From) && p.Before(r.To) }
