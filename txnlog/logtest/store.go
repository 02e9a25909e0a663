package logtest

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

// TC is the coordinator whose log is tested.
const TC = 7

// Participants is the prefix of the keys of participants. A store that is opened has none.
const Participants = "/participant/"

// patience is how long something may take that must happen.
const patience = 30 * time.Second

// Log is coordinator.Log.
type Log interface {
	Load(ctx context.Context, visit func(entry txn.LogEntry) error) (next uint64, err error)
	Append(ctx context.Context, batch txn.Batch) (txn.Appended, error)
	Prove(ctx context.Context) error
	ReadPrefix(ctx context.Context, maxBytes int) ([]txn.LogEntry, error)
}

// Fate is what becomes of a write.
type Fate uint8

// The fates. The writer is told nothing of the last two.
const (
	Apply Fate = iota
	LoseAnswer
	LoseWrite
)

// Store is what logs of an implementation write to, as a test sees it.
type Store interface {
	// NewTerm ends the current term and opens the log in a new one.
	NewTerm(t testing.TB) Log
	// EndTerm ends the current term; nobody leads then.
	EndTerm(t testing.TB)
	// Intercept has f decide the fate of every later write of a log; nil applies all. f may block: the write is under way.
	Intercept(f func() Fate)
	// Value is the raw value at index, nil if there is none.
	Value(t testing.TB, index uint64) []byte
	// SetValue overwrites the raw value at index; nil deletes it.
	SetValue(t testing.TB, index uint64, value []byte)
	// OpenKeys are the hashes of a transaction's open keys, in order.
	OpenKeys(t testing.TB, least uint64) []string
	// Put puts a key of a participant and returns the fence that it is since.
	Put(t testing.TB, key string) txn.Fence
	// Exists reports whether a key of a participant is there.
	Exists(t testing.TB, key string) bool
}

// history is what a load brought.
type history struct {
	next    uint64
	entries []txn.LogEntry
}

func (h history) records() []txn.Record {
	var records []txn.Record
	for _, entry := range h.entries {
		records = append(records, entry.Records...)
	}
	return records
}

func load(t testing.TB, log Log) history {
	t.Helper()
	var h history
	next, err := log.Load(t.Context(), func(entry txn.LogEntry) error {
		entry.Records = slices.Clone(entry.Records)
		h.entries = append(h.entries, entry)
		return nil
	})
	if err != nil {
		t.Fatalf("load: %v", err)
	}
	h.next = next
	return h
}

func loadError(t testing.TB, log Log) error {
	t.Helper()
	_, err := log.Load(t.Context(), func(txn.LogEntry) error { return nil })
	return err
}

// opened is a new term's log after its load.
func opened(t testing.TB, store Store) Log {
	t.Helper()
	log := store.NewTerm(t)
	load(t, log)
	return log
}

func add(t testing.TB, log Log, batch txn.Batch) txn.Appended {
	t.Helper()
	appended, err := log.Append(t.Context(), batch)
	if err != nil {
		t.Fatalf("append: %v", err)
	}
	return appended
}

func wantRecords(t testing.TB, got []txn.Record, want ...txn.Record) {
	t.Helper()
	if len(got) != len(want) || len(want) > 0 && !reflect.DeepEqual(got, want) {
		t.Fatalf("records\n%+v\nwant\n%+v", got, want)
	}
}

func wantError(t testing.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("%s: %v, want %v", what, err, want)
	}
}

func newTxn(least uint64) txn.Change {
	return txn.Change{Record: txn.Record{
		Op: txn.OpNew, Least: least, StartTime: 1000, Time: 1000, TimeoutMillis: 60000,
		Owner: txn.Owner{Role: "role", Known: true}, ClientName: "name",
	}}
}

func addPartitions(least uint64, topics ...string) txn.Change {
	c := txn.Change{Record: txn.Record{Op: txn.OpAddPartition, Least: least, Time: 1001}}
	for _, topic := range topics {
		c.Record.Participants = append(c.Record.Participants, txn.Participant{Topic: topic})
	}
	c.Opens = c.Record.Participants
	return c
}

func decide(least uint64) txn.Change {
	return txn.Change{
		Record:   txn.Record{Op: txn.OpUpdate, Least: least, Expected: txn.Open, Status: txn.Committing, Time: 1002},
		CloseAll: true,
	}
}

func batch(changes ...txn.Change) txn.Batch { return txn.Batch{Changes: changes} }

func records(changes ...txn.Change) []txn.Record {
	var list []txn.Record
	for _, c := range changes {
		list = append(list, c.Record)
	}
	return list
}

func hashes(topics ...string) []string {
	var list []string
	for _, topic := range topics {
		list = append(list, txn.Participant{Topic: topic}.Hash())
	}
	slices.Sort(list)
	return list
}
