package etcdstore

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// mostLeastHistory is how many bytes are written before history is compacted: a compaction scans the whole store.
	mostLeastHistory = 64 * mebibyte
	// historyShare is the part of a small quota that takes its place: one 8th.
	historyShare = 8
	// longestHistory is how long history is kept if little is written.
	longestHistory = 5 * time.Minute
	// compactionTimeout is how long one compaction may take to be agreed on. The scan behind it goes on by itself.
	compactionTimeout = 30 * time.Second
)

// compactor is what history needs of an etcd client.
type compactor interface {
	Compact(ctx context.Context, rev int64, opts ...clientv3.CompactOption) (*clientv3.CompactResponse, error)
}

// history forgets old revisions: when the bytes written since the last time exceed both least and half of the live
// bytes, and every longestHistory if anything was written.
type history struct {
	client   compactor
	revision func() int64 // the newest one
	live     func() int64 // bytes in use
	least    int64        // bytes
	log      zerolog.Logger
	due      chan struct{}

	written   atomic.Int64 // bytes since the last compaction
	threshold atomic.Int64

	mu        sync.Mutex
	pins      map[uint64]int64 // guarded by mu: revisions that must stay readable
	nextPin   uint64           // guarded by mu
	compacted int64            // used by run only: the last revision compacted to
}

func newHistory(client compactor, revision, live func() int64, least int64, log zerolog.Logger) *history {
	h := &history{
		client: client, revision: revision, live: live, least: least, log: log,
		due: make(chan struct{}, 1), pins: make(map[uint64]int64),
	}
	h.threshold.Store(h.limit())
	return h
}

// leastHistory is how many bytes are written at least before history is compacted in a store of some quota.
func leastHistory(quota int64) int64 { return min(mostLeastHistory, quota/historyShare) }

// compactionBatch is how many revisions one step of a compaction looks at. etcd's default of 1000 may write a small store
// again as a whole in one step.
func compactionBatch(quota int64) int {
	if quota < gibibyte {
		return 100
	}
	return 1000
}

func (h *history) limit() int64 { return max(h.least, h.live()/2) }

func (h *history) wrote(n int) {
	if n > 0 && h.written.Add(int64(n)) >= h.threshold.Load() {
		h.hurry()
	}
}

// hurry asks for a compaction soon, whatever was written.
func (h *history) hurry() {
	select {
	case h.due <- struct{}{}:
	default:
	}
}

func (h *history) pin(rev int64) (release func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	id := h.nextPin
	h.nextPin++
	h.pins[id] = rev
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.pins, id)
	}
}

// target is the newest revision that may be compacted to: reads at the revision itself go on working.
func (h *history) target() int64 {
	newest := h.revision()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, rev := range slices.Collect(maps.Values(h.pins)) {
		newest = min(newest, rev)
	}
	return newest
}

func (h *history) run(ctx context.Context) {
	ticker := time.NewTicker(longestHistory)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.due:
		case <-ticker.C:
			if h.written.Load() == 0 {
				continue
			}
		}
		if err := h.compact(ctx); err != nil && ctx.Err() == nil {
			h.log.Warn().Err(err).Msg("history not compacted")
		}
	}
}

func (h *history) compact(ctx context.Context) error {
	target := h.target()
	if target <= h.compacted {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, compactionTimeout)
	defer cancel()
	written := h.written.Load()
	_, err := h.client.Compact(ctx, target)
	if err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
		return err
	}
	h.compacted = target
	h.written.Add(-written)
	h.threshold.Store(h.limit())
	return nil
}
