package cluster_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"

	"github.com/pulsar-tc/pulsar-tc/cluster"
	"github.com/pulsar-tc/pulsar-tc/internal/etcdtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 30 * time.Second

func join(t testing.TB, client cluster.Client, change func(*cluster.Options)) *cluster.Cluster {
	t.Helper()
	options := cluster.Options{
		Client: client, Keys: etcdtest.Space, Lease: 10 * time.Second, Log: zerolog.New(zerolog.NewTestWriter(t)),
		Self: cluster.Instance{ServiceURL: "pulsar://127.0.0.1:6650"},
	}
	if change != nil {
		change(&options)
	}
	joined, err := cluster.Join(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := joined.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return joined
}

// await waits until the view of c fulfils what is wanted.
func await(t testing.TB, c *cluster.Cluster, what string, wanted func() bool) {
	t.Helper()
	deadline := time.After(patience)
	for {
		changed := c.Changed()
		if wanted() {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("%s: did not happen, %v", what, c.Instances())
		}
	}
}

func sees(c *cluster.Cluster, n int) func() bool {
	return func() bool { return len(c.Instances()) == n }
}

func closed(t testing.TB, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatalf("%s: did not happen", what)
	}
}

func TestInstancesSeeEachOther(t *testing.T) {
	client := etcdtest.Open(t, nil).Client()
	a := join(t, client, nil)
	b := join(t, client, func(o *cluster.Options) { o.Self.WebURL = "http://127.0.0.1:8080" })
	await(t, b, "b sees both", sees(b, 2))
	await(t, a, "a sees both", sees(a, 2))
	if found, ok := a.Find(b.Self().ID); !ok || found.WebURL != b.Self().WebURL || found.Started == 0 || found.Clock == 0 {
		t.Errorf("a sees b as %v, %v", found, ok)
	}
	if a.PlaceTopic("x") != b.PlaceTopic("x") && a.PlaceTopic("x").ID != b.PlaceTopic("x").ID {
		t.Error("they disagree")
	}

	if err := b.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := b.PlaceTopic("x").ID; got != a.Self().ID {
		t.Errorf("b, which leaves, places a topic at %s", got)
	}
	await(t, a, "b has left", sees(a, 1))
	if lease := b.Session().Lease; lease == 0 {
		t.Error("a process that leaves has no session any more")
	} else if _, err := client.Put(t.Context(), "k", "", clientv3.WithLease(lease)); err != nil {
		t.Errorf("the session of a process that leaves is over: %v", err)
	}
	if err := b.Leave(t.Context()); err != nil {
		t.Errorf("leave again: %v", err)
	}
}

func TestCloseIsSeenAtOnce(t *testing.T) {
	client := etcdtest.Open(t, nil).Client()
	a := join(t, client, func(o *cluster.Options) { o.Lease = time.Hour })
	b := join(t, client, func(o *cluster.Options) { o.Lease = time.Hour })
	await(t, a, "a sees both", sees(a, 2))
	if err := b.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	await(t, a, "b is gone", sees(a, 1))
}

// grantLater grants no lease, once armed, before the test lets it.
type grantLater struct {
	*clientv3.Client
	armed atomic.Bool
	goOn  chan struct{}
}

func (c *grantLater) Grant(ctx context.Context, ttl int64) (*clientv3.LeaseGrantResponse, error) {
	if c.armed.Load() {
		select {
		case <-c.goOn:
		case <-ctx.Done():
		}
	}
	return c.Client.Grant(ctx, ttl)
}

// FC-50: a session whose lease is gone is known to be lost, and another begins without a restart. What hung on the old one is
// gone, and nothing can be put under it any more.
func TestLostSession(t *testing.T) {
	client := etcdtest.Open(t, nil).Client()
	ofA := &grantLater{Client: client, goOn: make(chan struct{})}
	a, b := join(t, ofA, nil), join(t, client, nil)
	await(t, b, "b sees both", sees(b, 2))
	first := a.Session()
	ofA.armed.Store(true) // b might see the next record only
	if _, err := client.Revoke(t.Context(), first.Lease); err != nil {
		t.Fatal(err)
	}
	await(t, b, "a is gone", sees(b, 1))
	closed(t, "the session is lost", first.Lost)
	close(ofA.goOn)
	await(t, b, "a is back", sees(b, 2))
	second := a.Session()
	if second.Lease == first.Lease || second.Lease == 0 {
		t.Errorf("lease %x after %x", second.Lease, first.Lease)
	}
	select {
	case <-second.Lost:
		t.Error("the second session is lost, too")
	default:
	}
	if _, ok := b.Find(a.Self().ID); !ok {
		t.Error("a came back as somebody else")
	}
}

