package topicfeed

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"

	"github.com/pulsar-tc/pulsar-tc/internal/etcdtest"
	"github.com/pulsar-tc/pulsar-tc/topicname"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// heard collects what a follower is told.
type heard chan topicname.Name

// await returns at the first word about a topic, with an empty local name for a gap.
func (h heard) await(t *testing.T, local string) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		select {
		case name := <-h:
			if name.Local == local {
				return
			}
		case <-deadline:
			t.Fatalf("nothing heard of %q", local)
		}
	}
}

func (h heard) follow(f *Feed, namespace string) (stop func()) {
	return f.Follow(namespace, func(name topicname.Name) { h <- name })
}

// stand returns when both watches stand and what they said until then is forgotten.
func (h heard) stand(t *testing.T, kv clientv3.KV) {
	t.Helper()
	names, partitioned := false, false
	for deadline := time.Now().Add(20 * time.Second); !names || !partitioned; {
		if time.Now().After(deadline) {
			t.Fatal("the watches do not stand")
		}
		put(t, kv, etcdtest.Space.TopicName("persistent", "a", "b", "name"))
		put(t, kv, etcdtest.Space.Partitioned("persistent", "a", "b", "partitioned"))
		select {
		case name := <-h:
			names, partitioned = names || name.Local == "name", partitioned || name.Local == "partitioned"
		case <-time.After(20 * time.Millisecond):
		}
	}
	put(t, kv, etcdtest.Space.TopicName("persistent", "a", "b", "last name"))
	h.await(t, "last name")
	put(t, kv, etcdtest.Space.Partitioned("persistent", "a", "b", "last partitioned"))
	h.await(t, "last partitioned")
}

func put(t *testing.T, kv clientv3.KV, key string) {
	t.Helper()
	if _, err := kv.Put(t.Context(), key, "1"); err != nil {
		t.Fatal(err)
	}
}

func TestFeed(t *testing.T) {
	client := etcdtest.Open(t, nil).Client()
	f := New(client, etcdtest.Space, zerolog.Nop())
	defer f.Close()
	mine, other := make(heard, 10000), make(heard, 10000)
	stop := mine.follow(f, "a/b")
	defer other.follow(f, "a/c")()
	mine.stand(t, client)
	keys := etcdtest.Space
	put(t, client, keys.TopicName("persistent", "a", "b", "x/y"))
	mine.await(t, "x/y")
	put(t, client, keys.Partitioned("persistent", "a", "b", "p"))
	mine.await(t, "p")
	put(t, client, keys.Partitioned("persistent", "a", "b", "p")) // more partitions
	mine.await(t, "p")
	if _, err := client.Delete(t.Context(), keys.TopicName("persistent", "a", "b", "x/y")); err != nil {
		t.Fatal(err)
	}
	mine.await(t, "x/y")
	stop()
	put(t, client, keys.TopicName("persistent", "a", "b", "late"))
	put(t, client, keys.TopicName("non-persistent", "a", "c", "n"))
	put(t, client, keys.TopicName("persistent", "a", "c", "z"))
	other.await(t, "z")
	for len(mine) > 0 {
		if name := <-mine; name.Local == "late" {
			t.Error("told behind stop")
		}
	}
	if len(f.followers) != 1 {
		t.Errorf("%d namespaces are followed", len(f.followers))
	}
}

// failingWatcher ends each watch when it is told to.
type failingWatcher struct {
	clientv3.Watcher

	mu    sync.Mutex
	stops []context.CancelFunc
}

func (w *failingWatcher) Watch(ctx context.Context, key string, options ...clientv3.OpOption) clientv3.WatchChan {
	ctx, cancel := context.WithCancel(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stops = append(w.stops, cancel)
	return w.Watcher.Watch(ctx, key, options...)
}

func (w *failingWatcher) fail() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, stop := range w.stops {
		stop()
	}
	w.stops = nil
}

// FC-49: a watch that ends loses nothing: those who follow are told to look for themselves once the next one stands.
func TestFC49Gap(t *testing.T) {
	client := etcdtest.Open(t, nil).Client()
	watcher := &failingWatcher{Watcher: client}
	f := New(watcher, etcdtest.Space, zerolog.Nop())
	defer f.Close()
	h := make(heard, 10000)
	defer h.follow(f, "a/b")()
	h.stand(t, client)
	watcher.fail()
	put(t, client, etcdtest.Space.TopicName("persistent", "a", "b", "meanwhile"))
	h.await(t, "")
	h.await(t, "")
	put(t, client, etcdtest.Space.TopicName("persistent", "a", "b", "then"))
	h.await(t, "then")
}

// refusingWatcher ends each watch at once unless it has a leader.
type refusingWatcher struct {
	clientv3.Watcher
	watches atomic.Int64
	leader  atomic.Bool
}

func (w *refusingWatcher) Watch(ctx context.Context, _ string, _ ...clientv3.OpOption) clientv3.WatchChan {
	w.watches.Add(1)
	answers := make(chan clientv3.WatchResponse, 2)
	if w.leader.Load() {
		answers <- clientv3.WatchResponse{Created: true}
	}
	answers <- clientv3.WatchResponse{Canceled: true, CancelReason: rpctypes.ErrNoLeader.Error()}
	close(answers)
	return answers
}

// Without a leader in etcd the feed says so once, and asks ever less often; when a watch has stood, what comes is another outage.
func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines lineCounter
		watcher := &refusingWatcher{}
		f := New(watcher, etcdtest.Space, zerolog.New(&lines))
		defer f.Close()
		time.Sleep(time.Minute)
		synctest.Wait()
		const prefixes = 2
		if watches := watcher.watches.Load(); lines.Load() != prefixes || watches > prefixes*30 {
			t.Errorf("%d lines for %d prefixes and %d watches in a minute", lines.Load(), prefixes, watches)
		}
		watcher.leader.Store(true)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if lines.Load() <= prefixes {
			t.Error("nothing said of another outage")
		}
	})
}

type lineCounter struct{ atomic.Int64 }

func (c *lineCounter) Write(line []byte) (int, error) {
	c.Add(1)
	return len(line), nil
}
