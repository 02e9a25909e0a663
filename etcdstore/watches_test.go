package etcdstore

import (
	"context"
	"fmt"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Each coordinator has a watch, and all of them end at once when an instance stops or its leases do.
func TestManyWatchesEndAtOnce(t *testing.T) {
	const watches, rounds = 200, 5
	store := openStore(t, Options{})
	for round := range rounds {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var all []clientv3.WatchChan
		for i := range watches {
			all = append(all, store.Client().Watch(clientv3.WithRequireLeader(ctx), fmt.Sprintf("key %d", i), clientv3.WithCreatedNotify()))
		}
		for _, watch := range all {
			if answer, ok := <-watch; !ok || !answer.Created {
				t.Fatalf("round %d: a watch does not begin: %v", round, answer.Err())
			}
		}
		cancel()
		patience := time.After(30 * time.Second)
		for i, watch := range all {
			select {
			case <-patience:
				t.Fatalf("round %d: watch %d does not end", round, i)
			case _, open := <-watch:
				if open {
					t.Fatalf("round %d: watch %d has something to tell", round, i)
				}
			}
		}
	}
	put(t, store, "key", "value")
}
