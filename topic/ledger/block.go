package ledger

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

// Entry is one stored message or batch of messages.
type Entry struct {
	Position          Position
	Txn               txn.ID
	InTxn             bool
	IsBatch           bool // the metadata has num_messages_in_batch, be it 1
	IsChunk           bool
	SequenceID        uint64
	HighestSequenceID uint64
	NumMessages       uint32
	PublishTime       uint64 // ms since the epoch, by the producer's clock
	Producer          string
	Payload           []byte // as received; never changed
}

// BatchSize is the number of indexes that an ack_set of the entry has.
func (e *Entry) BatchSize() int { return max(1, int(e.NumMessages)) }

// Block is a run of entries that one group commit wrote for one transaction or none.
type Block struct {
	Txn     txn.ID
	InTxn   bool
	Written uint64 // ms since the epoch
	Entries []Entry
}

const (
	blockVersion = 1

	blockInTxn = 1

	entryBatch = 1
	entryChunk = 2
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// EntryOverhead bounds what an entry takes in a block beside its payload and its producer name, and BlockOverhead what a
// block takes beside its entries.
const (
	EntryOverhead = 1 + 6*binary.MaxVarintLen64
	BlockOverhead = 2 + 16 + 2*binary.MaxVarintLen64 + 4
)

// Encode returns the stored form of b. Txn and InTxn of the entries are not looked at: the block's count.
func (b *Block) Encode() []byte {
	size := BlockOverhead
	for i := range b.Entries {
		size += EntryOverhead + len(b.Entries[i].Producer) + len(b.Entries[i].Payload)
	}
	out := make([]byte, 0, size)
	out = append(out, blockVersion)
	if b.InTxn {
		out = append(out, blockInTxn)
		out = binary.BigEndian.AppendUint64(out, b.Txn.Most)
		out = binary.BigEndian.AppendUint64(out, b.Txn.Least)
	} else {
		out = append(out, 0)
	}
	out = binary.AppendUvarint(out, b.Written)
	out = binary.AppendUvarint(out, uint64(len(b.Entries)))
	for i := range b.Entries {
		out = b.Entries[i].append(out)
	}
	return binary.BigEndian.AppendUint32(out, crc32.Checksum(out, castagnoli))
}

func (e *Entry) append(out []byte) []byte {
	var flags byte
	if e.IsBatch {
		flags |= entryBatch
	}
	if e.IsChunk {
		flags |= entryChunk
	}
	out = append(out, flags)
	out = binary.AppendUvarint(out, e.SequenceID)
	out = binary.AppendUvarint(out, e.HighestSequenceID)
	out = binary.AppendUvarint(out, uint64(e.NumMessages))
	out = binary.AppendUvarint(out, e.PublishTime)
	out = binary.AppendUvarint(out, uint64(len(e.Producer)))
	out = append(out, e.Producer...)
	out = binary.AppendUvarint(out, uint64(len(e.Payload)))
	return append(out, e.Payload...)
}

var errTruncated = errors.New("it ends too early")

// DecodeBlock reads a stored block whose last entry is at last. The payloads share value.
func DecodeBlock(last Position, value []byte) (Block, error) {
	if len(value) < 6 {
		return Block{}, errTruncated
	}
	body, sum := value[:len(value)-4], binary.BigEndian.Uint32(value[len(value)-4:])
	if body[0] != blockVersion {
		return Block{}, fmt.Errorf("unknown block version %d", body[0])
	}
	if crc32.Checksum(body, castagnoli) != sum {
		return Block{}, errors.New("the checksum does not match")
	}
	r := reader{rest: body[2:]}
	b := Block{InTxn: body[1]&blockInTxn != 0}
	if b.InTxn {
		b.Txn = txn.ID{Most: r.fixed64(), Least: r.fixed64()}
	}
	b.Written = r.uvarint()
	count := r.uvarint()
	if r.failed || count == 0 || count > uint64(len(r.rest)) || count > last.Entry+1 {
		return Block{}, fmt.Errorf("%d entries cannot be right", count)
	}
	b.Entries = make([]Entry, 0, count)
	for i := range count {
		e := r.entry()
		e.Position = Position{last.Ledger, last.Entry + 1 - count + i}
		e.Txn, e.InTxn = b.Txn, b.InTxn
		b.Entries = append(b.Entries, e)
	}
	if r.failed {
		return Block{}, errTruncated
	}
	if len(r.rest) != 0 {
		return Block{}, fmt.Errorf("%d bytes too many", len(r.rest))
	}
	return b, nil
}

// reader takes values off the front of rest. After a failure every value is zero.
type reader struct {
	rest   []byte
	failed bool
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.failed, r.rest = true, nil
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *reader) bytes(n uint64) []byte {
	if n > uint64(len(r.rest)) {
		r.failed, r.rest = true, nil
		return nil
	}
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b
}

func (r *reader) fixed64() uint64 {
	b := r.bytes(8)
	if b == nil {
		return 0
	}
	return binary.BigEndian.Uint64(b)
}

func (r *reader) entry() Entry {
	var e Entry
	flags := r.bytes(1)
	if flags == nil {
		return e
	}
	e.IsBatch, e.IsChunk = flags[0]&entryBatch != 0, flags[0]&entryChunk != 0
	e.SequenceID = r.uvarint()
	e.HighestSequenceID = r.uvarint()
	e.NumMessages = uint32(r.uvarint())
	e.PublishTime = r.uvarint()
	e.Producer = string(r.bytes(r.uvarint()))
	e.Payload = r.bytes(r.uvarint())
	return e
}
