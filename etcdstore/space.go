package etcdstore

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"go.etcd.io/etcd/server/v3/storage/wal"
)

const (
	// spaceInterval is how often the space is looked at.
	spaceInterval = time.Second
	// reliefInterval is how often history is compacted while something is refused.
	reliefInterval = 5 * time.Second
	// refreshTimeout bounds the write that makes etcd count.
	refreshTimeout = 5 * time.Second
	// lastReserve is the part of the reserve for ends that is never used: one 8th.
	lastReserve = 8
)

// Space says what a store has room for.
type Space uint32

// The states, each refusing more than the one before.
const (
	Normal     Space = iota
	RefuseData       // no messages and acknowledgements
	RefuseNew        // no new transactions and participants either; ends go on from the reserve
	RefuseEnd        // the reserve is used up: nothing, so that neither quota nor disk is filled to the brim
)

// String names the state in logs and metrics.
func (s Space) String() string {
	switch s {
	case Normal:
		return "normal"
	case RefuseData:
		return "refuse-data"
	case RefuseNew:
		return "refuse-new"
	}
	return "refuse-end"
}

// spaceGuard compares the bytes in use with the quota, and the free disk with the reserves.
type spaceGuard struct {
	dir                     string
	quota                   int64
	dataReserve, newReserve int64
	live                    func() int64 // bytes in use
	free                    func(dir string) (int64, error)
	log                     zerolog.Logger
	current                 atomic.Uint32
}

func newSpaceGuard(o Options, live func() int64, free func(string) (int64, error), log zerolog.Logger) *spaceGuard {
	return &spaceGuard{
		dir: o.Dir, quota: o.QuotaBytes, dataReserve: o.DataReserve, newReserve: o.NewReserve,
		live: live, free: free, log: log,
	}
}

func (g *spaceGuard) state() Space { return Space(g.current.Load()) }

// check looks once and logs a change.
func (g *spaceGuard) check() error {
	free, err := g.free(g.dir)
	if err != nil {
		return err
	}
	live := g.live()
	now := g.judge(live, free)
	before := Space(g.current.Swap(uint32(now)))
	if now == before {
		return nil
	}
	event := g.log.Warn()
	if now == Normal {
		event = g.log.Info()
	}
	event.Stringer("space", now).Int64("live", live).Int64("quota", g.quota).Int64("free", free).Msg("space of the store changed")
	return nil
}

func (g *spaceGuard) judge(live, free int64) Space {
	room := min(g.quota-live, free)
	switch {
	case room < g.newReserve/lastReserve:
		return RefuseEnd
	case room < g.newReserve:
		return RefuseNew
	case room < g.dataReserve:
		return RefuseData
	}
	return Normal
}

// run looks until ctx is done. While something is refused it calls relieve every reliefInterval, for history may be what
// fills the store, and refresh before every look, for etcd counts the pages that became free only when it writes.
func (g *spaceGuard) run(ctx context.Context, relieve func(), refresh func(context.Context) error) {
	ticker := time.NewTicker(spaceInterval)
	defer ticker.Stop()
	var relieved time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			if g.state() == Normal {
				break
			}
			if now.Sub(relieved) >= reliefInterval {
				relieved = now
				relieve()
			}
			if err := refresh(ctx); err != nil && ctx.Err() == nil {
				g.log.Warn().Err(err).Msg("bytes in use not counted")
			}
		}
		if err := g.check(); err != nil {
			g.log.Warn().Err(err).Msg("space of the store unknown")
		}
	}
}

// enoughToStart refuses a full disk with the reason: etcd allocates two segments of its write-ahead log as it starts.
func enoughToStart(dir string, free func(string) (int64, error)) error {
	bytes, err := free(dir)
	if err != nil {
		return err
	}
	if need := 2*wal.SegmentSizeBytes + 16*mebibyte; bytes < need {
		return fmt.Errorf("data directory %s is full: %d bytes free, at least %d needed", dir, bytes, need)
	}
	return nil
}
