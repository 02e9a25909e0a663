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
func (ts *Topics) resumeSweeps() {
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
	ts.sweepAll(ids)
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
		select {
		case <-time.After(pause):
			pause = min(2*pause, 10*time.Second)
		case <-ts.ctx.Done():
		}
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
