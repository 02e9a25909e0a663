package server

import (
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

func TestCollectionPercent(t *testing.T) {
	for _, c := range []struct {
		live uint64
		want int
	}{
		{0, mostCollectionPercent},
		{8 << 20, mostCollectionPercent},
		{32 << 20, 700},
		{64 << 20, 300},
		{85 << 20, leastCollectionPercent},
		{4 << 30, leastCollectionPercent},
	} {
		if got := collectionPercent(c.live); got != c.want {
			t.Errorf("%d bytes live: %d %%, want %d", c.live, got, c.want)
		}
	}
}

// TestTuneCollection runs in a process of its own, because the collector belongs to the whole process.
func TestTuneCollection(t *testing.T) {
	const child = "TEST_TUNE_COLLECTION"
	if os.Getenv(child) == "" {
		command := exec.Command(os.Args[0], "-test.run=^TestTuneCollection$", "-test.v")
		command.Env = append(os.Environ(), child+"=1", "GOGC=")
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	TuneCollection()
	awaitPercent(t, func(percent int) bool { return percent > leastCollectionPercent })
	held := make([]byte, busyHeap)
	awaitPercent(t, func(percent int) bool { return percent == leastCollectionPercent })
	runtime.KeepAlive(held)
}

// awaitPercent collects until the percentage is as wanted.
func awaitPercent(t *testing.T, wanted func(int) bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); {
		runtime.GC()
		percent := debug.SetGCPercent(leastCollectionPercent)
		debug.SetGCPercent(percent)
		if wanted(percent) {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatal("the percentage did not follow the heap")
}
