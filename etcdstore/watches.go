package etcdstore

import (
	"context"
	"strconv"
	"sync/atomic"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/metadata"
)

// watchKey is the metadata that keeps streams apart.
const watchKey = "pulsar-tc-watch"

// ownStreams gives each watch a stream of its own, which ends with it. Watches that share a stream have two faults:
//
//   - etcd judges a new watch by the token that its stream began with, and the client keeps a stream as long as it has a watch:
//     once that token has expired, no new watch would ever stand (FC-52).
//   - A server in this process has room for some twenty answers of a stream. The client tells it of each watch that ends and reads
//     no answer meanwhile, so that both wait for each other for ever when more watches of a stream end at once.
type ownStreams struct {
	clientv3.Watcher
	last atomic.Uint64
}

// Watch implements clientv3.Watcher. The client tells streams apart by the metadata of their contexts.
func (w *ownStreams) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	return w.Watcher.Watch(metadata.AppendToOutgoingContext(ctx, watchKey, strconv.FormatUint(w.last.Add(1), 10)), key, opts...)
}
