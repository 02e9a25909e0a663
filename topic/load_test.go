package topic

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topic/dedup"
	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// TestCorruptValues: a value that cannot be understood stops the load of its topic, with the key, and of no other.
func TestCorruptValues(t *testing.T) {
	ctx := context.Background()
	for _, kind := range []string{"tail", "epoch", "dedup", "ledger", "txn", "frontier", "acked", "batch", "pending", "unknown", "unknown of a subscription"} {
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t)
			w.produce("a").send(message(0, "m"))
			w.subscribe("a", "s")
			space, sub, id := w.space("a"), w.space("a").Subscription(0), txn.ID{Least: 1}
			key := map[string]string{
				"tail": space.Tail(), "epoch": space.Epoch(), "dedup": space.Dedup(1), "ledger": space.Ledger(1), "txn": space.Txn(id), "frontier": sub.Frontier(),
				"acked": sub.Acked(1, 1<<60), "batch": sub.Batch(1, 1), "pending": sub.Pending(id, 1),
				"unknown": space.MetaPrefix() + "new", "unknown of a subscription": sub.Prefix() + "new",
			}[kind]
			if _, err := storeClient.Put(ctx, key, "garbage"); err != nil {
				t.Fatal(err)
			}
			w.restart()
			_, err := w.tryProduce("a", &pulsarproto.CommandProducer{})
			if !errors.Is(err, ErrPersistence) || !strings.Contains(err.Error(), space.MetaPrefix()) {
				t.Fatalf("load: %v, want a refusal that names the key", err)
			}
			if err := w.tryEnd(id, txn.Commit, "a", ""); !errors.Is(err, ErrPersistence) {
				t.Fatalf("an end on a corrupt topic: %v", err)
			}
			w.produce("b").send(message(0, "m"))
		})
	}
}

// TestCorruptBlock: nothing is delivered behind it, and nothing made up.
func TestCorruptBlock(t *testing.T) {
	w := newWorld(t)
	p := w.produce("a")
	at, _ := sendMany(p, 3)
	space := w.space("a")
	w.restart()
	if _, err := storeClient.Put(context.Background(), space.Entries(at[1].Ledger, at[1].Entry), "garbage"); err != nil {
		t.Fatal(err)
	}
	c := w.subscribe("a", "s", earliest)
	done := make(chan error, 1)
	c.Seek(&pulsarproto.CommandSeek{MessagePublishTime: ptr(uint64(1))}, func(err error) { done <- err })
	if err := wait(t, done); !errors.Is(err, ErrPersistence) {
		t.Fatalf("search over a corrupt block: %v", err)
	}
	if len(c.messages) > 0 {
		t.Fatal("delivered from a page that has a corrupt block")
	}
}

// brokenKV fails reads and puts as long as failures are left.
type brokenKV struct {
	clientv3.KV
	failures atomic.Int32
}

func (b *brokenKV) Get(ctx context.Context, key string, options ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	if b.failures.Add(-1) >= 0 {
		return nil, errInjected
	}
	return b.KV.Get(ctx, key, options...)
}

func (b *brokenKV) Put(ctx context.Context, key, value string, options ...clientv3.OpOption) (*clientv3.PutResponse, error) {
	if b.failures.Add(-1) >= 0 {
		return nil, errInjected
	}
	return b.KV.Put(ctx, key, value, options...)
}

func TestLoadIsTriedAgain(t *testing.T) {
	broken := &brokenKV{KV: storeClient.KV}
	w := newWorld(t, func(o *Options) { o.KV = broken })
	broken.failures.Store(3)
	w.produce("a").send(message(0, "m"))
	w.options.LoadTimeout = 2 * time.Second // for the last load, too, which must succeed
	w.restart()
	broken.failures.Store(1 << 30)
	if _, err := w.tryProduce("a", &pulsarproto.CommandProducer{}); !errors.Is(err, txn.ErrNotReady) {
		t.Fatalf("load that never succeeds: %v", err)
	}
	broken.failures.Store(0)
	w.subscribe("a", "s", earliest).want("m")
}

// TestCloseAnswersWhatWaits: a shutdown answers what it can.
func TestCloseAnswersWhatWaits(t *testing.T) {
	w := newWorld(t)
	p := w.produce("a")
	reached, release := make(chan struct{}, 10), make(chan struct{})
	w.kv.set(func(commit func() (*clientv3.TxnResponse, error)) (*clientv3.TxnResponse, error) {
		reached <- struct{}{}
		<-release
		return commit()
	})
	p.Send(message(0, "in flight"))
	<-reached
	p.Send(message(1, "waits"))
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		w.topics.Close(context.Background())
	}()
	close(release)
	for i := range 2 {
		if r := p.receipt(); r.err != nil || r.sequence != uint64(i) {
			t.Fatalf("answer %d: %+v", i, r)
		}
	}
	<-closed
	<-p.disconnected
	w.kv.set(nil)
	if _, err := w.tryProduce("a", &pulsarproto.CommandProducer{}); !errors.Is(err, txn.ErrNotReady) {
		t.Fatalf("produce after Close: %v", err)
	}
	w.topics = New(w.options)
	w.subscribe("a", "s", earliest).want("in flight", "waits")
}

func FuzzDecodeMark(f *testing.F) {
	m := markDraft{
		first: ledger.Position{Ledger: 1, Entry: 2}, last: ledger.Position{Ledger: 3, Entry: 4},
	}
	f.Add(m.encode(dedup.Sequences{"": 0, "producer": 1 << 63}))
	f.Fuzz(func(t *testing.T, value []byte) {
		got, err := decodeMark(value)
		if err != nil {
			return
		}
		again, err := decodeMark((&markDraft{first: got.first, last: got.last}).encode(got.dedup))
		if err != nil || !reflect.DeepEqual(got, again) {
			t.Fatalf("%v: %+v, want %+v", err, again, got)
		}
	})
}
