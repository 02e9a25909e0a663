package pendingack

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

const (
	storedVersion = 1

	holdCumulative = 1
	holdIndexes    = 2
)

// Encode returns the stored form of what one group commit added for one transaction.
func Encode(added Held) []byte {
	count := len(added.Individual)
	if added.Cumulative != nil {
		count++
	}
	out := append(make([]byte, 0, 8+24*count), storedVersion)
	out = binary.AppendUvarint(out, uint64(count))
	for _, hold := range added.Individual {
		out = hold.append(out, 0)
	}
	if added.Cumulative != nil {
		out = added.Cumulative.append(out, holdCumulative)
	}
	return out
}

func (h Hold) append(out []byte, flags byte) []byte {
	if h.Acked != nil {
		flags |= holdIndexes
	}
	out = append(out, flags)
	out = binary.BigEndian.AppendUint64(out, h.Position.Ledger)
	out = binary.BigEndian.AppendUint64(out, h.Position.Entry)
	if h.Acked == nil {
		return out
	}
	out = binary.AppendUvarint(out, uint64(h.Size))
	for _, w := range h.Acked {
		out = binary.LittleEndian.AppendUint64(out, w)
	}
	return out
}

// Decode reads a stored value.
func Decode(value []byte) (Held, error) {
	var held Held
	if len(value) < 2 || value[0] != storedVersion {
		return held, errors.New("pending acknowledgements: unknown version")
	}
	count, n := binary.Uvarint(value[1:])
	if n <= 0 || count > uint64(len(value)) {
		return held, errors.New("pending acknowledgements: the count cannot be right")
	}
	rest := value[1+n:]
	for range count {
		hold, cumulative, left, err := decodeHold(rest)
		if err != nil {
			return Held{}, err
		}
		rest = left
		if cumulative {
			held.Cumulative = &hold
		} else {
			held.Individual = append(held.Individual, hold)
		}
	}
	if len(rest) != 0 {
		return Held{}, fmt.Errorf("pending acknowledgements: %d bytes too many", len(rest))
	}
	return held, nil
}

func decodeHold(value []byte) (hold Hold, cumulative bool, rest []byte, err error) {
	truncated := errors.New("pending acknowledgements: it ends too early")
	if len(value) < 17 {
		return hold, false, nil, truncated
	}
	flags := value[0]
	hold.Position = ledger.Position{Ledger: binary.BigEndian.Uint64(value[1:]), Entry: binary.BigEndian.Uint64(value[9:])}
	rest = value[17:]
	if flags&holdIndexes == 0 {
		return hold, flags&holdCumulative != 0, rest, nil
	}
	size, n := binary.Uvarint(rest)
	if n <= 0 || size == 0 || size > 8*uint64(len(rest)) {
		return hold, false, nil, truncated
	}
	words := int(size+63) / 64
	rest = rest[n:]
	if len(rest) < 8*words {
		return hold, false, nil, truncated
	}
	hold.Size = int(size)
	hold.Acked = make(ledger.Bits, words)
	for i := range hold.Acked {
		hold.Acked[i] = binary.LittleEndian.Uint64(rest[8*i:])
	}
	hold.Acked = hold.Acked.And(ledger.AllBits(hold.Size))
	return hold, flags&holdCumulative != 0, rest[8*words:], nil
}

// Restore adds what a stored value holds for id, as a subscription is loaded. Values of one transaction must come in the
// order in which they were stored; it checks no conflicts, which were checked before the value was stored.
func (h *Handle) Restore(id txn.ID, held Held) {
	for _, hold := range held.Individual {
		h.add(id, hold)
	}
	if held.Cumulative != nil {
		h.hold(id, *held.Cumulative)
	}
}
