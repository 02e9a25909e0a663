package preserver_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/pulsar-tc/pulsar-tc/preserver"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// million is the load of the memory figures: outcomes that arrive interleaved over all names.
const million = 1_000_000

// heapPerOutcome fills an index by fill and returns what the heap holds for each of a million outcomes after a collection.
func heapPerOutcome(fill func() *preserver.Index) float64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&before)
	x := fill()
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(x)
	return float64(after.HeapAlloc-before.HeapAlloc) / million
}

func millionOptions(perName int) preserver.Options {
	return preserver.Options{Count: perName, UnnamedCount: perName, Retention: 1 << 40, MinTime: 0, Max: million, NamesPerOwner: million}
}

func millionOutcome(i int) preserver.Outcome {
	return preserver.Outcome{
		Least: 1<<50 + uint64(i), Place: uint64(i) + 1, Opened: int64(i), Ended: int64(i) + 20, TTL: 60_000, Status: txn.Committed,
	}
}

func millionKey(name int) preserver.Key {
	return preserver.Key{Owner: txn.Owner{Role: "application", Known: true}, Name: fmt.Sprintf("client-%06d", name)}
}

// putMillion ends rounds times a million transactions of the given number of names in turn.
func putMillion(names, rounds int) *preserver.Index {
	x := preserver.New(millionOptions(million / names))
	for i := range rounds * million {
		b := x.Hold(millionKey(i % names))
		x.Put(b, millionOutcome(i), int64(i))
		x.Release(b)
	}
	return x
}

// loadMillion is what a restart does.
func loadMillion(names int) *preserver.Index {
	x := preserver.New(millionOptions(million / names))
	for i := range million {
		x.Load(millionKey(i%names), millionOutcome(i))
	}
	x.Loaded(million)
	return x
}

// TestMemory holds the promise that memory follows what is kept: a million outcomes cost at most maxHeap bytes each, as a load
// finds them, as they arrive, and after each name has turned its outcomes over.
func TestMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("fills several million outcomes")
	}
	const maxHeap = 80
	for _, names := range []int{1000, 10_000} {
		for _, c := range []struct {
			how  string
			fill func() *preserver.Index
		}{
			{"arrived", func() *preserver.Index { return putMillion(names, 1) }},
			{"turned over", func() *preserver.Index { return putMillion(names, 2) }},
			{"loaded", func() *preserver.Index { return loadMillion(names) }},
		} {
			t.Run(fmt.Sprintf("%d names %s", names, c.how), func(t *testing.T) {
				got := heapPerOutcome(c.fill)
				t.Logf("%.1f bytes of heap per outcome", got)
				if got > maxHeap {
					t.Errorf("%.1f bytes of heap per outcome, want at most %d", got, maxHeap)
				}
			})
		}
	}
}
