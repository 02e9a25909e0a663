package coordinator

import (
	"testing"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

// A transaction with many participants holds up no other: they take turns, and within one the order stays (TC-23).
func TestTransactionsTakeTurns(t *testing.T) {
	var q turns
	push := func(least uint64, n int) {
		for i := range n {
			q.push(&drive{id: txn.ID{Least: least}, attempts: i})
		}
	}
	push(1, 4)
	push(2, 1)
	push(3, 2)
	want := []drive{
		{id: txn.ID{Least: 1}, attempts: 0}, {id: txn.ID{Least: 2}, attempts: 0}, {id: txn.ID{Least: 3}, attempts: 0},
		{id: txn.ID{Least: 1}, attempts: 1}, {id: txn.ID{Least: 3}, attempts: 1}, {id: txn.ID{Least: 1}, attempts: 2},
		{id: txn.ID{Least: 1}, attempts: 3},
	}
	for i := range want {
		if got := q.pop(); got == nil || *got != want[i] {
			t.Fatalf("turn %d: %+v, want %+v", i, got, want[i])
		}
	}
	if d := q.pop(); d != nil || len(q.lines) != 0 {
		t.Errorf("left: %+v, %d lines", d, len(q.lines))
	}
	push(4, 1)
	if d := q.pop(); d == nil || d.id.Least != 4 {
		t.Errorf("after it was empty: %+v", d)
	}
}
