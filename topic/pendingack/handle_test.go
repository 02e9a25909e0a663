package pendingack

import (
	"errors"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/pulsar-tc/pulsar-tc/topic/cursor"
	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

var x, y = txn.ID{Least: 1}, txn.ID{Least: 2}

func at(e uint64) ledger.Position { return ledger.Position{Ledger: 1, Entry: e} }

func whole(e uint64) Hold { return Hold{Position: at(e)} }

func bits(e uint64, acked uint64) Hold {
	return Hold{Position: at(e), Size: 4, Acked: ledger.Bits{acked}}
}

// TestIndividualConflicts has what may be acknowledged or held already, and what comes.
func TestIndividualConflicts(t *testing.T) {
	cases := []struct {
		name  string
		acked []Hold // in the cursor
		held  []Hold // by x
		id    txn.ID
		holds []Hold
		want  error
	}{
		{"free", nil, nil, y, []Hold{whole(1), whole(2)}, nil},
		{"empty list", nil, nil, y, nil, nil},
		{"the same entry twice in one command", nil, nil, y, []Hold{whole(1), whole(1)}, nil},
		{"the same index twice in one command", nil, nil, y, []Hold{bits(1, 0b1), bits(1, 0b1)}, txn.ErrConflict},
		{"acknowledged before the frontier", []Hold{whole(0)}, nil, y, []Hold{whole(0)}, txn.ErrConflict},
		{"acknowledged behind the frontier", []Hold{whole(3)}, nil, y, []Hold{whole(3)}, txn.ErrConflict},
		{"pending in another transaction", nil, []Hold{whole(1)}, y, []Hold{whole(2), whole(1)}, txn.ErrConflict},
		{"pending in the same transaction", nil, []Hold{whole(1)}, x, []Hold{whole(1)}, txn.ErrConflict},
		{"indexes acknowledged in the cursor", []Hold{bits(1, 0b11)}, nil, y, []Hold{bits(1, 0b10)}, txn.ErrConflict},
		{"other indexes than in the cursor", []Hold{bits(1, 0b11)}, nil, y, []Hold{bits(1, 0b100)}, nil},
		{"indexes pending", nil, []Hold{bits(1, 0b11)}, y, []Hold{bits(1, 0b110)}, txn.ErrConflict},
		{"indexes pending in the same transaction", nil, []Hold{bits(1, 0b11)}, x, []Hold{bits(1, 0b10)}, txn.ErrConflict},
		{"disjoint indexes of two transactions", nil, []Hold{bits(1, 0b11)}, y, []Hold{bits(1, 0b1100)}, nil},
		{"whole entry over pending indexes", nil, []Hold{bits(1, 0b1)}, y, []Hold{whole(1)}, txn.ErrConflict},
		{"index of a pending entry", nil, []Hold{whole(1)}, y, []Hold{bits(1, 0b1)}, txn.ErrConflict},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			h, cur := New(), cursor.New(at(0))
			for _, a := range c.acked {
				if a.Acked == nil {
					cur.Ack(a.Position)
				} else {
					cur.AckBits(a.Position, a.Acked, a.Size)
				}
			}
			if _, err := h.Individual(x, c.held, cur); err != nil {
				t.Fatal(err)
			}
			before := h.Held(c.id)
			before.Individual = append([]Hold(nil), before.Individual...)
			_, err := h.Individual(c.id, c.holds, cur)
			if !errors.Is(err, c.want) || c.want == nil && err != nil {
				t.Fatalf("%v, want %v", err, c.want)
			}
			if err != nil {
				if err.Error() == "" {
					t.Fatal("a refusal without text reads as success")
				}
				if after := h.Held(c.id); len(after.Individual) != len(before.Individual) {
					t.Fatalf("refused, and holds %v, want %v", after, before)
				}
			}
		})
	}
}

