package compaction

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
)

const blockVersion = 1

// EncodedBytes is about what an entry takes in a block.
func (k *Kept) EncodedBytes() int {
	return 16 + 4 + ledger.BlockOverhead + ledger.EntryOverhead + len(k.Producer) + len(k.Payload) + 4 + 8*len(k.Gone)
}

// EncodeBlock returns the stored form of kept entries.
func EncodeBlock(entries []Kept) []byte {
	size := 1
	for i := range entries {
		size += entries[i].EncodedBytes()
	}
	out := append(make([]byte, 0, size), blockVersion)
	for i := range entries {
		k := &entries[i]
		own := ledger.Block{Txn: k.Txn, InTxn: k.InTxn, Entries: []ledger.Entry{k.Entry}}
		block := own.Encode()
		out = binary.BigEndian.AppendUint64(out, k.Position.Ledger)
		out = binary.BigEndian.AppendUint64(out, k.Position.Entry)
		out = binary.BigEndian.AppendUint32(out, uint32(len(block)))
		out = append(out, block...)
		out = binary.BigEndian.AppendUint32(out, uint32(len(k.Gone)))
		for _, word := range k.Gone {
			out = binary.BigEndian.AppendUint64(out, word)
		}
	}
	return out
}

var errTruncated = errors.New("it ends too early")

// DecodeBlock reads a stored block. The payloads share value.
func DecodeBlock(value []byte) ([]Kept, error) {
	if len(value) < 1 || value[0] != blockVersion {
		return nil, errors.New("unknown version of a compacted block")
	}
	var entries []Kept
	for rest := value[1:]; len(rest) > 0; {
		k, behind, err := decodeKept(rest)
		if err != nil {
			return nil, err
		}
		if n := len(entries); n > 0 && !entries[n-1].Position.Before(k.Position) {
			return nil, fmt.Errorf("entry %v after %v", k.Position, entries[n-1].Position)
		}
		entries, rest = append(entries, k), behind
	}
	return entries, nil
}

func decodeKept(b []byte) (Kept, []byte, error) {
	if len(b) < 20 {
		return Kept{}, nil, errTruncated
	}
	at := ledger.Position{Ledger: binary.BigEndian.Uint64(b), Entry: binary.BigEndian.Uint64(b[8:])}
	size := uint64(binary.BigEndian.Uint32(b[16:]))
	b = b[20:]
	if size+4 > uint64(len(b)) {
		return Kept{}, nil, errTruncated
	}
	block, err := ledger.DecodeBlock(at, b[:size:size])
	if err != nil {
		return Kept{}, nil, err
	}
	if len(block.Entries) != 1 {
		return Kept{}, nil, fmt.Errorf("%d entries at %v, want one", len(block.Entries), at)
	}
	k := Kept{Entry: block.Entries[0], Last: -1}
	words := int64(binary.BigEndian.Uint32(b[size:]))
	b = b[size+4:]
	if 8*words > int64(len(b)) {
		return Kept{}, nil, errTruncated
	}
	if words > 0 {
		k.Gone = make(ledger.Bits, words)
		for i := range k.Gone {
			k.Gone[i] = binary.BigEndian.Uint64(b[8*i:])
		}
		if int(words) != len(ledger.AllBits(k.BatchSize())) || !k.Gone.AndNot(ledger.AllBits(k.BatchSize())).Empty() {
			return Kept{}, nil, fmt.Errorf("bits of %d words for a batch of %d at %v", words, k.BatchSize(), at)
		}
	}
	return k, b[8*words:], nil
}
