package logtest

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

// Limits say how much of a batch the logs of a store put into one write.
type Limits uint8

// The limits that a test asks for.
const (
	Normal Limits = iota
	// Tight cuts a batch of some dozen changes into several writes.
	Tight
)

// Run holds the stores that open returns to the contract.
func Run(t *testing.T, open func(t testing.TB, limits Limits) Store) {
	for _, c := range []struct {
		name   string
		limits Limits
		test   func(t *testing.T, store Store)
	}{
		{"an empty log", Normal, emptyLog},
		{"records come back in order", Normal, inOrder},
		{"append before load is refused", Normal, appendBeforeLoad},
		{"next lasts", Normal, nextLasts},
		{"drop deletes a prefix", Normal, dropPrefix},
		{"an empty batch proves the term", Normal, emptyBatch},
		{"open keys exist from addition to decision", Normal, openKeys},
		{"open keys folded within a batch", Normal, foldedOpenKeys},
		{"a reader's error comes back unchanged", Normal, visitError},
		{"a prefix is read up to its bytes", Normal, readPrefix},
		{"a long log is read whole", Normal, longLog},
		{"an ended term neither writes nor proves nor loads", Normal, endedTerm},
		{"an answer is lost", Normal, lostAnswer},
		{"a write is lost", Normal, lostWrite},
		{"a delayed write after a reload is refused", Normal, delayedWrite},
		{"a batch is cut between changes", Tight, cutBatch},
		{"a crash between pieces leaves a prefix", Tight, crashBetweenPieces},
		{"a term ends between pieces", Tight, termEndsBetweenPieces},
		{"an addition is cut between participants", Tight, cutAddition},
		{"a settlement is written with its record", Normal, settlement},
		{"a settlement behind a fence that has moved writes nothing", Normal, movedFence},
		{"a settlement of unknown fate is whole or not at all", Normal, unknownSettlement},
		{"a batch is cut between settlements", Tight, cutSettlements},
		{"damage stops the load", Normal, damage},
		{"a hole stops the load", Normal, hole},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t, c.limits)) })
	}
}

func emptyLog(t *testing.T, store Store) {
	h := load(t, store.NewTerm(t))
	if h.next != 0 || len(h.entries) != 0 {
		t.Fatalf("%+v, want nothing", h)
	}
}

func inOrder(t *testing.T, store Store) {
	first := []txn.Change{newTxn(1), addPartitions(1, "persistent://a/b/c"), newTxn(2)}
	second := []txn.Change{decide(1), newTxn(3)}
	log := opened(t, store)
	one := add(t, log, batch(first...))
	two := add(t, log, batch(second...))
	if one.First != one.Last || two.First != one.Last+1 || two.Last != two.First {
		t.Errorf("entries %+v and %+v, want one each, one behind the other", one, two)
	}
	if one.Bytes != len(store.Value(t, one.First)) {
		t.Errorf("%d bytes appended, %d stored", one.Bytes, len(store.Value(t, one.First)))
	}
	h := load(t, store.NewTerm(t))
	wantRecords(t, h.records(), records(append(first, second...)...)...)
	for i, want := range []txn.Appended{one, two} {
		if got := h.entries[i]; got.Index != want.First || got.Bytes != want.Bytes {
			t.Errorf("entry %d of %d bytes, want %d of %d", got.Index, got.Bytes, want.First, want.Bytes)
		}
	}
}

func appendBeforeLoad(t *testing.T, store Store) {
	log := store.NewTerm(t)
	if _, err := log.Append(t.Context(), batch(newTxn(1))); err == nil {
		t.Fatal("appended at an unknown index")
	}
}