// A record that somebody deleted, or that a write of an earlier session put under a lease that will go, is put right.
func TestRecordIsPutRight(t *testing.T) {
	client := etcdtest.Open(t, nil).Client()
	a := join(t, client, func(o *cluster.Options) { o.Lease = time.Hour })
	key := etcdtest.Space.Instance(a.Self().ID)
	for _, wrong := range []func() error{
		func() error { _, err := client.Delete(t.Context(), key); return err },
		func() error { _, err := client.Put(t.Context(), key, `{"id":"`+a.Self().ID+`"}`); return err },
	} {
		if err := wrong(); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
			found, err := client.Get(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			if len(found.Kvs) == 1 && found.Kvs[0].Lease == int64(a.Session().Lease) {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("the record is still %v", found.Kvs)
			}
		}
	}
}

// A record that was written late comes behind the deletion by a process that leaves: others are not to place anything there.
func TestRecordThatComesLate(t *testing.T) {
	client := etcdtest.Open(t, nil).Client()
	a, b := join(t, client, nil), join(t, client, nil)
	await(t, a, "a sees both", sees(a, 2))
	key := etcdtest.Space.Instance(b.Self().ID)
	record, err := client.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	await(t, a, "b has left", sees(a, 1))
	late, err := client.Put(t.Context(), key, string(record.Kvs[0].Value), clientv3.WithLease(b.Session().Lease))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	seen, follows := <-client.Watch(ctx, key, clientv3.WithRev(late.Header.Revision+1))
	if !follows || seen.Err() != nil || seen.Events[0].Type != clientv3.EventTypeDelete {
		t.Fatalf("behind the late record: %v, %v", seen.Events, seen.Err())
	}
	await(t, a, "b has left", sees(a, 1))
}

// Keys of others under our prefix are no instances and do no harm.
func TestForeignKeys(t *testing.T) {
	client := etcdtest.Open(t, nil).Client()
	for name, value := range map[string]string{
		"x": "not JSON", "y": `{"id":"z"}`, "w": `{}`, "v": `{"id":7}`, "a b": `{"id":"a b"}`,
	} {
		if _, err := client.Put(t.Context(), etcdtest.Space.Instance(name), value); err != nil {
			t.Fatal(err)
		}
	}
	a := join(t, client, nil)
	if all := a.Instances(); len(all) != 1 || all[0].ID != a.Self().ID {
		t.Errorf("instances %v", all)
	}
}

// compactedClient asks for history that etcd has not any more, the first times.
type compactedClient struct {
	*clientv3.Client
	left    atomic.Int32 // watches that are still to be too late
	watches atomic.Int32
	inTime  chan struct{} // closed with the first watch that is not
}

func (c *compactedClient) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	c.watches.Add(1)
	switch left := c.left.Add(-1); {
	case left >= 0:
		opts = append(opts, clientv3.WithRev(1))
	case left == -1:
		close(c.inTime)
	}
	return c.Client.Watch(ctx, key, opts...)
}

// lineCounter counts what a log says of watches.
type lineCounter struct{ atomic.Int32 }

func (c *lineCounter) Write(line []byte) (int, error) {
	if strings.Contains(string(line), "not followed") {
		c.Add(1)
	}
	return len(line), nil
}

