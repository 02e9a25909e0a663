package logtest

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

func endedTerm(t *testing.T, store Store) {
	old := opened(t, store)
	add(t, old, batch(newTxn(1)))
	log := opened(t, store)
	for range 2 {
		_, err := old.Append(t.Context(), batch(newTxn(2), addPartitions(2, "a")))
		wantError(t, "append in an old term", err, txn.ErrFenced)
		wantError(t, "prove an old term", old.Prove(t.Context()), txn.ErrFenced)
	}
	wantError(t, "load in an old term", loadError(t, old), txn.ErrFenced)
	if err := log.Prove(t.Context()); err != nil {
		t.Errorf("prove the current term: %v", err)
	}
	store.EndTerm(t)
	wantError(t, "prove without a leader", log.Prove(t.Context()), txn.ErrFenced)
	_, err := log.Append(t.Context(), batch(newTxn(3)))
	wantError(t, "append without a leader", err, txn.ErrFenced)
	if got := store.OpenKeys(t, 2); len(got) != 0 {
		t.Errorf("open keys %v of a refused batch", got)
	}
	wantRecords(t, load(t, store.NewTerm(t)).records(), newTxn(1).Record)
}

// TC-20: only the load of a new term says what became of an append with an unknown result.
func lostAnswer(t *testing.T, store Store) {
	log := opened(t, store)
	store.Intercept(func() Fate { return LoseAnswer })
	_, err := log.Append(t.Context(), batch(newTxn(1)))
	wantError(t, "append", err, txn.ErrUnknownResult)
	store.Intercept(nil)
	if _, err := log.Append(t.Context(), batch(newTxn(2))); err == nil {
		t.Error("appended behind an entry of unknown fate")
	}
	wantRecords(t, load(t, store.NewTerm(t)).records(), newTxn(1).Record)
}

func lostWrite(t *testing.T, store Store) {
	log := opened(t, store)
	store.Intercept(func() Fate { return LoseWrite })
	_, err := log.Append(t.Context(), batch(newTxn(1)))
	wantError(t, "append", err, txn.ErrUnknownResult)
	store.Intercept(nil)
	log = store.NewTerm(t)
	wantRecords(t, load(t, log).records())
	add(t, log, batch(newTxn(2)))
	wantRecords(t, load(t, store.NewTerm(t)).records(), newTxn(2).Record)
}

// A write that was sent in one term and arrives in the next, behind its load, changes nothing.
func delayedWrite(t *testing.T, store Store) {
	old := opened(t, store)
	add(t, old, batch(newTxn(1)))
	sent, release, result := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	store.Intercept(func() Fate {
		close(sent)
		<-release
		return Apply
	})
	go func() {
		_, err := old.Append(t.Context(), batch(newTxn(2), addPartitions(2, "a")))
		result <- err
	}()
	receive(t, "the write is under way", sent)
	store.Intercept(nil)

	log := store.NewTerm(t)
	wantRecords(t, load(t, log).records(), newTxn(1).Record)
	close(release)
	err := receive(t, "the delayed write ends", result)
	wantError(t, "delayed append", err, txn.ErrFenced)
	if got := store.OpenKeys(t, 2); len(got) != 0 {
		t.Errorf("open keys %v of the delayed write", got)
	}
	add(t, log, batch(newTxn(3)))
	wantRecords(t, load(t, store.NewTerm(t)).records(), records(newTxn(1), newTxn(3))...)
}

func receive[T any](t testing.TB, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatalf("%s: did not happen", what)
		panic("unreachable")
	}
}

// manyChanges are more than a tight store writes at once.
func manyChanges() []txn.Change {
	var changes []txn.Change
	for least := range uint64(40) {
		changes = append(changes, newTxn(least), addPartitions(least, "a", "b"))
	}
	for least := range uint64(20) {
		changes = append(changes, decide(least))
	}
	return changes
}

