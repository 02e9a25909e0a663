package fsm_test

import (
	"fmt"
	"slices"

	"github.com/pulsar-tc/pulsar-tc/coordinator/fsm"
	"github.com/pulsar-tc/pulsar-tc/txn"
	"github.com/pulsar-tc/pulsar-tc/txnlog"
)

// store is a log in memory: what survives a crash. It keeps the bytes that a real log would.
type store struct {
	first  uint64 // index of values[0]
	values [][]byte
	next   uint64
}

func newStore() *store { return &store{first: 1} }

// end is the index that the next entry gets.
func (s *store) end() uint64 { return s.first + uint64(len(s.values)) }

// append makes the first n changes of batch durable; what belongs to the last only with all of them.
func (s *store) append(batch *txn.Batch, n int) txn.Appended {
	var e txnlog.Encoder
	e.Reset()
	for i := range batch.Changes[:n] {
		e.Add(&batch.Changes[i].Record)
	}
	index := s.end()
	s.values = append(s.values, slices.Clone(e.Value()))
	s.next = max(s.next, batch.Next)
	if n == len(batch.Changes) && batch.DropBefore > s.first {
		s.values = s.values[batch.DropBefore-s.first:]
		s.first = batch.DropBefore
	}
	return txn.Appended{First: index, Last: index, Bytes: e.Len()}
}

// entries reads the oldest n entries.
func (s *store) entries(n int) []txn.LogEntry {
	var d txnlog.Decoder
	all := make([]txn.LogEntry, 0, n)
	for i, value := range s.values[:n] {
		index := s.first + uint64(i)
		records, err := d.Decode(fmt.Sprint("log/", index), value)
		if err != nil {
			panic(err)
		}
		all = append(all, txn.LogEntry{Index: index, Bytes: len(value), Records: slices.Clone(records)})
	}
	return all
}

// load builds a machine as a new term does.
func (s *store) load(opts fsm.Options, now int64, space fsm.SpaceLevel) (*fsm.Machine, *fsm.Ready, error) {
	m := fsm.New(opts)
	for _, entry := range s.entries(len(s.values)) {
		if err := m.Replay(entry); err != nil {
			return nil, nil, err
		}
	}
	m.Step(now, &fsm.Space{Level: space})
	ready, _, err := m.Recover(now, s.next)
	return m, ready, err
}
