package topic

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/internal/etcdtest"
	"github.com/pulsar-tc/pulsar-tc/keyspace"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

func benchTopics(kv clientv3.KV, change ...func(*Options)) *Topics {
	worlds++
	options := Options{
		KV: kv, Keys: keyspace.New("pulsar-tc", fmt.Sprint("bench", worlds)), Log: zerolog.Nop(),
		MaxTxnOps: 8192, MaxRequestBytes: 6 << 20, AllowAutoTopicCreation: true, AllowAutoSubscriptionCreation: true,
	}
	for _, c := range change {
		c(&options)
	}
	return New(options)
}

// loadKV counts calls of the store and the keys that they return.
type loadKV struct {
	clientv3.KV
	calls, keys atomic.Int64
}

func (c *loadKV) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	got, err := c.KV.Get(ctx, key, opts...)
	c.calls.Add(1)
	if err == nil {
		c.keys.Add(int64(len(got.Kvs)))
	}
	return got, err
}

func (c *loadKV) Txn(ctx context.Context) clientv3.Txn {
	c.calls.Add(1)
	return c.KV.Txn(ctx)
}

// TestLoadReadsTheSame: a load asks for the same and is given the same after few and after many transactions.
func TestLoadReadsTheSame(t *testing.T) {
	var calls, keys [2]int64
	for i, ended := range []int{10, 4000} {
		kv := &loadKV{KV: storeClient.KV}
		topics := benchTopics(kv)
		name := parse(t, "t")
		endTransactions(t, storeClient, topics, name, ended)
		kv.calls.Store(0)
		kv.keys.Store(0)
		load(t, topics, name)
		calls[i], keys[i] = kv.calls.Load(), kv.keys.Load()
		topics.Close(context.Background())
	}
	if calls[0] != calls[1] || keys[0] != keys[1] {
		t.Fatalf("%d calls for %d keys after few, %d for %d after many", calls[0], keys[0], calls[1], keys[1])
	}
}

// load loads a topic once more, which was left by one load.
func load(tb testing.TB, topics *Topics, name topicname.Name) {
	tb.Helper()
	t, err := topics.read(tb.Context(), name, false)
	if err != nil {
		tb.Fatal(err)
	}
	if t.next != 0 || len(t.ledgers) != 1 {
		tb.Fatal("not what was written")
	}
	t.cancel()
}

// BenchmarkLoad loads topics on which few and many transactions have ended, half of them committed, in turns: each has a store of
// its own, and both cost the same. An operation is one load of each.
func BenchmarkLoad(b *testing.B) {
	var sides []*loadSide
	for _, ended := range []int{100, 100_000} {
		sides = append(sides, newLoadSide(b, ended))
	}
	for b.Loop() {
		for _, s := range sides {
			s.load(b)
		}
	}
	for _, s := range sides {
		slices.Sort(s.took)
		b.ReportMetric(float64(s.took[len(s.took)/2].Microseconds()), fmt.Sprintf("us-p50-of-%d", s.ended))
		b.ReportMetric(float64(s.kv.calls.Load())/float64(len(s.took)), fmt.Sprintf("calls-of-%d", s.ended))
		b.ReportMetric(float64(s.kv.keys.Load())/float64(len(s.took)), fmt.Sprintf("keys-of-%d", s.ended))
	}
}

// loadSide is a topic with ended transactions in a store of its own, and how long its loads took.
type loadSide struct {
	ended  int
	kv     *loadKV
	topics *Topics
	name   topicname.Name
	took   []time.Duration
}

func newLoadSide(b *testing.B, ended int) *loadSide {
	b.Helper()
	client := etcdtest.Open(b, nil).Client()
	s := &loadSide{ended: ended, kv: &loadKV{KV: client.KV}}
	s.topics = benchTopics(s.kv)
	b.Cleanup(func() { s.topics.Close(context.Background()) })
	var err error
	if s.name, err = topicname.Parse("t"); err != nil {
		b.Fatal(err)
	}
	endTransactions(b, client, s.topics, s.name, ended)
	s.kv.calls.Store(0)
	s.kv.keys.Store(0)
	return s
}

func (s *loadSide) load(b *testing.B) {
	began := time.Now()
	load(b, s.topics, s.name)
	s.took = append(s.took, time.Since(began))
}

