package etcdstore

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
)

const (
	// spaceInterval is how often the space is looked at. It is longer than etcd collects writes before it counts their
	// pages: 100 ms. Source: server/storage/backend, defaultBatchInterval.
	spaceInterval = 200 * time.Millisecond
	// keptLooks is how many looks count: what etcd commits late makes the newest one too low for a moment.
	keptLooks = 5
	// refreshInterval is how often etcd is made to count while something is refused.
	refreshInterval = time.Second
	// reliefInterval is how often history is compacted while something is refused.
	reliefInterval = 5 * time.Second
	// refreshTimeout bounds the write that makes etcd count.
	refreshTimeout = 5 * time.Second
	// lastReserve is the part of the reserve for ends that is never used: one 8th.
	lastReserve = 8
	// requestCharge is what a request takes beside its keys and values.
	requestCharge = 512
)

// Space says what a store has room for.
type Space uint32

// The states, each refusing more than the one before.
const (
	Normal     Space = iota
	RefuseData       // no messages
	RefuseNew        // no acknowledgements, new transactions and participants either; ends go on from the reserve
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

// refused names what a store in this state refuses.
func (s Space) refused() string {
	switch s {
	case Normal:
		return "nothing"
	case RefuseData:
		return "messages"
	case RefuseNew:
		return "messages, acknowledgements, new transactions and participants"
	}
	return "everything, ends of transactions too"
}

// reserves are the bytes of room below which data and, next, new transactions are refused.
type reserves struct{ data, begin int64 }

func (r reserves) judge(room int64) Space {
	switch {
	case room < r.begin/lastReserve:
		return RefuseEnd
	case room < r.begin:
		return RefuseNew
	case room < r.data:
		return RefuseData
	}
	return Normal
}

// look is the room that was seen, with the charges that it is sure to contain added: less all charges it is at most the room
// that there is.
type look struct{ quota, disk int64 }

// spaceGuard compares quota and disk with their reserves. In between looks it charges what is written against the room that
// was seen, so that a state never comes late.
type spaceGuard struct {
	quota           int64
	inQuota, onDisk reserves
	pages           backendPages
	disk            *disk
	log             zerolog.Logger

	charged atomic.Int64         // all that was written
	best    atomic.Pointer[look] // of those kept
	told    atomic.Uint32        // the state that was last told
	changed chan struct{}        // holds a signal if the state may be another one

	// used by check and inspect only
	looks  []look
	before int64 // charged as of the newest look
	logged Space
	blind  bool // the newest look saw nothing
}

// backendPages tells the bytes of etcd's backend as of its last commit.
type backendPages interface {
	SizeInUse() int64
	Size() int64 // free pages included
}

func newSpaceGuard(o Options, pages backendPages, disk *disk, log zerolog.Logger) *spaceGuard {
	g := &spaceGuard{
		quota:   o.QuotaBytes,
		inQuota: reserves{o.DataReserve, o.NewReserve},
		onDisk:  reserves{max(o.DataReserve, leastDiskReserve), max(o.NewReserve, leastDiskReserve/2)},
		pages:   pages, disk: disk, log: log, changed: make(chan struct{}, 1),
	}
	g.best.Store(&look{quota: largestQuota, disk: largestQuota})
	return g
}

// wrote charges one request that wrote n bytes of keys and values: half as much again for what etcd adds to small ones.
func (g *spaceGuard) wrote(n int) {
	g.charged.Add(int64(n) + int64(n)/2 + requestCharge)
	if now := uint32(g.state()); g.told.Load() != now {
		g.tell(now)
	}
}

// state takes the charges twice from the disk, where they are in the backend and in the write-ahead log.
func (g *spaceGuard) state() Space {
	best, charged := g.best.Load(), g.charged.Load()
	return max(g.inQuota.judge(best.quota-charged), g.onDisk.judge(best.disk-2*charged))
}

func (g *spaceGuard) tell(state uint32) {
	g.told.Store(state)
	select {
	case g.changed <- struct{}{}:
	default:
	}
}

// check looks once and logs a change. What was charged since the look before may not be in the pages yet: etcd counts them
// as it commits, and some callers tell of a request before they send it.
func (g *spaceGuard) check() error {
	charged := g.charged.Load()
	live, size := g.pages.SizeInUse(), g.pages.Size()
	room, free, err := g.disk.room(charged-g.before, live, size-live)
	if err != nil {
		return err
	}
	g.keep(look{quota: g.quota - live + g.before, disk: room + 2*g.before})
	g.before = charged
	now := g.state()
	g.tell(uint32(now))
	if now == g.logged {
		return nil
	}
	g.logged = now
	event := g.log.Warn()
	if now == Normal {
		event = g.log.Info()
	}
	event.Stringer("space", now).Str("refused", now.refused()).Int64("live", live).Int64("quota", g.quota).Int64("free", free).
		Int64("usable", room).Int64("wanted", g.onDisk.data).
		Msg("space of the store changed: it grows as messages are consumed or expire and topics are deleted, with etcdQuotaBytes, or with the disk")
	return nil
}

func (g *spaceGuard) keep(newest look) {
	g.looks = append(g.looks, newest)
	g.looks = g.looks[max(0, len(g.looks)-keptLooks):]
	best := newest
	for _, l := range g.looks {
		best.quota, best.disk = max(best.quota, l.quota), max(best.disk, l.disk)
	}
	g.best.Store(&best)
}

// run looks until ctx is done. While something is refused it calls relieve every reliefInterval, for history may be what
// fills the store, and refresh every refreshInterval, for etcd counts the pages that became free only when it writes.
func (g *spaceGuard) run(ctx context.Context, relieve func(), refresh func(context.Context) error) {
	ticker := time.NewTicker(spaceInterval)
	defer ticker.Stop()
	var relieved, refreshed time.Time
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
			if now.Sub(refreshed) < refreshInterval {
				break
			}
			refreshed = now
			if err := refresh(ctx); err != nil && ctx.Err() == nil {
				g.log.Warn().Err(err).Msg("bytes in use not counted")
			}
		}
		g.inspect()
	}
}

// inspect checks, and logs the first of several looks in a row that see nothing: meanwhile what is written is charged.
func (g *spaceGuard) inspect() {
	err := g.check()
	if err != nil && !g.blind {
		g.log.Warn().Err(err).Msg("space of the store unknown")
	}
	g.blind = err != nil
}