// TestCumulativeConflicts does the same for cumulative ones.
func TestCumulativeConflicts(t *testing.T) {
	cases := []struct {
		name string
		held []Hold // by x, cumulative, one after the other
		id   txn.ID
		hold Hold
		want error
	}{
		{"first", nil, y, whole(4), nil},
		{"at the mark-delete position", nil, y, whole(0), txn.ErrConflict},
		{"held by another transaction", []Hold{whole(4)}, y, whole(5), txn.ErrConflict},
		{"higher in the same", []Hold{whole(4), whole(5)}, x, whole(6), nil},
		{"equal in the same", []Hold{whole(4)}, x, whole(4), txn.ErrConflict},
		{"lower in the same", []Hold{whole(4)}, x, whole(3), txn.ErrConflict},
		{"more of the same batch", []Hold{bits(4, 0b1)}, x, bits(4, 0b11), nil},
		{"as many of the same batch, and others", []Hold{bits(4, 0b1)}, x, bits(4, 0b110), txn.ErrConflict},
		{"less of the same batch", []Hold{bits(4, 0b11)}, x, bits(4, 0b1), txn.ErrConflict},
		{"all of the same batch", []Hold{bits(4, 0b11)}, x, whole(4), nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			h, cur := New(), cursor.New(at(0))
			cur.Ack(at(0))
			for _, hold := range c.held {
				if _, err := h.Cumulative(x, hold, cur); err != nil {
					t.Fatal(err)
				}
			}
			before := h.Held(c.id).Cumulative
			got, err := h.Cumulative(c.id, c.hold, cur)
			if !errors.Is(err, c.want) || c.want == nil && err != nil {
				t.Fatalf("%v, want %v", err, c.want)
			}
			if err != nil {
				return
			}
			if got != before {
				t.Fatalf("held before: %v, want %v", got, before)
			}
			h.UndoCumulative(c.id, got)
			if after := h.Held(c.id).Cumulative; after != before {
				t.Fatalf("after undo %v, want %v", after, before)
			}
		})
	}
}

// TestHidden holds O-8: cumulative and individual, whole entries and indexes.
func TestHidden(t *testing.T) {
	h, cur := New(), cursor.New(at(0))
	if _, err := h.Individual(x, []Hold{whole(7), bits(8, 0b1)}, cur); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Individual(y, []Hold{bits(8, 0b100)}, cur); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Cumulative(y, bits(5, 0b11), cur); err != nil {
		t.Fatal(err)
	}
	check := func(e uint64, whole bool, acked uint64) {
		t.Helper()
		gotWhole, got := h.Hidden(at(e))
		if gotWhole != whole || !whole && !got.AndNot(ledger.Bits{acked}).Empty() || !whole && got.Count() != (ledger.Bits{acked}).Count() {
			t.Fatalf("entry %d: %v %b, want %v %b", e, gotWhole, got, whole, acked)
		}
	}
	check(4, true, 0)
	check(5, false, 0b11)
	check(6, false, 0)
	check(7, true, 0)
	check(8, false, 0b101)
	held := h.Release(y)
	if held.Cumulative == nil || len(held.Individual) != 1 {
		t.Fatalf("released %+v", held)
	}
	check(4, false, 0)
	check(8, false, 0b1)
	h.Release(x)
	check(7, false, 0)
	if h.Transactions() != 0 || h.Entries() != 0 {
		t.Fatal("something is left")
	}
}