// FC-49: a watch whose revision is compacted reads again, sees what it missed, and neither loops tightly nor gives up.
func TestCompactedWatch(t *testing.T) {
	client := &compactedClient{Client: etcdtest.Open(t, nil).Client(), inTime: make(chan struct{})}
	now, err := client.Put(t.Context(), "k", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Compact(t.Context(), now.Header.Revision); err != nil {
		t.Fatal(err)
	}
	const late = 4
	client.left.Store(late)
	began := time.Now()
	var said lineCounter
	a := join(t, client, func(o *cluster.Options) { o.Log = zerolog.New(&said) })
	b := join(t, client.Client, nil)
	await(t, a, "a sees b", sees(a, 2))
	if err := b.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	await(t, a, "a sees that b went", sees(a, 1))
	closed(t, "a watch that is not too late", client.inTime)
	if lines := said.Load(); lines != 1 {
		t.Errorf("%d lines in the log about %d watches that failed in a row", lines, late)
	}
	// 50 ms, then twice as long each time: by doubling, n watches took (2^n - 1) times as long.
	took, most := time.Since(began), late+4
	for pause := 50 * time.Millisecond; pause < took; pause *= 2 {
		most++
	}
	if n := int(client.watches.Load()); n > most {
		t.Errorf("%d watches within %v, want at most %d", n, took, most)
	}
}

func TestRefusedToJoin(t *testing.T) {
	client := etcdtest.Open(t, nil).Client()
	for _, options := range []cluster.Options{
		{Client: client, Keys: etcdtest.Space, Lease: time.Millisecond},
		{Client: client, Keys: etcdtest.Space, Lease: 1500 * time.Millisecond},
		{Client: client, Keys: etcdtest.Space, Self: cluster.Instance{ID: "a/b"}},
	} {
		if _, err := cluster.Join(t.Context(), options); err == nil {
			t.Errorf("joined with %v, %q", options.Lease, options.Self.ID)
		}
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := cluster.Join(over, cluster.Options{Client: client, Keys: etcdtest.Space}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want the end of the context", err)
	}
}

func TestAlone(t *testing.T) {
	c := cluster.Alone(cluster.Instance{ServiceURL: "pulsar://127.0.0.1:6650"})
	if c.Session().Lease != 0 || c.Session().Lost != nil {
		t.Errorf("session %v", c.Session())
	}
	self := c.Self()
	c.SetCoordinators(1)
	if self.ID == "" || c.PlaceTopic("x") != self || c.PlaceCoordinator(0) != self || len(c.Instances()) != 1 {
		t.Errorf("%v places a topic at %v", self, c.PlaceTopic("x"))
	}
	if err := errors.Join(c.Leave(t.Context()), c.Close(t.Context())); err != nil {
		t.Error(err)
	}
}

// Clocks that are minutes apart are noticed by both, in either direction, when a record is written.
func TestClocksApart(t *testing.T) {
	client := etcdtest.Open(t, nil).Client()
	a := join(t, client, nil)
	b := join(t, client, func(o *cluster.Options) {
		o.Now = func() time.Time { return time.Now().Add(5 * time.Minute) }
	})
	await(t, a, "a sees both", sees(a, 2))
	if ahead, known := a.Skew(b.Self().ID); !known || (ahead-5*time.Minute).Abs() > 30*time.Second {
		t.Errorf("b is %v ahead, %v", ahead, known)
	}
	if _, known := b.Skew(a.Self().ID); known {
		t.Error("b judges a by a record of unknown age")
	}
	// a writes its record again.
	if _, err := client.Delete(t.Context(), etcdtest.Space.Instance(a.Self().ID)); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		if ahead, known := b.Skew(a.Self().ID); known {
			if (ahead + 5*time.Minute).Abs() > 30*time.Second {
				t.Errorf("a is %v ahead", ahead)
			}
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("b does not notice")
		}
	}
}

// said is what was logged.
type said struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *said) Write(line []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(line)
}

func (s *said) count(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Count(s.text.String(), what)
}

// Two instances at one address are told to the operator, once, but not what a process left behind that was at it before.
func TestSameAddress(t *testing.T) {
	client := etcdtest.Open(t, nil).Client()
	began := time.Now()
	var later atomic.Int64 // than began
	var log said
	a := join(t, client, func(o *cluster.Options) {
		o.Now = func() time.Time { return began.Add(time.Duration(later.Load())) }
		o.Log = zerolog.New(&log)
	})
	twin := join(t, client, nil)
	join(t, client, func(o *cluster.Options) { o.Self.ServiceURL = "pulsar://127.0.0.1:6651" })
	await(t, a, "a sees all", sees(a, 3))
	const warning = "advertised at the address"
	if n := log.count(warning); n != 0 {
		t.Errorf("%d warnings within a lease", n)
	}
	for i := range 2 { // each read is later than the one before by more than leases last
		later.Add(int64(time.Minute))
		join(t, client, func(o *cluster.Options) { o.Self.ServiceURL = "" })
		await(t, a, "a sees one more", sees(a, 4+i))
	}
	if n := log.count(warning); n != 1 || log.count(`"`+twin.Self().ID+`"`) != 1 {
		t.Errorf("%d warnings, want one, of %s: %s", n, twin.Self().ID, log.text.String())
	}
}
