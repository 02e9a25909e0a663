package topic

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
)

// The bytes of all blocks ever written to a topic are counted, and the counts before and behind each ledger are stored. Where a
// position within a ledger stands is estimated: all its entries count as equally large, and what aborts deleted counts until it
// is passed. Source of the estimate: ManagedLedgerImpl.getEstimatedBacklogSize.

// sizes are the bytes of all blocks before a ledger and up to its end.
type sizes struct{ before, through uint64 }

// part is how much of n lies before index i of total.
func part(n, i, total uint64) uint64 {
	if total == 0 {
		return 0
	}
	high, low := bits.Mul64(n, min(i, total))
	quotient, _ := bits.Div64(high, low, total)
	return quotient
}

// bytesBefore is about how many bytes were written before p.
func (t *Topic) bytesBefore(p ledger.Position) uint64 {
	for _, l := range t.ledgers {
		if p.Ledger < l.id {
			return l.before
		}
		if p.Ledger == l.id {
			return l.before + part(l.through-l.before, p.Entry, l.last+1)
		}
	}
	if p.Ledger < t.ledger {
		return t.sizes.before
	}
	return t.sizes.before + part(t.sizes.through-t.sizes.before, p.Entry, t.next)
}

// positionAt is about the position before which n bytes were written.
func (t *Topic) positionAt(n uint64) ledger.Position {
	for _, l := range t.ledgers {
		if n < l.through {
			return ledger.Position{Ledger: l.id, Entry: part(l.last+1, n-min(n, l.before), l.through-l.before)}
		}
	}
	return ledger.Position{Ledger: t.ledger, Entry: part(t.next, n-min(n, t.sizes.before), t.sizes.through-t.sizes.before)}
}

// storageSize is about how many bytes the topic has stored.
func (t *Topic) storageSize() uint64 { return t.sizes.through - t.bytesBefore(t.first) }

// backlogSize is about how many bytes a subscription has before it.
func (s *subscription) backlogSize() uint64 {
	return s.topic.sizes.through - s.topic.bytesBefore(s.cursor.Frontier())
}

// tail is the value of the key of the last position.
type tail struct {
	last ledger.Position
	sizes
}

func (t tail) encode() []byte { return encodeNumbers(t.last.Ledger, t.last.Entry, t.before, t.through) }

func decodeTail(value []byte) (tail, error) {
	n, err := decodeNumbers(value, 4)
	if err != nil {
		return tail{}, err
	}
	return tail{ledger.Position{Ledger: n[0], Entry: n[1]}, sizes{n[2], n[3]}}, nil
}

func (l earlierLedger) encode() []byte { return encodeNumbers(l.last, l.before, l.through) }

func decodeLedger(id uint64, value []byte) (earlierLedger, error) {
	n, err := decodeNumbers(value, 3)
	if err != nil {
		return earlierLedger{}, err
	}
	return earlierLedger{id, n[0], sizes{n[1], n[2]}}, nil
}

// encodeNumbers returns version 1 and numbers of 8 bytes, big endian.
func encodeNumbers(numbers ...uint64) []byte {
	out := make([]byte, 1, 1+8*len(numbers))
	out[0] = 1
	for _, n := range numbers {
		out = binary.BigEndian.AppendUint64(out, n)
	}
	return out
}

func decodeNumbers(value []byte, count int) ([]uint64, error) {
	if len(value) != 1+8*count || value[0] != 1 {
		return nil, fmt.Errorf("%d bytes are no %d numbers", len(value), count)
	}
	numbers := make([]uint64, count)
	for i := range numbers {
		numbers[i] = binary.BigEndian.Uint64(value[1+8*i:])
	}
	return numbers, nil
}
