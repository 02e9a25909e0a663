package topic

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// followDeletions closes topics that other instances have deleted. Etcd refuses what such a topic writes anyway; the watch is for
// clients that write nothing. After a gap in it every topic is closed whose owner key is not its own.
func (ts *Topics) followDeletions() {
	prefix := ts.options.Keys.DeletedPrefix()
	for ts.ctx.Err() == nil {
		ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ts.ctx))
		events := ts.options.Watcher.Watch(ctx, prefix, clientv3.WithPrefix(), clientv3.WithFilterDelete(), clientv3.WithCreatedNotify())
		for response := range events {
			if response.Created {
				ts.closeDisowned()
			}
			for _, event := range response.Events {
				if id, ok := ts.options.Keys.ParseDeleted(event.Kv.Key); ok {
					ts.closeDeleted(id)
				}
			}
		}
		cancel()
		if !ts.pause(watchPause) {
			return
		}
		ts.options.Log.Debug().Msg("deletions by other instances are watched again")
	}
}

// watchPause is how long a watch that ended is not begun again.
const watchPause = time.Second

func (ts *Topics) closeDeleted(id uint64) {
	keys := ts.options.Keys.Topic(id)
	for _, t := range ts.all() {
		if t.keys == keys {
			t.abandon(errClosing)
		}
	}
}

// closeDisowned closes every topic whose owner key is not its own any more.
func (ts *Topics) closeDisowned() {
	for _, t := range ts.all() {
		t.post(func(alive bool) {
			if alive {
				t.async(t.closeIfDisowned)
			}
		})
	}
}

func (t *Topic) closeIfDisowned() {
	got, err := t.store.get(t.ctx, t.keys.Owner(), clientv3.WithKeysOnly())
	if err == nil && (len(got.Kvs) == 0 || got.Kvs[0].ModRevision != t.fence) {
		t.abandon(errClosing)
	}
}