// endTransactions sends one message in each of n transactions and ends them, then has the store forget its history, as it does
// by itself: until then a load passes over the deleted marks. What the very revision of a compaction deletes, etcd keeps until the
// next one, so that is one of another key.
func endTransactions(b testing.TB, store *clientv3.Client, topics *Topics, name topicname.Name, n int) {
	b.Helper()
	ctx := b.Context()
	client := benchClient{make(chan error, n)}
	p, _, err := topics.Produce(ctx, name, cnx.Caller{}, &pulsarproto.CommandProducer{}, client)
	if err != nil {
		b.Fatal(err)
	}
	participant := txn.Participant{Topic: name.String()}
	const inFlight = 2000
	for first := 0; first < n; first += inFlight {
		ids := make([]txn.ID, 0, inFlight)
		var open []clientv3.Op
		for i := first; i < min(n, first+inFlight); i++ {
			ids = append(ids, txn.ID{Least: uint64(i)})
			open = append(open, clientv3.OpPut(topics.options.Keys.Open(ids[len(ids)-1], participant), ""))
		}
		if _, err := store.Txn(ctx).Then(open...).Commit(); err != nil {
			b.Fatal(err)
		}
		for _, id := range ids {
			p.Send(cnx.Send{SequenceID: id.Least, NumMessages: 1, Payload: make([]byte, 100), InTxn: true, Txn: id})
		}
		client.wait(b, len(ids))
		if _, err := store.Delete(ctx, topics.options.Keys.Root()+"tc/", clientv3.WithPrefix()); err != nil {
			b.Fatal(err)
		}
		for i, id := range ids {
			topics.EndTxn(ctx, id, participant, []txn.Action{txn.Commit, txn.Abort}[i%2], 0, func(err error) { client.receipts <- err })
		}
		client.wait(b, len(ids))
	}
	if err := topics.Unload(ctx, name); err != nil {
		b.Fatal(err)
	}
	got, err := store.Put(ctx, "none", "")
	if err != nil {
		b.Fatal(err)
	}
	if _, err := store.Compact(ctx, got.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
		b.Fatal(err)
	}
}

func (c benchClient) wait(b testing.TB, n int) {
	b.Helper()
	for range n {
		if err := <-c.receipts; err != nil {
			b.Fatal(err)
		}
	}
}

// benchConsumer takes nothing.
type benchConsumer struct{ benchClient }

func (benchConsumer) Message(cnx.Delivery)      {}
func (benchConsumer) Full() bool                { return false }
func (benchConsumer) ActiveConsumerChange(bool) {}
func (benchConsumer) ReachedEndOfTopic()        {}

// BenchmarkTopicHeap is the heap that a topic takes which one producer and one consumer use, a message of 100 bytes behind them.
func BenchmarkTopicHeap(b *testing.B) {
	const count, workers = 10_000, 64
	for b.Loop() {
		topics := benchTopics(storeClient.KV)
		before := heapInUse()
		use := make(chan int)
		var group sync.WaitGroup
		for range workers {
			group.Go(func() {
				for i := range use {
					useTopic(b, topics, fmt.Sprint("topic-", i))
				}
			})
		}
		for i := range count {
			use <- i
		}
		close(use)
		group.Wait()
		b.ReportMetric(float64(heapInUse()-before)/count, "B/topic")
		topics.Close(context.Background())
	}
}

func heapInUse() int64 {
	for range 3 {
		runtime.GC()
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

func useTopic(b *testing.B, topics *Topics, text string) {
	name, err := topicname.Parse(text)
	if err != nil {
		b.Error(err)
		return
	}
	subscription, client := "subscription", benchClient{make(chan error, 1)}
	c, err := topics.Subscribe(b.Context(), name, cnx.Caller{}, &pulsarproto.CommandSubscribe{
		Subscription: &subscription, SubType: pulsarproto.CommandSubscribe_Shared.Enum(),
	}, benchConsumer{client})
	if err != nil {
		b.Error(err)
		return
	}
	c.Flow(1000)
	p, _, err := topics.Produce(b.Context(), name, cnx.Caller{}, &pulsarproto.CommandProducer{}, client)
	if err != nil {
		b.Error(err)
		return
	}
	p.Send(cnx.Send{NumMessages: 1, Payload: make([]byte, 100)})
	if err := <-client.receipts; err != nil {
		b.Error(err)
	}
}