func cutBatch(t *testing.T, store Store) {
	log := opened(t, store)
	keep := add(t, log, batch(newTxn(1000)))
	changes := manyChanges()
	at := add(t, log, txn.Batch{Changes: changes, Next: 99, DropBefore: keep.First + 1})
	if at.Last == at.First {
		t.Fatal("one entry, want the batch to be cut")
	}
	if at.First != keep.Last+1 {
		t.Errorf("entry %d after %d", at.First, keep.Last)
	}
	size := 0
	for index := at.First; index <= at.Last; index++ {
		size += len(store.Value(t, index))
	}
	if size != at.Bytes {
		t.Errorf("%d bytes appended, %d stored", at.Bytes, size)
	}
	h := load(t, store.NewTerm(t))
	wantRecords(t, h.records(), records(changes...)...)
	if h.next != 99 {
		t.Errorf("next %d", h.next)
	}
	for least := range uint64(40) {
		want := hashes("a", "b")
		if least < 20 {
			want = nil
		}
		if got := store.OpenKeys(t, least); !slices.Equal(got, want) {
			t.Errorf("open keys of %d: %v, want %v", least, got, want)
		}
	}
}

// Next is in force with the first piece, a drop with the last: whatever prefix of the pieces is there, no id is used twice and
// nothing is gone that a later piece carries on.
func crashBetweenPieces(t *testing.T, store Store) {
	log := opened(t, store)
	keep := add(t, log, batch(newTxn(1000)))
	var writes atomic.Int32
	store.Intercept(func() Fate {
		if writes.Add(1) == 2 {
			return LoseWrite
		}
		return Apply
	})
	changes := manyChanges()
	_, err := log.Append(t.Context(), txn.Batch{Changes: changes, Next: 99, DropBefore: keep.First + 1})
	wantError(t, "append", err, txn.ErrUnknownResult)
	if errors.Is(err, txn.ErrFenced) {
		t.Error("an error that says that nothing was written")
	}
	if n := writes.Load(); n != 2 {
		t.Fatalf("%d writes, want none behind the one of unknown fate", n)
	}
	store.Intercept(nil)
	h := load(t, store.NewTerm(t))
	got := h.records()
	if len(got) < 2 || len(got) > len(changes) {
		t.Fatalf("%d records, want a part of %d", len(got), len(changes))
	}
	wantRecords(t, got, append([]txn.Record{newTxn(1000).Record}, records(changes[:len(got)-1]...)...)...)
	if h.next != 99 {
		t.Errorf("next %d, want it with the first piece", h.next)
	}
}

// An error that says that nothing was written would be a lie.
func termEndsBetweenPieces(t *testing.T, store Store) {
	log := opened(t, store)
	var writes atomic.Int32
	store.Intercept(func() Fate {
		if writes.Add(1) == 2 {
			store.EndTerm(t)
		}
		return Apply
	})
	_, err := log.Append(t.Context(), batch(manyChanges()...))
	wantError(t, "append", err, txn.ErrUnknownResult)
	if errors.Is(err, txn.ErrFenced) {
		t.Errorf("%v, but a part was written", err)
	}
	store.Intercept(nil)
	if len(load(t, store.NewTerm(t)).entries) != 1 {
		t.Error("want the first piece")
	}
}

func cutAddition(t *testing.T, store Store) {
	var topics []string
	for i := range 500 {
		topics = append(topics, string(rune('a'+i%26))+string(rune('0'+i/26)))
	}
	log := opened(t, store)
	at := add(t, log, batch(newTxn(1), addPartitions(1, topics...), newTxn(2)))
	if at.Last == at.First {
		t.Fatal("one entry, want the addition to be cut")
	}
	got := load(t, store.NewTerm(t)).records()
	wantRecords(t, got[:1], newTxn(1).Record)
	wantRecords(t, got[len(got)-1:], newTxn(2).Record)
	var participants []txn.Participant
	for _, r := range got[1 : len(got)-1] {
		if r.Op != txn.OpAddPartition || r.Least != 1 || r.Time != 1001 {
			t.Fatalf("record %+v, want a part of the addition", r)
		}
		participants = append(participants, r.Participants...)
	}
	if !slices.Equal(participants, addPartitions(1, topics...).Record.Participants) {
		t.Error("the parts do not add up to the addition")
	}
	if got := store.OpenKeys(t, 1); !slices.Equal(got, hashes(topics...)) {
		t.Errorf("%d open keys, want %d", len(got), len(topics))
	}
}
