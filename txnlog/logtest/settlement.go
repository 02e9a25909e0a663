package logtest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

// settle is the commit of a transaction, with a settlement behind fences that deletes a mark and makes a key.
func settle(least uint64, fences ...txn.Fence) txn.Change {
	return txn.Change{
		Record:     txn.Record{Op: txn.OpUpdate, Least: least, Expected: txn.Open, Status: txn.Committed, Time: 1002, Place: least},
		CloseAll:   true,
		Settlement: &txn.Settlement{Fences: fences, Puts: []string{made(least)}, Deletes: []string{mark(least)}},
	}
}

func made(least uint64) string { return fmt.Sprint(Participants+"made/", least) }
func mark(least uint64) string { return fmt.Sprint(Participants+"mark/", least) }

// began opens transactions that have marks.
func began(t testing.TB, store Store, log Log, transactions ...uint64) {
	t.Helper()
	for _, least := range transactions {
		store.Put(t, mark(least))
		add(t, log, batch(newTxn(least), addPartitions(least, "a")))
	}
}

// wantSettled holds what is stored of a transaction to its being settled or open.
func wantSettled(t testing.TB, store Store, least uint64, settled bool) {
	t.Helper()
	if store.Exists(t, made(least)) != settled || store.Exists(t, mark(least)) == settled || (len(store.OpenKeys(t, least)) == 0) != settled {
		t.Errorf("transaction %d: key made %t, mark there %t, open keys %v; want settled %t",
			least, store.Exists(t, made(least)), store.Exists(t, mark(least)), store.OpenKeys(t, least), settled)
	}
}

func settlement(t *testing.T, store Store) {
	log := opened(t, store)
	began(t, store, log, 1, 2, 3)
	a, b := store.Put(t, Participants+"a"), store.Put(t, Participants+"b")
	add(t, log, batch(settle(1, a, b), newTxn(4), settle(2, a)))
	for least, settled := range map[uint64]bool{1: true, 2: true, 3: false} {
		wantSettled(t, store, least, settled)
	}
	got := load(t, store.NewTerm(t)).records()
	wantRecords(t, got[len(got)-3:], records(settle(1), newTxn(4), settle(2))...)
}

func movedFence(t *testing.T, store Store) {
	log := opened(t, store)
	began(t, store, log, 1, 2)
	a, b := store.Put(t, Participants+"a"), store.Put(t, Participants+"b")
	store.Put(t, Participants+"b")
	_, err := log.Append(t.Context(), batch(settle(1, a), settle(2, a, b)))
	wantError(t, "append behind a moved fence", err, txn.ErrFenced)
	for least := range uint64(2) {
		wantSettled(t, store, 1+least, false)
	}
	if got := load(t, store.NewTerm(t)).records(); len(got) != 4 {
		t.Errorf("%d records, want the 4 of before", len(got))
	}
}

func unknownSettlement(t *testing.T, store Store) {
	for least, fate := range map[uint64]Fate{1: LoseAnswer, 2: LoseWrite} {
		log := opened(t, store)
		began(t, store, log, least)
		fence := store.Put(t, Participants+"a")
		store.Intercept(func() Fate { return fate })
		_, err := log.Append(t.Context(), batch(settle(least, fence)))
		wantError(t, "append", err, txn.ErrUnknownResult)
		store.Intercept(nil)
		wantSettled(t, store, least, fate == LoseAnswer)
	}
}

// Settlements count with the operations of a write, and their fences with what it compares.
func cutSettlements(t *testing.T, store Store) {
	const transactions = 30
	log := opened(t, store)
	var fences []txn.Fence
	var changes []txn.Change
	for least := range uint64(transactions) {
		began(t, store, log, least)
		for i := range 2 {
			fences = append(fences, store.Put(t, fmt.Sprintf("%s%d/%d", Participants, least, i)))
		}
		changes = append(changes, settle(least, fences[len(fences)-2:]...))
	}
	if at := add(t, log, batch(changes...)); at.First == at.Last {
		t.Error("one entry, want the batch to be cut")
	}
	for least := range uint64(transactions) {
		wantSettled(t, store, least, true)
	}
	store.Put(t, fences[len(fences)-1].Key)
	began(t, store, log, transactions)
	again := append(append([]txn.Change(nil), changes...), settle(transactions, fences[len(fences)-1]))
	_, err := log.Append(t.Context(), batch(again...))
	wantError(t, "append whose last piece is behind a moved fence", err, txn.ErrUnknownResult)
	if errors.Is(err, txn.ErrFenced) {
		t.Errorf("%v, but a part was written", err)
	}
}
