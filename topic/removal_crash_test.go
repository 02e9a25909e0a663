package topic

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

var errCrashed = errors.New("the process is gone")

// crashKV is the store as a process that crashes uses it: call number at is the last, and the process does not hear whether it
// was applied. Calls are numbered from arm on.
type crashKV struct {
	clientv3.KV

	mu      sync.Mutex
	armed   bool
	calls   int
	at      int
	applied bool // the last call is applied
}

func (c *crashKV) arm(at int, applied bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.armed, c.calls, c.at, c.applied = true, 0, at, applied
}

// disarm reports whether the process has crashed.
func (c *crashKV) disarm() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.armed = false
	return c.calls > c.at
}

// next reports whether the next call is applied, and whether its caller lives to see it.
func (c *crashKV) next() (applied, lives bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.armed {
		return true, true
	}
	c.calls++
	return c.calls <= c.at || c.calls == c.at+1 && c.applied, c.calls <= c.at
}

func crashing[T any](c *crashKV, do func() (*T, error)) (*T, error) {
	applied, lives := c.next()
	if !applied {
		return nil, errCrashed
	}
	got, err := do()
	if !lives {
		return nil, errCrashed
	}
	return got, err
}

func (c *crashKV) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	return crashing(c, func() (*clientv3.GetResponse, error) { return c.KV.Get(ctx, key, opts...) })
}

func (c *crashKV) Delete(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.DeleteResponse, error) {
	return crashing(c, func() (*clientv3.DeleteResponse, error) { return c.KV.Delete(ctx, key, opts...) })
}

func (c *crashKV) Txn(ctx context.Context) clientv3.Txn { return &crashTxn{c.KV.Txn(ctx), c} }

type crashTxn struct {
	clientv3.Txn
	kv *crashKV
}

func (t *crashTxn) If(cs ...clientv3.Cmp) clientv3.Txn  { t.Txn = t.Txn.If(cs...); return t }
func (t *crashTxn) Then(os ...clientv3.Op) clientv3.Txn { t.Txn = t.Txn.Then(os...); return t }
func (t *crashTxn) Else(os ...clientv3.Op) clientv3.Txn { t.Txn = t.Txn.Else(os...); return t }
func (t *crashTxn) Commit() (*clientv3.TxnResponse, error) {
	return crashing(t.kv, t.Txn.Commit)
}

// crashEverywhere runs do in processes that crash in each of its calls of the store, before and after it was applied, until it
// gets through, and has check look at what the next process finds.
func crashEverywhere(t *testing.T, prepare func(w *world), do func(w *world) error, check func(w *world, succeeded bool)) {
	for at, through := 0, false; !through; at++ {
		for _, applied := range []bool{false, true} {
			t.Run(fmt.Sprintf("call=%d/applied=%v", at, applied), func(t *testing.T) {
				kv := &crashKV{KV: storeClient.KV}
				w := newWorld(t, func(o *Options) { o.KV = kv })
				prepare(w)
				kv.arm(at, applied)
				err := do(w)
				through = !kv.disarm() && err == nil
				kv.arm(-1, false) // nothing of the old process is heard of any more
				ctx, cancel := context.WithCancel(context.Background())
				cancel()
				w.topics.Close(ctx)
				kv.disarm()
				w.topics = New(w.options)
				check(w, err == nil)
			})
		}
		if at > 100 {
			t.Fatal("it never gets through")
		}
	}
}