// The id counter is recovered from the store (TC-21: by next).
func nextLasts(t *testing.T, store Store) {
	log := opened(t, store)
	add(t, log, txn.Batch{Next: 1 << 52})
	add(t, log, batch(newTxn(1)))
	if h := load(t, store.NewTerm(t)); h.next != 1<<52 {
		t.Fatalf("next %d, want %d", h.next, uint64(1)<<52)
	}
	log = opened(t, store)
	add(t, log, txn.Batch{Changes: []txn.Change{newTxn(2)}, Next: 1<<52 + 1})
	if h := load(t, store.NewTerm(t)); h.next != 1<<52+1 || len(h.entries) < 2 {
		t.Fatalf("next %d of %d entries, want %d", h.next, len(h.entries), uint64(1)<<52+1)
	}
}

func dropPrefix(t *testing.T, store Store) {
	log := opened(t, store)
	var third uint64
	for least := range uint64(5) {
		at := add(t, log, batch(newTxn(least)))
		if least == 3 {
			third = at.First
		}
	}
	last := add(t, log, txn.Batch{Changes: []txn.Change{newTxn(5)}, DropBefore: third})
	log = store.NewTerm(t)
	wantRecords(t, load(t, log).records(), records(newTxn(3), newTxn(4), newTxn(5))...)
	if at := add(t, log, batch(newTxn(6))); at.First != last.Last+1 {
		t.Errorf("entry %d after %d", at.First, last.Last)
	}
	all := add(t, log, txn.Batch{Changes: []txn.Change{newTxn(7)}, DropBefore: last.Last + 2})
	log = store.NewTerm(t)
	wantRecords(t, load(t, log).records(), records(newTxn(7))...)
	if at := add(t, log, batch(newTxn(8))); at.First != all.Last+1 {
		t.Errorf("entry %d after %d: an index was used twice", at.First, all.Last)
	}
}

func emptyBatch(t *testing.T, store Store) {
	log := opened(t, store)
	add(t, log, txn.Batch{})
	if h := load(t, log); len(h.entries) != 0 {
		t.Errorf("%d entries of an empty batch", len(h.entries))
	}
	store.EndTerm(t)
	_, err := log.Append(t.Context(), txn.Batch{})
	wantError(t, "append nothing", err, txn.ErrFenced)
}

func openKeys(t *testing.T, store Store) {
	log := opened(t, store)
	add(t, log, batch(newTxn(1), addPartitions(1, "a", "b"), newTxn(2), addPartitions(2, "a")))
	if got := store.OpenKeys(t, 1); !slices.Equal(got, hashes("a", "b")) {
		t.Errorf("open keys %v", got)
	}
	add(t, log, batch(addPartitions(1, "b", "c")))
	if got := store.OpenKeys(t, 1); !slices.Equal(got, hashes("a", "b", "c")) {
		t.Errorf("open keys %v", got)
	}
	add(t, log, batch(decide(1)))
	if got := store.OpenKeys(t, 1); len(got) != 0 {
		t.Errorf("open keys %v after the decision", got)
	}
	if got := store.OpenKeys(t, 2); !slices.Equal(got, hashes("a")) {
		t.Errorf("open keys %v of another transaction", got)
	}
}

// etcd refuses two operations on one key in one transaction, and a put within a deleted range.
func foldedOpenKeys(t *testing.T, store Store) {
	log := opened(t, store)
	add(t, log, batch(newTxn(1), newTxn(2), addPartitions(1, "a"), addPartitions(1, "a", "b"), addPartitions(2, "a"),
		decide(1), decide(1), newTxn(3), addPartitions(3, "a")))
	for least, want := range map[uint64][]string{1: nil, 2: hashes("a"), 3: hashes("a")} {
		if got := store.OpenKeys(t, least); !slices.Equal(got, want) {
			t.Errorf("open keys of %d: %v, want %v", least, got, want)
		}
	}
	both := addPartitions(4, "a")
	both.CloseAll = true
	add(t, log, batch(both))
	if got := store.OpenKeys(t, 4); len(got) != 0 {
		t.Errorf("open keys %v", got)
	}
	if got := len(load(t, store.NewTerm(t)).records()); got != 10 {
		t.Errorf("%d records, folding must not lose one of 10", got)
	}
}

