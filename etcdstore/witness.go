package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// keptTooLong is the age at which history is taken for kept for ever. Who compacts by time keeps an hour of it or less.
	// Source: etcd's documentation of --auto-compaction-retention, Kubernetes' 5 minutes.
	keptTooLong = 3 * time.Hour
	// muchHistory is how many revisions of that age are worth a warning.
	muchHistory = 100_000
	// witnessTimeout bounds the read of an old revision.
	witnessTimeout = 5 * time.Second
)

// witness notices that nobody compacts a cluster: its file would grow until etcd stores nothing any more.
type witness struct {
	kv  clientv3.KV
	key string // any that exists

	revision int64 // remembered; 0: none
	since    time.Time
}

// keeps is told of the newest revision and reports whether one of keptTooLong ago, with much behind it, can still be read.
func (w *witness) keeps(ctx context.Context, now time.Time, newest int64) (bool, error) {
	old := w.revision
	if old != 0 && now.Sub(w.since) < keptTooLong {
		return false, nil
	}
	w.revision, w.since = newest, now
	if old == 0 || newest-old < muchHistory {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, witnessTimeout)
	defer cancel()
	_, err := w.kv.Get(ctx, w.key, clientv3.WithRev(old), clientv3.WithKeysOnly())
	if errors.Is(err, rpctypes.ErrCompacted) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read revision %d: %w", old, err)
	}
	return true, nil
}
