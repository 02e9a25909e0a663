package dedup

import (
	"testing"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

func TestTransactions(t *testing.T) {
	x, y := txn.ID{Least: 1}, txn.ID{Least: 2}
	for _, keep := range []bool{false, true} {
		s := New(keep)
		s.Stored("p", 4)
		s.StoredIn(x, "p", 6)
		s.StoredIn(x, "p", 5)
		s.StoredIn(y, "p", 9)
		if open := s.Open("p"); len(open) != 2 || open[x] != 6 || open[y] != 9 {
			t.Fatalf("open transactions have %v", open)
		}
		if last, found := s.Last("p"); last != 9 || !found {
			t.Fatalf("last %d", last)
		}
		if s.Duplicate("p", 4) != keep || s.Duplicate("p", 5) || s.Duplicate("q", 0) {
			t.Fatalf("keep %v: what is stored outside transactions is wrong", keep)
		}
		s.Abort(y)
		if s.Duplicate("p", 9) {
			t.Fatal("a sequence id that only an aborted transaction used is not free")
		}
		s.Commit(x)
		if s.Duplicate("p", 6) != keep || s.Duplicate("p", 7) {
			t.Fatalf("keep %v: what a commit left is wrong", keep)
		}
		if last, found := s.Last("p"); found != keep || keep && last != 6 {
			t.Fatalf("keep %v: last %d, %v", keep, last, found)
		}
	}
}

func TestRestore(t *testing.T) {
	s, x := New(false), txn.ID{Least: 1}
	s.Restore(x, Sequences{"b": 2, "a": 1})
	s.StoredIn(x, "a", 3)
	in := s.In(x)
	if names := in.Producers(); len(names) != 2 || names[0] != "a" || in["a"] != 3 || in["b"] != 2 {
		t.Fatalf("restored %v", in)
	}
}
