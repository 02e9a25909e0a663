package topic

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/etcdstore"
	"github.com/pulsar-tc/pulsar-tc/keyspace"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

var storeClient *clientv3.Client

func TestMain(m *testing.M) { os.Exit(runWithStore(m)) }

func runWithStore(m *testing.M) int {
	dir, err := os.MkdirTemp("", "topic")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	store, err := etcdstore.Open(context.Background(), etcdstore.Options{Dir: dir, Space: keyspace.New("pulsar-tc", "store")}, zerolog.Nop())
	if err != nil {
		panic(err)
	}
	storeClient = store.Client()
	code := m.Run()
	if err := store.Close(); err != nil {
		panic(err)
	}
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return code
}

// worlds numbers the key spaces.
var worlds int

// world is one set of topics with a coordinator beside it, on keys of its own.
type world struct {
	t       *testing.T
	keys    keyspace.Space
	kv      *faultyKV
	coord   *coordinator
	topics  *Topics
	options Options
}

func newWorld(t *testing.T, change ...func(*Options)) *world {
	t.Helper()
	worlds++
	w := &world{t: t, keys: keyspace.New("pulsar-tc", fmt.Sprint("world", worlds)), kv: &faultyKV{KV: storeClient.KV}}
	w.coord = &coordinator{kv: storeClient.KV, keys: w.keys, open: make(map[txn.ID]bool)}
	w.options = Options{
		KV: w.kv, Keys: w.keys, Registrar: w.coord, Log: zerolog.Nop(), MaxTxnOps: 8192, MaxRequestBytes: 6 << 20,
		AllowAutoTopicCreation: true, AllowAutoSubscriptionCreation: true,
	}
	for _, c := range change {
		c(&w.options)
	}
	w.topics = New(w.options)
	t.Cleanup(func() { w.close() })
	return w
}

func (w *world) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	w.topics.Close(ctx)
}

// restart closes all topics without answering anything that is in flight, and starts anew on the same store.
func (w *world) restart() {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	w.topics.Close(ctx)
	w.topics = New(w.options)
}

// coordinator keeps open keys as the real one does: ADD creates them, the decision deletes them.
type coordinator struct {
	kv   clientv3.KV
	keys keyspace.Space

	mu   sync.Mutex
	next uint64
	open map[txn.ID]bool
	asks int
	held map[txn.ID]chan struct{} // answers about a transaction wait until its channel is closed
}

func (c *coordinator) Count() uint64 { return 1 }

func (c *coordinator) begin() txn.ID {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next++
	id := txn.ID{Least: c.next}
	c.open[id] = true
	return id
}

func (c *coordinator) AddParticipants(ctx context.Context, id txn.ID, _ cnx.Caller, participants []txn.Participant, done func(error)) {
	go func() {
		c.mu.Lock()
		held := c.held[id]
		c.mu.Unlock()
		if held != nil {
			<-held
		}
		done(c.add(ctx, id, participants))
	}()
}

func (c *coordinator) add(ctx context.Context, id txn.ID, participants []txn.Participant) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asks++
	if !c.open[id] {
		return &txn.NotFoundError{ID: id}
	}
	for _, p := range participants {
		if _, err := c.kv.Put(ctx, c.keys.Open(id, p), ""); err != nil {
			return err
		}
	}
	return nil
}

// decide makes the decision durable: nothing can be written in id behind it.
func (c *coordinator) decide(t *testing.T, id txn.ID) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, id)
	if _, err := c.kv.Delete(context.Background(), c.keys.OpenPrefix(id), clientv3.WithPrefix()); err != nil {
		t.Fatal(err)
	}
}

// faultyKV lets a test stand between a topic and the store.
type faultyKV struct {
	clientv3.KV
	// detached makes writes go on when their caller gave up.
	detached bool

	mu     sync.Mutex
	reads  int // writes that had operations, all of them reads
	around func(commit func() (*clientv3.TxnResponse, error)) (*clientv3.TxnResponse, error)
}

func (f *faultyKV) set(around func(func() (*clientv3.TxnResponse, error)) (*clientv3.TxnResponse, error)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.around = around
}

func (f *faultyKV) Txn(ctx context.Context) clientv3.Txn {
	if f.detached {
		ctx = context.WithoutCancel(ctx)
	}
	return &faultyTxn{f.KV.Txn(ctx), f}
}

type faultyTxn struct {
	clientv3.Txn
	kv *faultyKV
}

func (t *faultyTxn) If(cs ...clientv3.Cmp) clientv3.Txn { t.Txn = t.Txn.If(cs...); return t }
func (t *faultyTxn) Then(os ...clientv3.Op) clientv3.Txn {
	t.Txn = t.Txn.Then(os...)
	if len(os) > 0 && !slices.ContainsFunc(os, func(o clientv3.Op) bool { return !o.IsGet() || o.IsSerializable() }) {
		t.kv.mu.Lock()
		t.kv.reads++
		t.kv.mu.Unlock()
	}
	return t
}
func (t *faultyTxn) Else(os ...clientv3.Op) clientv3.Txn { t.Txn = t.Txn.Else(os...); return t }

func (t *faultyTxn) Commit() (*clientv3.TxnResponse, error) {
	t.kv.mu.Lock()
	around := t.kv.around
	t.kv.mu.Unlock()
	if around == nil {
		return t.Txn.Commit()
	}
	return around(t.Txn.Commit)
}

// end decides and ends id on the topic, or on a subscription of it.
func (w *world) end(id txn.ID, action txn.Action, name, subscription string) {
	w.t.Helper()
	w.coord.decide(w.t, id)
	if err := w.tryEnd(id, action, name, subscription); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) tryEnd(id txn.ID, action txn.Action, name, subscription string) error {
	w.t.Helper()
	done := make(chan error, 1)
	p := txn.Participant{Topic: parse(w.t, name).String()}
	if subscription != "" {
		p.Subscription, p.Kind = subscription, txn.AckedSubscription
	}
	w.topics.EndTxn(context.Background(), id, p, action, 0, func(err error) { done <- err })
	return wait(w.t, done)
}

// keysUnder counts the stored keys behind a prefix.
func (w *world) keysUnder(prefix string) int64 {
	w.t.Helper()
	got, err := storeClient.Get(context.Background(), prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		w.t.Fatal(err)
	}
	return got.Count
}

// space returns the keys of a loaded topic.
func (w *world) space(name string) keyspace.Topic {
	w.t.Helper()
	t := w.topics.loaded(parse(w.t, name).String())
	if t == nil {
		w.t.Fatalf("%s is not loaded", name)
	}
	return t.keys
}
