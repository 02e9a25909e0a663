package topic

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// roll is who lives.
type roll struct {
	mu   sync.Mutex // guards dead
	dead map[string]bool
}

// member is one instance.
type member struct {
	t    *testing.T
	id   string
	roll *roll

	mu    sync.Mutex // guards the rest
	lease clientv3.LeaseID
	lost  chan struct{}
}

func (m *member) ID() string { return m.id }

func (m *member) Session() (clientv3.LeaseID, <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lease, m.lost
}

func (m *member) Lives(id string) bool {
	m.roll.mu.Lock()
	defer m.roll.mu.Unlock()
	return !m.roll.dead[id]
}

// begin begins a session.
func (m *member) begin() {
	m.t.Helper()
	granted, err := storeClient.Grant(context.Background(), 600)
	if err != nil {
		m.t.Fatal(err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lease, m.lost = granted.ID, make(chan struct{})
}

// revoke ends the lease; the instance does not know.
func (m *member) revoke() {
	m.t.Helper()
	lease, _ := m.Session()
	if _, err := storeClient.Revoke(context.Background(), lease); err != nil {
		m.t.Fatal(err)
	}
}

// notice tells the instance that its lease is gone.
func (m *member) notice() {
	m.mu.Lock()
	defer m.mu.Unlock()
	close(m.lost)
}

// instances are worlds that share a key space.
type instances struct {
	a, b    *world
	of      map[*world]*member
	members *roll
}

func newInstances(t *testing.T, change ...func(*Options)) *instances {
	t.Helper()
	in := &instances{of: make(map[*world]*member), members: &roll{dead: make(map[string]bool)}}
	join := func(id string) *world {
		m := &member{t: t, id: id, roll: in.members}
		m.begin()
		w := newWorld(t, append(change, func(o *Options) {
			if in.a != nil {
				o.Keys, o.Registrar = in.a.keys, in.a.coord
			}
			o.Instance, o.Watcher = m, storeClient
		})...)
		if in.a != nil {
			w.keys, w.coord = in.a.keys, in.a.coord
		}
		in.of[w] = m
		return w
	}
	in.a = join("a")
	in.b = join("b")
	return in
}

func (in *instances) die(w *world) {
	in.members.mu.Lock()
	defer in.members.mu.Unlock()
	in.members.dead[in.of[w].id] = true
}

// wantElsewhere fails unless w says that another instance serves the topic.
func wantElsewhere(t *testing.T, err error, owner string) {
	t.Helper()
	var elsewhere *NotOwnerError
	if !errors.As(err, &elsewhere) || elsewhere.Owner != owner || !errors.Is(err, txn.ErrNotReady) {
		t.Fatalf("%v, want a hint at instance %s", err, owner)
	}
}

func (w *world) owner(name string) string {
	w.t.Helper()
	owner, err := w.topics.Owner(context.Background(), parse(w.t, name))
	if err != nil {
		w.t.Fatal(err)
	}
	return owner
}

// One instance serves a topic; who asks another one is told. Unloaded, it goes to whoever loads it next, with everything.
func TestOneOwner(t *testing.T) {
	in := newInstances(t)
	p := in.a.produce("x")
	sendMany(p, 2)
	if _, err := in.b.tryProduce("x", &pulsarproto.CommandProducer{Topic: ptr("x")}); err == nil {
		t.Fatal("two instances serve a topic")
	} else {
		wantElsewhere(t, err, "a")
	}
	wantElsewhere(t, in.b.topics.Unload(t.Context(), parse(t, "x")), "a")
	if got := in.b.owner("x"); got != "a" {
		t.Errorf("owner %q", got)
	}
	if err := in.a.topics.Unload(t.Context(), parse(t, "x")); err != nil {
		t.Fatal(err)
	}
	happens(t, p.disconnected)
	if got := in.b.owner("x"); got != "" {
		t.Errorf("owner %q of an unloaded topic", got)
	}
	c := in.b.subscribe("x", "s", earliest)
	c.want("m0", "m1")
	if _, err := in.a.tryProduce("x", &pulsarproto.CommandProducer{Topic: ptr("x")}); err == nil {
		t.Fatal("two instances serve a topic")
	} else {
		wantElsewhere(t, err, "b")
	}
}

// FC-50: the lease of an instance that stands still expires, another one loads the topic, and the first goes on with a write that was on
// its way. Etcd refuses it: no message is stored twice, out of order or without a receipt that somebody got.
func TestWriteOfPausedOwnerIsRefused(t *testing.T) {
	in := newInstances(t)
	p := in.a.produce("x")
	sendMany(p, 1)
	written, goOn := make(chan struct{}), make(chan struct{})
	in.a.kv.set(func(commit func() (*clientv3.TxnResponse, error)) (*clientv3.TxnResponse, error) {
		close(written)
		<-goOn
		in.a.kv.set(nil)
		return commit()
	})
	p.Send(message(7, "late"))
	happens(t, written)
	in.of[in.a].revoke()

	q := in.b.produce("x")
	q.Send(message(1, "of the new owner"))
	if r := q.receipt(); r.err != nil {
		t.Fatal(r.err)
	}
	close(goOn)
	happens(t, p.disconnected)
	select {
	case r := <-p.receipts:
		if r.err == nil {
			t.Errorf("a receipt %v for what is not stored", r.position)
		}
	default:
	}
	c := in.b.subscribe("x", "s", earliest)
	c.want("m0", "of the new owner")
	c.wantNothing(in.b, "x")
}

// A paused owner ends a transaction that the next owner has ended, or writes in it: nothing of it counts, and whoever asks hears of
// the owner that there is.
func TestEndOnPausedOwner(t *testing.T) {
	in := newInstances(t)
	id := in.a.coord.begin()
	p := in.a.produce("x")
	p.send(inTxn(id, message(1, "in")))
	in.of[in.a].revoke()
	c := in.b.subscribe("x", "s", earliest)
	in.b.end(id, txn.Commit, "x", "")
	c.want("in")

	err := in.a.tryEnd(id, txn.Abort, "x", "")
	if err == nil {
		t.Fatal("an end that nothing stands behind")
	}
	err = in.a.tryEnd(id, txn.Abort, "x", "")
	wantElsewhere(t, err, "b")
	in.b.topics.Unload(t.Context(), parse(t, "x"))
	c = in.b.subscribe("x", "later", earliest)
	c.want("in")
}

// What a lost session owned is closed at once, also where nothing is written; with the next one the instance serves again.
func TestSessionLost(t *testing.T) {
	in := newInstances(t)
	c := in.a.subscribe("x", "s")
	in.of[in.a].revoke()
	in.of[in.a].notice()
	happens(t, c.disconnected)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := in.a.topics.Subscriptions(ctx, parse(t, "x")); err == nil {
		t.Error("a topic is loaded without a lease")
	}
	in.of[in.a].begin()
	p := in.a.produce("x")
	sendMany(p, 1)
	if got := in.b.owner("x"); got != "a" {
		t.Errorf("owner %q", got)
	}
	// And the second session is followed as the first one was.
	in.of[in.a].revoke()
	in.of[in.a].notice()
	happens(t, p.disconnected)
}

// A load behind the death of an owner waits until its lease has ended, instead of sending clients to and fro.
func TestLoadWaitsForLease(t *testing.T) {
	in := newInstances(t)
	in.a.produce("x")
	in.die(in.a)
	loaded := make(chan error, 1)
	go func() {
		_, err := in.b.topics.Subscriptions(t.Context(), parse(t, "x"))
		loaded <- err
	}()
	select {
	case err := <-loaded:
		t.Fatalf("loaded while the lease lives: %v", err)
	case <-time.After(200 * time.Millisecond):
	}
	in.of[in.a].revoke()
	if err := wait(t, loaded); err != nil {
		t.Fatal(err)
	}
	if got := in.a.owner("x"); got != "b" {
		t.Errorf("owner %q", got)
	}
}

// A process that had the store to itself left owner keys without a lease; they keep nobody out.
func TestOwnerWithoutLease(t *testing.T) {
	in := newInstances(t)
	alone := newWorld(t, func(o *Options) { o.Keys = in.a.keys })
	sendMany(alone.produce("x"), 1)
	alone.close()
	if got := in.a.owner("x"); got != "" {
		t.Errorf("owner %q", got)
	}
	in.a.subscribe("x", "s", earliest).want("m0")
}

// Deletions reach the instance that serves a topic: without force they are its to decide, with force they close it there.
func TestDeletionElsewhere(t *testing.T) {
	in := newInstances(t)
	name := parse(t, "x")
	c := in.a.subscribe("x", "s")
	wantElsewhere(t, in.b.topics.DeleteTopic(t.Context(), name, false), "a")
	if err := in.b.topics.DeleteTopic(t.Context(), name, true); err != nil {
		t.Fatal(err)
	}
	happens(t, c.disconnected)
	eventually(t, "the topic leaves memory", func() bool { return !in.a.topics.Loaded(name) })

	// Without an owner, any instance does it.
	in.a.produce("y")
	if err := in.a.topics.Unload(t.Context(), parse(t, "y")); err != nil {
		t.Fatal(err)
	}
	if err := in.b.topics.DeleteTopic(t.Context(), parse(t, "y"), false); err != nil {
		t.Fatal(err)
	}
}

// A gap in the watch is made up for: a topic that is not this instance's any more is closed.
func TestDisownedTopicIsClosed(t *testing.T) {
	in := newInstances(t)
	c, kept := in.a.subscribe("x", "s"), in.a.subscribe("y", "s")
	if _, err := storeClient.Delete(t.Context(), in.a.space("x").Owner()); err != nil {
		t.Fatal(err)
	}
	in.a.topics.closeDisowned()
	happens(t, c.disconnected)
	select {
	case <-kept.disconnected:
		t.Error("a topic was closed that is this instance's")
	default:
	}
}

// More partitions begin with the subscriptions of the first one, whoever serves that.
func TestMorePartitionsOfTopicElsewhere(t *testing.T) {
	in := newInstances(t)
	name := parse(t, "x")
	if err := in.a.topics.CreatePartitioned(t.Context(), name, 1, nil); err != nil {
		t.Fatal(err)
	}
	in.a.subscribe("x-partition-0", "s", shared)
	in.a.subscribe("x-partition-0", "r", shared)
	if err := in.b.topics.UpdatePartitions(t.Context(), name, 2); err != nil {
		t.Fatal(err)
	}
	if names, err := in.b.topics.Subscriptions(t.Context(), name.WithPartition(1)); err != nil || len(names) != 2 {
		t.Errorf("%v, %v", names, err)
	}
}

// HandOver answers what waits, sends clients elsewhere, and lets others load everything.
func TestHandOver(t *testing.T) {
	in := newInstances(t)
	p, c := in.a.produce("x"), in.a.subscribe("y", "s")
	for i := range uint64(100) {
		p.Send(message(i, "m"))
	}
	in.a.topics.HandOver(t.Context())
	for range 100 {
		if r := p.receipt(); r.err != nil {
			t.Fatal(r.err)
		}
	}
	happens(t, p.disconnected)
	happens(t, c.disconnected)
	for _, name := range []string{"x", "y"} {
		if got := in.b.owner(name); got != "" {
			t.Errorf("%s is still %s's", name, got)
		}
	}
	if _, err := in.a.tryProduce("x", &pulsarproto.CommandProducer{Topic: ptr("x")}); !errors.Is(err, txn.ErrNotReady) {
		t.Errorf("it still loads: %v", err)
	}
	in.b.produce("x")
}

// How long a topic is unused is known to whoever loads it next: it is neither deleted early nor kept for ever, because it goes from one
// instance to another.
func TestIdleTimeMovesAlong(t *testing.T) {
	var mu sync.Mutex
	now := time.UnixMilli(1_700_000_000_000)
	in := newInstances(t, func(o *Options) {
		o.Now = func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return now
		}
		o.Policies = func(topicname.Name) Policies { return Policies{DeleteInactive: true, InactiveAfter: time.Hour} }
	})
	pass := func(d time.Duration) {
		in.a.tickAll()
		in.b.tickAll()
		mu.Lock()
		now = now.Add(d)
		mu.Unlock()
		in.a.tickAll()
		in.b.tickAll()
	}
	exists := func() bool {
		there, err := in.a.topics.TopicExists(t.Context(), parse(t, "x"))
		if err != nil {
			t.Fatal(err)
		}
		return there
	}
	idle := func(w *world) {
		w.produce("x").Close()
		pass(2 * time.Minute)
		eventually(t, "the topic is given up", func() bool { return w.owner("x") == "" })
	}
	idle(in.a)
	pass(50 * time.Minute)
	idle(in.b) // used again
	pass(30 * time.Minute)
	in.a.topics.revisit() // it is 80 minutes since it was used here
	in.a.tickAll()
	eventually(t, "the topic was looked at and given up", func() bool { return in.a.owner("x") == "" })
	if !exists() {
		t.Fatal("deleted 32 minutes after its last use")
	}
	pass(40 * time.Minute)
	in.a.topics.revisit()
	in.a.tickAll()
	eventually(t, "the topic is deleted", func() bool { return !exists() })
}

func TestDormantEncoding(t *testing.T) {
	at := func(n int64) time.Time { return time.UnixMilli(n) }
	d := dormant{
		mark: endMark{at(5), ledger.Position{Ledger: 7, Entry: 9}}, idleSince: at(6), unused: map[string]time.Time{"s": at(1), "": {}, "longer": at(1 << 50)},
	}
	got, err := decodeDormant("key", d.encode())
	if err != nil || got.mark != d.mark || got.idleSince != d.idleSince || len(got.unused) != 3 || !got.unused["longer"].Equal(at(1<<50)) || !got.unused[""].IsZero() {
		t.Errorf("%+v, %v", got, err)
	}
	for n := range len(d.encode()) {
		if n == 17 {
			continue
		}
		if short, err := decodeDormant("key", d.encode()[:n]); err == nil && len(short.unused) == 3 {
			t.Errorf("%d bytes are enough", n)
		}
	}
}

func FuzzDecodeDormant(f *testing.F) {
	d := dormant{unused: map[string]time.Time{"s": time.UnixMilli(3)}}
	f.Add(d.encode())
	f.Fuzz(func(t *testing.T, value []byte) {
		d, err := decodeDormant("key", value)
		if err != nil {
			return
		}
		again, err := decodeDormant("key", d.encode())
		if err != nil || again.mark != d.mark || len(again.unused) != len(d.unused) {
			t.Errorf("%+v became %+v, %v", d, again, err)
		}
	})
}

// What an instance that is gone left undeleted is deleted by another one, when it has been seen twice.
func TestSweepForOthers(t *testing.T) {
	in := newInstances(t)
	left := in.a.keys.Topic(1)
	for _, key := range []string{in.a.keys.Deleted(1), left.Tail()} {
		if _, err := storeClient.Put(t.Context(), key, "x"); err != nil {
			t.Fatal(err)
		}
	}
	found := in.b.topics.sweepLeft(nil)
	if n := in.b.keysUnder(left.Prefix()); n != 1 {
		t.Errorf("%d keys behind the first look", n)
	}
	in.b.topics.sweepLeft(found)
	if n := in.b.keysUnder(left.Prefix()) + in.b.keysUnder(in.a.keys.DeletedPrefix()); n != 0 {
		t.Errorf("%d keys are left", n)
	}
}
