package fsm_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/pulsar-tc/pulsar-tc/coordinator/fsm"
	"github.com/pulsar-tc/pulsar-tc/preserver"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

func heapInUse() int64 {
	var s runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}

// TestMemoryOfOpenTransactions holds O-11 and promise 7: an open transaction with one topic costs a few hundred bytes, and nothing is left
// when all have ended and nothing is kept.
func TestMemoryOfOpenTransactions(t *testing.T) {
	const (
		many    = 100_000
		maxEach = 500
		maxLeft = 100 // what maps keep for the next ones
	)
	m := fsm.New(fsm.Options{TC: 1, Preserver: preserver.Options{Count: 0}})
	if _, _, err := m.Recover(1_000_000, 0); err != nil {
		t.Fatal(err)
	}
	index := uint64(1)
	commit := func() {
		if m.Pending() >= 1000 {
			m.Take()
			m.Appended(txn.Appended{First: index, Last: index})
			index++
		}
	}
	before := heapInUse()
	first := uint64(0)
	for i := range many {
		m.Step(1_000_000, &fsm.NewTxn{TTLMillis: 60_000, Owner: txn.Owner{Role: "application", Known: true}, ClientName: "flink", Named: true})
		if i == 0 {
			first = m.Issued()
		}
		topic := fmt.Sprintf("persistent://tenant/namespace/a-topic-of-usual-length-partition-%d", i%64)
		m.Step(1_000_000, &fsm.AddParticipants{
			Caller: fsm.Caller{Super: true}, Least: m.Issued(), Participants: []txn.Participant{{Topic: topic}},
		})
		commit()
	}
	open := heapInUse()
	each := (open - before) / many
	t.Logf("%d bytes of heap for each open transaction", each)
	if m.Live() != many || each > maxEach {
		t.Errorf("%d live transactions, %d bytes each, want %d and at most %d", m.Live(), each, many, maxEach)
	}
	for i := range uint64(many) {
		m.Step(1_000_000, &fsm.EndTxn{Caller: fsm.Caller{Super: true}, Least: first + i, Action: txn.Commit})
		m.Step(1_000_000, &fsm.Applied{Least: first + i, Participant: txn.Participant{
			Topic: fmt.Sprintf("persistent://tenant/namespace/a-topic-of-usual-length-partition-%d", i%64),
		}})
		commit()
	}
	if left := (heapInUse() - before) / many; m.Live() != 0 || left > maxLeft {
		t.Errorf("%d live transactions, %d bytes left of each, want 0 and at most %d", m.Live(), left, maxLeft)
	}
	runtime.KeepAlive(m)
}
