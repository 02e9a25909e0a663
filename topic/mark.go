package topic

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/pulsar-tc/pulsar-tc/topic/dedup"
	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// markDraft is the mark of a transaction as a group writes it: where its entries are, and what its producers have stored.
type markDraft struct {
	bytes int // upper bound
	first ledger.Position
	last  ledger.Position
}

const (
	// markBytes is what a mark without producers takes.
	markBytes = 1 + 2*16
	// markNameBytes is what a producer takes in a mark at most, beside its name.
	markNameBytes = 2 * binary.MaxVarintLen64
	// maxMarkPart is the part of a request that one mark may take, as a divisor.
	maxMarkPart = 4
)

func (m *markDraft) wrote(first, last ledger.Position) {
	if m.last == (ledger.Position{}) {
		m.first = first
	}
	m.last = last
}

// markRoom returns what a transactional send adds to the marks that g writes, and the error if the mark of its transaction would
// be too large then.
func (g *group) markRoom(s *sendItem) (adds int, err error) {
	known := g.dedup.In(s.msg.Txn)
	names, size := len(known), markBytes
	if m := g.marks[s.msg.Txn]; m != nil {
		size = m.bytes
	} else {
		size += namesBytes(known)
		adds = size
	}
	if _, found := known[s.producer.name]; !found && s.lastChunk() {
		more := len(s.producer.name) + markNameBytes
		names, adds, size = names+1, adds+more, size+more
	}
	if t := g.topic; size > t.options.MaxRequestBytes/maxMarkPart || names > t.options.mostMarkNames() {
		err = fmt.Errorf("%w: transaction %v has too many producers on %s: %d, with %d bytes of names", txn.ErrNotAllowed, s.msg.Txn, t.fullName, names, size)
	}
	return adds, err
}

func namesBytes(sequences dedup.Sequences) (size int) {
	for name := range sequences {
		size += len(name) + markNameBytes
	}
	return size
}

// mostMarkNames bounds the producers of a transaction on a topic, so that one write can make all that they stored good, even if
// each name is in a page of its own.
func (o *Options) mostMarkNames() int {
	return max(1, min(o.MaxTxnOps/2, o.MaxRequestBytes/4*3/(dedup.PageBytes+opBytes)))
}

// note makes g write the mark of the transaction of a send, with its sequence id.
func (g *group) note(s *sendItem) {
	id := s.msg.Txn
	m := g.marks[id]
	if m == nil {
		m = &markDraft{bytes: markBytes + namesBytes(g.dedup.In(id))}
		g.marks[id] = m
		g.count(1, m.bytes)
	}
	if !s.lastChunk() {
		return
	}
	if _, known := g.dedup.In(id)[s.producer.name]; !known {
		more := len(s.producer.name) + markNameBytes
		m.bytes += more
		g.count(0, more)
	}
	g.dedup.RaiseIn(id, s.producer.name, s.highest())
}

// storedMark is a mark as a load finds it.
type storedMark struct {
	id    txn.ID
	first ledger.Position
	last  ledger.Position
	dedup dedup.Sequences
}

func (m *markDraft) encode(sequences dedup.Sequences) []byte {
	out := append(make([]byte, 0, m.bytes), encodePosition(m.first)...)
	out = append(out, encodePosition(m.last)[1:]...)
	for _, name := range sequences.Producers() {
		out = binary.AppendUvarint(out, uint64(len(name)))
		out = append(out, name...)
		out = binary.AppendUvarint(out, sequences[name])
	}
	return out
}

func decodeMark(value []byte) (storedMark, error) {
	m := storedMark{dedup: make(dedup.Sequences)}
	if len(value) < 33 || value[0] != 1 {
		return m, fmt.Errorf("mark of a transaction of %d bytes", len(value))
	}
	m.first = ledger.Position{Ledger: binary.BigEndian.Uint64(value[1:]), Entry: binary.BigEndian.Uint64(value[9:])}
	m.last = ledger.Position{Ledger: binary.BigEndian.Uint64(value[17:]), Entry: binary.BigEndian.Uint64(value[25:])}
	rest := value[33:]
	for len(rest) > 0 {
		length, n := binary.Uvarint(rest)
		if n <= 0 || length > uint64(len(rest)-n) {
			return m, errors.New("mark of a transaction ends within a name")
		}
		name := string(rest[n : n+int(length)])
		rest = rest[n+int(length):]
		highest, n := binary.Uvarint(rest)
		if n <= 0 {
			return m, errors.New("mark of a transaction ends within a sequence id")
		}
		m.dedup[name] = highest
		rest = rest[n:]
	}
	return m, nil
}
