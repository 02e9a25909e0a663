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
	sequences dedup.Sequences
	bytes     int // upper bound
	first     ledger.Position
	last      ledger.Position
}

const (
	// markBytes is what a mark without producers takes.
	markBytes = 1 + 2*16
	// markNameBytes is what a producer takes in a mark at most, beside its name.
	markNameBytes = 2 * binary.MaxVarintLen64
	// maxMarkPart is the part of a request that one mark may take, as a divisor.
	maxMarkPart = 4
)

func (m *markDraft) raise(name string, highest uint64) {
	if _, found := m.sequences[name]; !found {
		m.bytes += len(name) + markNameBytes
	}
	m.sequences.Raise(name, highest)
}

func (m *markDraft) wrote(first, last ledger.Position) {
	if m.last == (ledger.Position{}) {
		m.first = first
	}
	m.last = last
}

// markRoom returns what a transactional send adds to the marks that g writes, and how large the mark of its transaction is
// then.
func (g *group) markRoom(s *sendItem) (adds, size int) {
	known := g.topic.dedup.In(s.msg.Txn)
	if m := g.marks[s.msg.Txn]; m != nil {
		known, size = m.sequences, m.bytes
	} else {
		size = markBytes
		for name := range known {
			size += len(name) + markNameBytes
		}
		adds = size
	}
	if _, found := known[s.producer.name]; !found && s.lastChunk() {
		adds += len(s.producer.name) + markNameBytes
		size += len(s.producer.name) + markNameBytes
	}
	return adds, size
}

// note makes g write the mark of the transaction of a send, with its sequence id.
func (g *group) note(s *sendItem) {
	m := g.mark(s.msg.Txn)
	if !s.lastChunk() {
		return
	}
	before := m.bytes
	m.raise(s.producer.name, s.highest())
	g.count(0, m.bytes-before)
}

func (g *group) mark(id txn.ID) *markDraft {
	m := g.marks[id]
	if m == nil {
		m = &markDraft{sequences: make(dedup.Sequences), bytes: markBytes}
		for name, highest := range g.topic.dedup.In(id) {
			m.raise(name, highest)
		}
		g.marks[id] = m
		g.count(1, m.bytes)
	}
	return m
}

// storedMark is a mark as a load finds it.
type storedMark struct {
	id    txn.ID
	first ledger.Position
	last  ledger.Position
	dedup dedup.Sequences
}

func (m *markDraft) encode() []byte {
	out := append(encodePosition(m.first), encodePosition(m.last)[1:]...)
	for _, name := range m.sequences.Producers() {
		out = binary.AppendUvarint(out, uint64(len(name)))
		out = append(out, name...)
		out = binary.AppendUvarint(out, m.sequences[name])
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
