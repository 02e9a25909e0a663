package coordinator_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pulsar-tc/pulsar-tc/coordinator"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// brokenLog is one that cannot be read as long as the rig says so.
type brokenLog struct {
	coordinator.Log
	broken func() bool
}

func (l brokenLog) Load(ctx context.Context, visit func(txn.LogEntry) error) (uint64, error) {
	if l.broken() {
		return 0, errors.New("broken")
	}
	return l.Log.Load(ctx, visit)
}

// P-29: a process that fails to load goes on trying, with growing pauses, and tells why; after a while it leaves the coordinator
// to others for long enough that they take it. It never serves meanwhile.
func TestGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.opts.GiveUp, r.opts.GiveUpFor = 30*time.Second, 20*time.Second
		var broken atomic.Bool
		broken.Store(true)
		r.wrapLog = func(log coordinator.Log) coordinator.Log { return brokenLog{log, broken.Load} }
		var tries []time.Time
		r.winning = func() { tries = append(tries, time.Now()) }
		began := time.Now()
		r.start()
		defer func() { r.group.Close() }()
		time.Sleep(60 * time.Second)
		synctest.Wait()
		var aside time.Time
		for i := 1; i < len(tries); i++ {
			pause := tries[i].Sub(tries[i-1])
			if pause > 10*time.Second && aside.IsZero() {
				aside = tries[i-1]
				if pause != r.opts.GiveUpFor {
					t.Errorf("left to others for %v", pause)
				}
			}
		}
		if after := aside.Sub(began); after < 30*time.Second || after > 45*time.Second {
			t.Errorf("left to others after %v, tries at %v", after, tries)
		}
		status := r.group.Statuses()[0]
		if status.Serving || status.LoadError != "load the log: broken" {
			t.Errorf("%+v", status)
		}
		broken.Store(false)
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if !r.group.Statuses()[0].Serving {
			t.Error("does not serve although it could")
		}
	})
}
