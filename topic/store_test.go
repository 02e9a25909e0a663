package topic

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// countingKV measures what reads return.
type countingKV struct {
	clientv3.KV
	reads, mostBytes int
}

func (c *countingKV) Get(ctx context.Context, key string, options ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	got, err := c.KV.Get(ctx, key, options...)
	if err == nil {
		c.reads++
		bytes := 0
		for _, kv := range got.Kvs {
			bytes += len(kv.Key) + len(kv.Value)
		}
		c.mostBytes = max(c.mostBytes, bytes)
	}
	return got, err
}

// TestScanPagesByBytes: every key comes once and in order, small values by many and large ones by few.
func TestScanPagesByBytes(t *testing.T) {
	const small, large = 2000, 20
	w := newWorld(t)
	prefix := w.keys.Root() + "scan/"
	put := func(from, n int, value string) {
		for n > 0 {
			var ops []clientv3.Op
			for range min(n, max(1, (4<<20)/(len(value)+1)), 500) {
				ops = append(ops, clientv3.OpPut(fmt.Sprintf("%s%06d", prefix, from), value))
				from, n = from+1, n-1
			}
			if _, err := storeClient.Txn(context.Background()).Then(ops...).Commit(); err != nil {
				t.Fatal(err)
			}
		}
	}
	put(0, large, strings.Repeat("x", 1<<20))
	put(large, small, "s")
	for _, c := range []struct {
		name      string
		options   []clientv3.OpOption
		mostReads int
	}{
		{"values", nil, large + 30},
		{"keys", []clientv3.OpOption{clientv3.WithKeysOnly()}, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			kv := &countingKV{KV: storeClient.KV}
			visited := 0
			err := store{kv, 10 * time.Second}.scanPrefix(context.Background(), prefix, func(key, _ []byte) error {
				if want := fmt.Sprintf("%s%06d", prefix, visited); string(key) != want {
					return fmt.Errorf("visited %s, want %s", key, want)
				}
				visited++
				return nil
			}, c.options...)
			if err != nil || visited != large+small {
				t.Fatalf("%d keys visited, %v", visited, err)
			}
			if kv.reads > c.mostReads || kv.mostBytes > 5<<20 {
				t.Errorf("%d reads, the largest of %d bytes", kv.reads, kv.mostBytes)
			}
		})
	}
}
