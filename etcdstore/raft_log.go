package etcdstore

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// raftWindow is about how many bytes of raft entries stay in memory, and are read again by a start.
	raftWindow = 32 * mebibyte
	// fillTimeout is how long filling may take.
	fillTimeout = 30 * time.Second
)

// raftLog bounds raft's log by bytes. etcd cuts it after snapshotCount entries, however large they are; so when large
// requests have filled the window with fewer, raftLog adds what is missing in entries that change nothing.
type raftLog struct {
	client clientv3.KV
	key    string // of the entries, never written
	log    zerolog.Logger
	due    chan struct{}

	bytes    atomic.Int64 // since the window began
	requests atomic.Int64 // since the window began
}

func newRaftLog(client clientv3.KV, key string, log zerolog.Logger) *raftLog {
	return &raftLog{client: client, key: key, log: log, due: make(chan struct{}, 1)}
}

func (r *raftLog) wrote(n int) {
	r.requests.Add(1)
	if n > 0 && r.bytes.Add(int64(n)) >= raftWindow {
		select {
		case r.due <- struct{}{}:
		default:
		}
	}
}

func (r *raftLog) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.due:
		}
		requests := r.requests.Swap(0)
		r.bytes.Store(0)
		if requests > snapshotCount {
			continue
		}
		if err := r.fill(ctx, snapshotCount+1-int(requests)); err != nil && ctx.Err() == nil {
			r.log.Warn().Err(err).Msg("raft log not cut")
		}
	}
}

// fill adds n entries. A transaction that has a put goes through raft even if its condition is false.
func (r *raftLog) fill(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeout(ctx, fillTimeout)
	defer cancel()
	var filling sync.WaitGroup
	failed := make(chan error, n)
	for range n {
		filling.Go(func() {
			_, err := r.client.Txn(ctx).
				If(clientv3.Compare(clientv3.Version(r.key), "<", 0)).
				Then(clientv3.OpPut(r.key, "")).
				Commit()
			if err != nil {
				failed <- err
			}
		})
	}
	filling.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}
