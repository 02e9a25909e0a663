package txnbuffer

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// TestMaxReadAgainstModel: the log may be read up to the lowest first entry of an unresolved transaction.
func TestMaxReadAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := New()
		first := make(map[txn.ID]ledger.Position)
		end := ledger.Position{Ledger: 1}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			id := txn.ID{Least: rapid.Uint64Range(1, 6).Draw(t, "id")}
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				end = end.Next() // a plain entry
			case 1:
				b.Wrote(id, end, end)
				if _, known := first[id]; !known {
					first[id] = end
				}
				end = end.Next()
			case 2:
				action := txn.Action(rapid.IntRange(0, 1).Draw(t, "action"))
				transaction, err := b.End(id, action)
				if _, known := first[id]; known != (transaction != nil) || err != nil {
					t.Fatalf("end of %v: %v, %v; known %v", id, transaction, err, known)
				}
				b.Ended(id)
				delete(first, id)
			case 3:
				end = ledger.Position{Ledger: end.Ledger + 1}
			}
			want := end
			for _, p := range first {
				if p.Before(want) {
					want = p
				}
			}
			if got := b.MaxRead(end); got != want || b.Len() != len(first) {
				t.Fatalf("read before %v with %d open, want %v with %d", got, b.Len(), want, len(first))
			}
		}
	})
}

// TestContraryEndWhileApplied holds O-6.
func TestContraryEndWhileApplied(t *testing.T) {
	b, id := New(), txn.ID{Least: 7}
	b.Wrote(id, ledger.Position{Ledger: 1}, ledger.Position{Ledger: 1, Entry: 3})
	for range 2 {
		if transaction, err := b.End(id, txn.Abort); err != nil || transaction == nil {
			t.Fatalf("abort: %v, %v", transaction, err)
		}
	}
	var status *txn.StatusError
	if _, err := b.End(id, txn.Commit); !errors.As(err, &status) || status.Got != txn.Aborting {
		t.Fatalf("commit while aborting: %v", err)
	}
	b.Ended(id)
	if transaction, err := b.End(id, txn.Commit); transaction != nil || err != nil {
		t.Fatalf("commit of what is gone: %v, %v", transaction, err)
	}
}

func TestBlocksOfARestoredTransaction(t *testing.T) {
	b, id := New(), txn.ID{Least: 7}
	at := func(e uint64) ledger.Position { return ledger.Position{Ledger: 1, Entry: e} }
	b.Restore(id, at(0), at(1))
	b.Wrote(id, at(5), at(5))
	transaction := b.Get(id)
	if transaction.Known() || transaction.First != at(0) || transaction.Last != at(5) {
		t.Fatalf("restored as %+v", transaction)
	}
	transaction.Found([]ledger.Position{at(0), at(1)})
	transaction.Found(nil)
	if !transaction.Known() || len(transaction.Blocks) != 3 || transaction.Blocks[2] != at(5) {
		t.Fatalf("blocks %v", transaction.Blocks)
	}
}