// TestDeletionSurvivesCrash: wherever the process dies, the topic is there with everything, or gone with everything, and what
// comes under its name is new. A transaction that was open on it ends (O-4).
func TestDeletionSurvivesCrash(t *testing.T) {
	var id txn.ID
	crashEverywhere(t, func(w *world) {
		p := w.produce("t")
		w.subscribe("t", "s", earliest)
		p.send(message(0, "plain"))
		id = w.coord.begin()
		p.send(inTxn(id, message(1, "in a transaction")))
	}, func(w *world) error {
		err := w.topics.DeleteTopic(context.Background(), parse(w.t, "t"), true)
		if err == nil {
			eventually(w.t, "sweep is over, or cut off", func() bool {
				kv := w.options.KV.(*crashKV)
				kv.mu.Lock()
				defer kv.mu.Unlock()
				return kv.calls > kv.at || w.keysUnder(w.keys.DeletedPrefix()) == 0
			})
		}
		return err
	}, func(w *world, deleted bool) {
		exists, err := w.topics.TopicExists(context.Background(), parse(w.t, "t"))
		if err != nil || deleted && exists {
			w.t.Fatalf("deleted %v, exists %v, %v", deleted, exists, err)
		}
		w.end(id, txn.Commit, "t", "")
		c := w.subscribe("t", "s")
		p := w.produce("t")
		if exists {
			c.want("plain", "in a transaction")
		} else {
			eventually(w.t, "nothing of the deleted topic is left", func() bool {
				return w.keysUnder(w.keys.DeletedPrefix()) == 0 && w.keysUnder(w.space("t").EntryPrefix()) == w.keysUnder(w.keys.Topics()+"data/")-
					w.keysUnder(w.space("t").MetaPrefix())-1
			})
		}
		p.send(message(0, "new"))
		c.want("new")
	})
}

// TestPartitionedDeletionSurvivesCrash: all partitions or none.
func TestPartitionedDeletionSurvivesCrash(t *testing.T) {
	ctx := context.Background()
	crashEverywhere(t, func(w *world) {
		if err := w.topics.CreatePartitioned(ctx, parse(w.t, "p"), 3, nil); err != nil {
			w.t.Fatal(err)
		}
		for _, name := range []string{"p-partition-0", "p-partition-2"} {
			w.produce(name).send(message(0, "m"))
		}
	}, func(w *world) error {
		return w.topics.DeletePartitioned(ctx, parse(w.t, "p"), true)
	}, func(w *world, deleted bool) {
		names, err := w.topics.TopicsOfNamespace(ctx, "public/default", 0)
		if err != nil || len(names) != 3 && len(names) != 0 || deleted && len(names) != 0 {
			w.t.Fatalf("deleted %v: topics %q, %v", deleted, names, err)
		}
		if len(names) == 3 {
			w.subscribe("p-partition-0", "s", earliest).want("m")
			w.subscribe("p-partition-2", "s", earliest).want("m")
			return
		}
		eventually(w.t, "data is gone", func() bool { return w.keysUnder(w.keys.Topics()+"data/")+w.keysUnder(w.keys.DeletedPrefix()) == 0 })
	})
}

// TestSubscriptionDeletionSurvivesCrash: a subscription goes with its pending acknowledgements or stays with them, and the
// transaction ends either way.
func TestSubscriptionDeletionSurvivesCrash(t *testing.T) {
	var id txn.ID
	crashEverywhere(t, func(w *world) {
		p, c := w.produce("t"), w.subscribe("t", "s", shared)
		id = w.coord.begin()
		if err := c.ackIn(id, p.send(message(0, "held"))); err != nil {
			w.t.Fatal(err)
		}
		p.send(message(1, "left"))
	}, func(w *world) error {
		return w.topics.DeleteSubscription(context.Background(), parse(w.t, "t"), "s", true)
	}, func(w *world, deleted bool) {
		names, err := w.topics.Subscriptions(context.Background(), parse(w.t, "t"))
		if err != nil || deleted && len(names) != 0 {
			w.t.Fatalf("deleted %v: subscriptions %q, %v", deleted, names, err)
		}
		w.end(id, txn.Abort, "t", "s")
		c := w.subscribe("t", "s", shared, earliest)
		c.wantAny("held", "left")
	})
}

// TestTerminationSurvivesCrash: the answered termination stays.
func TestTerminationSurvivesCrash(t *testing.T) {
	crashEverywhere(t, func(w *world) { w.produce("t").send(message(0, "m")) }, func(w *world) error {
		_, err := w.topics.Terminate(context.Background(), parse(w.t, "t"))
		return err
	}, func(w *world, terminated bool) {
		_, err := w.tryProduce("t", nil)
		if terminated && !errors.Is(err, ErrTopicTerminated) {
			w.t.Fatalf("a producer came: %v", err)
		}
		w.subscribe("t", "s", earliest).want("m")
	})
}
