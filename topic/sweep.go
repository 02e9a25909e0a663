package topic

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

// sweepLater deletes the data of deleted topics beside everything else.
func (ts *Topics) sweepLater(found []doomed) {
	var ids []uint64
	for _, d := range found {
		if d.id != 0 {
			ids = append(ids, d.id)
		}
	}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if !ts.closing { // else the next start does it
		ts.tasks.Go(func() { ts.sweepAll(ids) })
	}
}

// resumeSweeps goes on with what an earlier run had not finished.
func (ts *Topics) resumeSweeps() { ts.sweepAll(ts.tombstones()) }

// sweepInterval is the time between two looks for what an instance that is gone had not finished.
const sweepInterval = 10 * time.Minute

// sweepForAll goes on with what other instances had not finished: what is found twice is likely to be left. Two that delete the
// same data do no harm.
func (ts *Topics) sweepForAll() {
	found := ts.sweepLeft(nil)
	for ts.pause(sweepInterval) {
		found = ts.sweepLeft(found)
	}
}

// sweepLeft deletes the data of the deleted topics that are in before, and returns all there are.
func (ts *Topics) sweepLeft(before map[uint64]bool) map[uint64]bool {
	found := make(map[uint64]bool)
	var left []uint64
	for _, id := range ts.tombstones() {
		found[id] = true
		if before[id] {
			left = append(left, id)
		}
	}
	ts.sweepAll(left)
	return found
}

// pause waits, and reports false if the topics are closed meanwhile.
func (ts *Topics) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ts.ctx.Done():
		return false
	}
}

// tombstones lists the deleted topics whose data is not all gone.
func (ts *Topics) tombstones() []uint64 {
	var ids []uint64
	ts.untilDone("deleted topics cannot be listed, tried again", func(ctx context.Context) error {
		ids = ids[:0]
		return ts.store.scanPrefix(ctx, ts.options.Keys.DeletedPrefix(), func(key, _ []byte) error {
			id, ok := ts.options.Keys.ParseDeleted(key)
			if !ok {
				return &txn.CorruptError{Key: string(key), Reason: "it is no key of a deleted topic"}
			}
			ids = append(ids, id)
			return nil
		})
	})
	return ids
}

func (ts *Topics) sweepAll(ids []uint64) {
	for _, id := range ids {
		ts.untilDone("data of a deleted topic cannot be deleted, tried again", func(ctx context.Context) error { return ts.sweep(ctx, id) })
	}
}

// untilDone repeats task, with pauses, until it succeeds, the topics are closed, or there is no use.
func (ts *Topics) untilDone(failed string, task func(context.Context) error) {
	pause := 100 * time.Millisecond
	for ts.ctx.Err() == nil {
		err := task(ts.ctx)
		if err == nil || ts.ctx.Err() != nil {
			return
		}
		ts.options.Log.Warn().Err(err).Msg(failed)
		if definite(err) {
			return
		}
		ts.pause(pause)
		pause = min(2*pause, 10*time.Second)
	}
}

// sweep deletes the data of a deleted topic in pieces, so that no delete keeps the store busy for long, then its tombstone.
// Nobody writes there any more, because the owner key is gone.
func (ts *Topics) sweep(ctx context.Context, id uint64) error {
	keys := ts.options.Keys.Topic(id)
	prefix := keys.Prefix()
	for {
		got, err := ts.store.get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithLimit(keysOfPage), clientv3.WithKeysOnly())
		if err != nil {
			return err
		}
		if len(got.Kvs) == 0 {
			return ts.store.delete(ctx, ts.options.Keys.Deleted(id))
		}
		last := string(got.Kvs[len(got.Kvs)-1].Key)
		if err := ts.store.delete(ctx, prefix, clientv3.WithRange(last+"\x00")); err != nil {
			return err
		}
	}
}