// TestAgainstModel: at any time an index is held by at most one transaction individually, what is hidden is exactly what is
// held, a release returns exactly what was taken, and a stored handle comes back the same.
func TestAgainstModel(t *testing.T) {
	const entries, size = 4, 4
	rapid.Check(t, func(t *rapid.T) {
		h, cur := New(), cursor.New(at(0))
		holder := make(map[[2]uint64]txn.ID) // entry and index
		stored := make(map[txn.ID][][]byte)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			id := txn.ID{Least: rapid.Uint64Range(1, 3).Draw(t, "id")}
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			default:
				e := rapid.Uint64Range(0, entries-1).Draw(t, "entry")
				hold, mask := whole(e), uint64(0b1111)
				if rapid.Bool().Draw(t, "indexes") {
					mask = rapid.Uint64Range(1, 15).Draw(t, "mask")
					hold = bits(e, mask)
				}
				free := !cur.Done(at(e))
				for i := range uint64(size) {
					_, taken := holder[[2]uint64{e, i}]
					if mask&(1<<i) != 0 && taken {
						free = false
					}
				}
				added, err := h.Individual(id, []Hold{hold}, cur)
				if (err == nil) != free {
					t.Fatalf("%v on %d %b: %v, free %v", id, e, mask, err, free)
				}
				if err != nil {
					continue
				}
				if rapid.Bool().Draw(t, "undo") {
					h.Undo(id, added)
					continue
				}
				stored[id] = append(stored[id], Encode(Held{Individual: added}))
				for i := range uint64(size) {
					if mask&(1<<i) != 0 {
						holder[[2]uint64{e, i}] = id
					}
				}
			case 3:
				held := h.Release(id)
				n := 0
				for _, hold := range held.Individual {
					if hold.Acked == nil {
						n += size
					} else {
						n += hold.Acked.Count()
					}
				}
				for k, by := range holder {
					if by == id {
						n--
						delete(holder, k)
					}
				}
				if n != 0 {
					t.Fatalf("%v released %d indexes too many", id, n)
				}
				delete(stored, id)
			case 4:
				again := New()
				for id, values := range stored {
					for _, value := range values {
						held, err := Decode(value)
						if err != nil {
							t.Fatal(err)
						}
						again.Restore(id, held)
					}
				}
				h = again
			}
			sets := 0
			for _, held := range h.byTxn {
				for _, hold := range held.Individual {
					sets += 8 * len(hold.Acked)
				}
			}
			if h.PartBytes() != sets {
				t.Fatalf("%d bytes of sets, want %d", h.PartBytes(), sets)
			}
			for e := range uint64(entries) {
				all, some := h.Hidden(at(e))
				for i := range uint64(size) {
					_, taken := holder[[2]uint64{e, i}]
					if hidden := all || some.Overlaps(ledger.Bits{1 << i}); hidden != taken {
						t.Fatalf("index %d of %d: hidden %v, held %v", i, e, hidden, taken)
					}
				}
			}
		}
	})
}

// TestUndoOfMany: a command that names very many messages and is refused for the last costs a step for each of them. It does
// not end within the time of a test if it costs a search for each.
func TestUndoOfMany(t *testing.T) {
	const many = 1 << 20
	h, cur := New(), cursor.New(at(0))
	cur.Ack(at(many))
	if _, err := h.Individual(x, []Hold{whole(many + 1), whole(many + 2)}, cur); err != nil {
		t.Fatal(err)
	}
	holds := make([]Hold, 0, many+1)
	for e := range uint64(many + 1) {
		holds = append(holds, whole(e))
	}
	if _, err := h.Individual(x, holds, cur); !errors.Is(err, txn.ErrConflict) {
		t.Fatalf("%v, want a conflict", err)
	}
	added, err := h.Individual(x, holds[:1000], cur)
	if err != nil {
		t.Fatal(err)
	}
	h.Undo(x, added)
	if held := h.Held(x).Individual; h.Entries() != 2 || !reflect.DeepEqual(held, []Hold{whole(many + 1), whole(many + 2)}) {
		t.Fatalf("%d entries are held, of them %v by the transaction", h.Entries(), held)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(Encode(Held{Individual: []Hold{whole(1), bits(2, 0b11)}, Cumulative: &Hold{Position: at(3)}}))
	f.Add(Encode(Held{}))
	f.Fuzz(func(t *testing.T, value []byte) {
		held, err := Decode(value)
		if err != nil {
			return
		}
		again, err := Decode(Encode(held))
		if err != nil || !reflect.DeepEqual(again, held) {
			t.Fatalf("%v: %+v, want %+v", err, again, held)
		}
	})
}
