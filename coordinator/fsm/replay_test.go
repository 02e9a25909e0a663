package fsm_test

import (
	"strings"
	"testing"

	"github.com/pulsar-tc/pulsar-tc/coordinator/fsm"
	"github.com/pulsar-tc/pulsar-tc/preserver"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

func opened(least uint64) txn.Record {
	return txn.Record{Op: txn.OpNew, Least: least, TimeoutMillis: 1000}
}

func added(least uint64, names ...string) txn.Record {
	r := txn.Record{Op: txn.OpAddPartition, Least: least}
	for _, name := range names {
		r.Participants = append(r.Participants, participant(name))
	}
	return r
}

func updated(least uint64, from, to txn.Status) txn.Record {
	return txn.Record{Op: txn.OpUpdate, Least: least, Expected: from, Status: to, Place: least}
}

func resolved(least uint64, name string) txn.Record {
	r := added(least, name)
	r.Op = txn.OpResolve
	return r
}

func snapshot(least uint64, status txn.Status, names ...string) txn.Record {
	r := added(least, names...)
	r.Op, r.Status = txn.OpSnapshot, status
	return r
}

func outcome(least uint64, status txn.Status) txn.Record {
	return txn.Record{Op: txn.OpOutcome, Least: least, Status: status, Place: least}
}

func done(r txn.Record, names ...string) txn.Record {
	for _, name := range names {
		r.Done = append(r.Done, participant(name))
	}
	return r
}

// TestReplay walks every rule about what a log may hold: one that a coordinator cannot have written stops the load, with the
// place and the reason; it never guesses (TC-19).
func TestReplay(t *testing.T) {
	const o, c, cd, a, ad = txn.Open, txn.Committing, txn.Committed, txn.Aborting, txn.Aborted
	for _, test := range []struct {
		name string
		log  []txn.Record
		want string // part of the error; empty: loads
	}{
		{"nothing", nil, ""},
		{"whole life", []txn.Record{opened(1), added(1, "a"), updated(1, o, c), resolved(1, "a"), updated(1, c, cd)}, ""},
		{"end without participants", []txn.Record{opened(1), updated(1, o, ad)}, ""},
		{"abort", []txn.Record{opened(1), added(1, "a"), updated(1, o, a), updated(1, a, ad)}, ""},
		{"NEW is gone, an end follows", []txn.Record{added(1, "a"), updated(1, o, c), resolved(1, "a"), updated(1, c, cd)}, ""},
		{"NEW is gone, a snapshot follows", []txn.Record{added(1, "a"), opened(2), snapshot(1, o, "a")}, ""},
		{"NEW is gone, an outcome follows", []txn.Record{updated(1, o, c), outcome(1, cd)}, ""},
		{"snapshot of what was read whole", []txn.Record{opened(1), added(1, "a", "b"), updated(1, o, c), resolved(1, "b"),
			done(snapshot(1, c, "a", "b"), "b"), updated(1, c, cd)}, ""},
		{"outcome and end", []txn.Record{opened(1), updated(1, o, cd), outcome(1, cd)}, ""},

		{"NEW twice", []txn.Record{opened(1), opened(1)}, "record 1 of transaction (1,1): NEW of an id that is not above"},
		{"NEW behind its records", []txn.Record{added(1, "a"), opened(1)}, "NEW of an id that is not above"},
		{"NEW behind its end", []txn.Record{opened(1), updated(1, o, cd), opened(1)}, "NEW of an id that is not above"},
		{"ids fall", []txn.Record{opened(2), opened(1)}, "NEW of an id that is not above"},
		{"ADD in COMMITTING", []txn.Record{opened(1), added(1, "a"), updated(1, o, c), added(1, "b")}, "ADD in state COMMITTING"},
		{"UPDATE from another state", []txn.Record{opened(1), updated(1, a, ad)}, "UPDATE expects ABORTING, state is OPEN"},
		{"decision turned", []txn.Record{opened(1), updated(1, o, c), updated(1, c, ad)}, "UPDATE from COMMITTING to ABORTED"},
		{"decision turned, NEW gone", []txn.Record{updated(1, a, cd)}, "UPDATE from ABORTING to COMMITTED"},
		{"decision repeated", []txn.Record{opened(1), updated(1, o, c), updated(1, c, c)}, "UPDATE from COMMITTING to COMMITTING"},
		{"decision taken back", []txn.Record{opened(1), updated(1, o, c), updated(1, c, o)}, "UPDATE from COMMITTING to OPEN"},
		{"UPDATE out of a final state", []txn.Record{updated(1, cd, cd)}, "UPDATE from COMMITTED to COMMITTED"},
		{"RESOLVE of a stranger", []txn.Record{opened(1), added(1, "a"), updated(1, o, c), resolved(1, "b")},
			"RESOLVE of a participant that was never added: persistent://tenant/namespace/b"},
		{"RESOLVE in OPEN", []txn.Record{opened(1), added(1, "a"), resolved(1, "a")}, "RESOLVE in state OPEN"},
		{"SNAPSHOT of an ended one", []txn.Record{snapshot(1, ad)}, "SNAPSHOT in state ABORTED"},
		{"SNAPSHOT of an open one with resolved participants", []txn.Record{done(snapshot(1, o, "a"), "a")}, "SNAPSHOT in state OPEN"},
		{"SNAPSHOT with a resolved stranger", []txn.Record{done(snapshot(1, c, "a"), "b")}, "never added: persistent://tenant/namespace/b"},
		{"OUTCOME of a live one", []txn.Record{outcome(1, c)}, "OUTCOME in state COMMITTING"},
		{"unknown operation", []txn.Record{{Op: 99, Least: 1}}, "unknown operation 99"},
		{"NEW is gone and nothing follows", []txn.Record{opened(1), added(2, "a"), opened(3)},
			"log entry 7: record of transaction (1,2) whose NEW is gone"},
		{"NEW of a decision is gone", []txn.Record{updated(2, o, a)}, "log entry 7: record of transaction (1,2) whose NEW is gone"},
		{"NEW of a RESOLVE is gone", []txn.Record{resolved(3, "a"), resolved(2, "a")}, "record of transaction (1,2) whose NEW is gone"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := replay(test.log)
			switch {
			case test.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func replay(log []txn.Record) error {
	m := fsm.New(fsm.Options{TC: 1, Preserver: preserver.Options{Count: 10, UnnamedCount: 10, Retention: 1000, Max: 100}})
	if err := m.Replay(txn.LogEntry{Index: 7, Records: log}); err != nil {
		return err
	}
	_, _, err := m.Recover(1, 0)
	return err
}

// TestRecoverTellsHowFarTheClockIsBehind: ids that were reserved under a later clock show it.
func TestRecoverTellsHowFarTheClockIsBehind(t *testing.T) {
	for _, c := range []struct {
		now    int64
		next   uint64
		behind int64
	}{
		{5_000, 0, 0},
		{5_000, 5 << 20, 0},
		{5_000, 5<<20 + 70_000, 0},
		{5_000, 65 << 20, 60_000},
	} {
		m := fsm.New(fsm.Options{TC: 1})
		_, behind, err := m.Recover(c.now, c.next)
		if err != nil || behind != c.behind {
			t.Errorf("now %d, next %d: %d behind, %v, want %d", c.now, c.next, behind, err, c.behind)
		}
	}
}

// TestIDsAreAboveTheLog holds TC-21 for a log whose bound of ids is not there: no id of the log is handed out again.
func TestIDsAreAboveTheLog(t *testing.T) {
	for name, log := range map[string][]txn.Record{
		"live":    {opened(9 << 20)},
		"ended":   {opened(9 << 20), updated(9<<20, txn.Open, txn.Aborted)},
		"outcome": {outcome(9<<20, txn.Committed)},
	} {
		t.Run(name, func(t *testing.T) {
			m := fsm.New(fsm.Options{TC: 1})
			if err := m.Replay(txn.LogEntry{Index: 1, Records: log}); err != nil {
				t.Fatal(err)
			}
			if _, _, err := m.Recover(5_000, 0); err != nil {
				t.Fatal(err)
			}
			m.Step(5_000, &fsm.NewTxn{TTLMillis: 100})
			r := m.Take()
			if id := effects(r)[0].ID.Least; id <= 9<<20 || r.Batch.Next <= id {
				t.Errorf("id %d, bound %d, want both above the log's %d", id, r.Batch.Next, 9<<20)
			}
		})
	}
}
