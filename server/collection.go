package server

import (
	"os"
	"runtime"
	"runtime/debug"
	runtimemetrics "runtime/metrics"
)

const (
	// leastCollectionPercent is how much a process that is a server may allocate between two garbage collections at least, in
	// percent of what lives: twice Go's default.
	leastCollectionPercent = 200
	// mostCollectionPercent bounds it for a heap of which next to nothing lives.
	mostCollectionPercent = 1600
	// busyHeap is how large the heap of a busy server may become, in bytes, before what lives counts. Little lives in a server
	// that stores what it is given, and it allocates its heap several times a second.
	busyHeap = 256 << 20
)

// TuneCollection spares this process garbage collections for as long as its heap is small, unless its environment sets GOGC. It
// is for commands: a server as a part of another program leaves the collector to that.
func TuneCollection() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(leastCollectionPercent)
		watchCollections(&collections{percent: leastCollectionPercent})
	}
}

// collections follows the garbage collections of a process.
type collections struct{ percent int }

// watchCollections has c look at the heap after each collection: each finds one object that nobody holds, and makes the next.
func watchCollections(c *collections) {
	type collected struct{ *collections }
	runtime.SetFinalizer(&collected{c}, func(*collected) {
		c.adjust(liveHeap())
		watchCollections(c)
	})
}

// adjust sets the percentage for a heap of which live bytes live.
func (c *collections) adjust(live uint64) {
	percent := collectionPercent(live)
	if percent == c.percent {
		return
	}
	c.percent = percent
	debug.SetGCPercent(percent)
}

// collectionPercent lets the heap grow to busyHeap, in steps, because each change stops the process for a moment.
func collectionPercent(live uint64) int {
	const step = 100
	percent := int(busyHeap*100/max(live, 1<<20)) - 100
	return min(max(percent/step*step, leastCollectionPercent), mostCollectionPercent)
}

func liveHeap() uint64 {
	sample := []runtimemetrics.Sample{{Name: "/gc/heap/live:bytes"}}
	runtimemetrics.Read(sample)
	return sample[0].Value.Uint64()
}
