package cleaning_test

import (
	"slices"
	"testing"

	"github.com/pulsar-tc/pulsar-tc/coordinator/cleaning"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// state says of each transaction where the log holds its whole state from on (live), or that its outcome is held.
type state struct {
	live map[uint64]uint64
	held map[uint64]bool
}

func (s state) Snapshot(least, end uint64) (txn.Record, bool) {
	since, live := s.live[least]
	return txn.Record{Op: txn.OpSnapshot, Least: least}, live && since < end
}

func (s state) Outcome(least uint64) (txn.Record, bool) {
	return txn.Record{Op: txn.OpOutcome, Least: least}, s.held[least]
}

func record(op txn.Op, least uint64, status txn.Status) txn.Record {
	return txn.Record{Op: op, Least: least, Status: status}
}

func entry(index uint64, records ...txn.Record) txn.LogEntry {
	return txn.LogEntry{Index: index, Records: records}
}

func carry(prefix []txn.LogEntry, end uint64, state cleaning.State) []txn.Record {
	var all []txn.Record
	cleaning.Carry(prefix, end, state, func(r txn.Record) bool {
		all = append(all, r)
		return false
	})
	return all
}

func TestCarry(t *testing.T) {
	newOne := record(txn.OpNew, 1, txn.Open)
	addOne := record(txn.OpAddPartition, 1, txn.Open)
	decided := record(txn.OpUpdate, 1, txn.Committing)
	ended := record(txn.OpUpdate, 1, txn.Committed)
	snapshot := record(txn.OpSnapshot, 1, txn.Open)
	outcome := record(txn.OpOutcome, 1, txn.Committed)
	for _, c := range []struct {
		name   string
		prefix []txn.LogEntry
		end    uint64
		state  state
		want   []txn.Record
	}{
		{"nothing", nil, 0, state{}, nil},
		{"live since the prefix", []txn.LogEntry{entry(1, newOne)}, 2, state{live: map[uint64]uint64{1: 1}}, []txn.Record{snapshot}},
		{"live, once for all its records", []txn.LogEntry{entry(1, newOne, addOne), entry(2, decided)}, 3,
			state{live: map[uint64]uint64{1: 1}}, []txn.Record{snapshot}},
		{"live, a later snapshot stands for it", []txn.LogEntry{entry(1, newOne)}, 2, state{live: map[uint64]uint64{1: 2}}, nil},
		{"ended and held", []txn.LogEntry{entry(1, newOne), entry(2, ended)}, 3, state{held: map[uint64]bool{1: true}},
			[]txn.Record{outcome}},
		{"ended and held, the end is behind the prefix", []txn.LogEntry{entry(1, newOne), entry(2, decided)}, 3,
			state{held: map[uint64]bool{1: true}}, nil},
		{"ended and forgotten", []txn.LogEntry{entry(1, newOne, ended)}, 2, state{}, nil},
		{"outcome carried before", []txn.LogEntry{entry(1, outcome)}, 2, state{held: map[uint64]bool{1: true}}, []txn.Record{outcome}},
		{"outcome twice in the prefix", []txn.LogEntry{entry(1, ended), entry(2, outcome)}, 3, state{held: map[uint64]bool{1: true}},
			[]txn.Record{outcome}},
		{"in order of the log", []txn.LogEntry{entry(1, record(txn.OpNew, 3, txn.Open), ended, record(txn.OpNew, 2, txn.Open))}, 2,
			state{live: map[uint64]uint64{2: 1, 3: 1}, held: map[uint64]bool{1: true}},
			[]txn.Record{record(txn.OpSnapshot, 3, txn.Open), {Op: txn.OpOutcome, Least: 1}, record(txn.OpSnapshot, 2, txn.Open)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := carry(c.prefix, c.end, c.state)
			if !slices.EqualFunc(got, c.want, func(a, b txn.Record) bool { return a.Op == b.Op && a.Least == b.Least }) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// What is left when the writer is full is carried later, and its entry stays.
func TestCarryUntilFull(t *testing.T) {
	prefix := []txn.LogEntry{
		entry(1, record(txn.OpNew, 1, txn.Open)), entry(2, record(txn.OpNew, 2, txn.Open), record(txn.OpNew, 3, txn.Open)), entry(3),
	}
	for room, want := range map[int]uint64{1: 1, 2: 2, 3: 2, 4: 4} {
		state := state{live: map[uint64]uint64{1: 1, 2: 2, 3: 2}}
		left := room
		if got := cleaning.Carry(prefix, 4, state, func(txn.Record) bool { left--; return left == 0 }); got != want {
			t.Errorf("with room for %d nothing is left below %d, want %d", room, got, want)
		}
	}
}

func TestDue(t *testing.T) {
	for _, c := range []struct {
		cost, live, slack int64
		want              bool
	}{
		{0, 0, cleaning.Slack, false},
		{cleaning.Slack, 0, cleaning.Slack, false},
		{cleaning.Slack + 1, 0, cleaning.Slack, true},
		{2<<30 + cleaning.Slack, 1 << 30, cleaning.Slack, false},
		{2<<30 + cleaning.Slack + 1, 1 << 30, cleaning.Slack, true},
		{1 << 30, 1 << 30, 0, false},
		{1<<31 + 1, 1 << 30, 0, true},
	} {
		if got := cleaning.Due(c.cost, c.live, c.slack); got != c.want {
			t.Errorf("Due(%d, %d) = %t, want %t", c.cost, c.live, got, c.want)
		}
	}
}