func visitError(t *testing.T, store Store) {
	log := opened(t, store)
	for least := range uint64(3) {
		add(t, log, batch(newTxn(least)))
	}
	enough, visits := errors.New("enough"), 0
	_, err := store.NewTerm(t).Load(t.Context(), func(txn.LogEntry) error {
		visits++
		if visits == 2 {
			return enough
		}
		return nil
	})
	if err != enough || visits != 2 {
		t.Fatalf("%v after %d visits, want the reader's error after 2", err, visits)
	}
}

func readPrefix(t *testing.T, store Store) {
	log := opened(t, store)
	if entries, err := log.ReadPrefix(t.Context(), 1000); err != nil || len(entries) != 0 {
		t.Fatalf("%v, %v of an empty log", entries, err)
	}
	var size int
	for least := range uint64(100) {
		size = add(t, log, batch(newTxn(least))).Bytes
	}
	for maxBytes, want := range map[int]int{0: 1, size: 1, 10 * size: 10, 1000 * size: 100} {
		entries, err := log.ReadPrefix(t.Context(), maxBytes)
		if err != nil || len(entries) != want {
			t.Fatalf("%d entries, %v for %d bytes, want %d", len(entries), err, maxBytes, want)
		}
		for i, entry := range entries {
			wantRecords(t, entry.Records, newTxn(uint64(i)).Record)
		}
	}
}

func longLog(t *testing.T, store Store) {
	log := opened(t, store)
	const entries = 400
	for least := range uint64(entries) {
		add(t, log, batch(newTxn(least)))
	}
	got := load(t, store.NewTerm(t)).records()
	if len(got) != entries {
		t.Fatalf("%d records, want %d", len(got), entries)
	}
	for i, r := range got {
		wantRecords(t, []txn.Record{r}, newTxn(uint64(i)).Record)
	}
}

// A corrupt, unknown-version or truncated value stops the load with its key and reason.
func damage(t *testing.T, store Store) {
	log := opened(t, store)
	add(t, log, batch(newTxn(1)))
	at := add(t, log, batch(newTxn(2), addPartitions(2, "a")))
	add(t, log, batch(newTxn(3)))
	good := store.Value(t, at.First)
	flipped := slices.Clone(good)
	flipped[len(flipped)/2] ^= 4
	unknown := slices.Clone(good)
	unknown[0]++
	for what, value := range map[string][]byte{
		"truncated": good[:len(good)-1], "flipped bit": flipped, "unknown version": unknown,
		"trailing byte": append(slices.Clone(good), 0), "empty": {},
	} {
		store.SetValue(t, at.First, value)
		wantCorrupt(t, what, loadError(t, store.NewTerm(t)), at.First)
	}
	store.SetValue(t, at.First, good)
	load(t, store.NewTerm(t))
}

func hole(t *testing.T, store Store) {
	log := opened(t, store)
	for least := range uint64(3) {
		add(t, log, batch(newTxn(least)))
	}
	at := add(t, log, batch(newTxn(3)))
	store.SetValue(t, at.First-1, nil)
	wantCorrupt(t, "hole", loadError(t, store.NewTerm(t)), at.First)
}

// wantCorrupt holds an error to naming the key of an entry and a reason.
func wantCorrupt(t testing.TB, what string, err error, index uint64) {
	t.Helper()
	var corrupt *txn.CorruptError
	if !errors.As(err, &corrupt) {
		t.Fatalf("%s: %v, want a *txn.CorruptError", what, err)
	}
	suffix := fmt.Sprintf("/log/%016x", index)
	if len(corrupt.Key) < len(suffix) || corrupt.Key[len(corrupt.Key)-len(suffix):] != suffix || corrupt.Reason == "" {
		t.Errorf("%s: key %q, reason %q, want the key of entry %d", what, corrupt.Key, corrupt.Reason, index)
	}
}
