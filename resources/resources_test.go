package resources

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"

	"github.com/pulsar-tc/pulsar-tc/etcdstore"
	"github.com/pulsar-tc/pulsar-tc/internal/etcdtest"
	"github.com/pulsar-tc/pulsar-tc/topicname"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, store *etcdstore.Store) *Resources {
	t.Helper()
	return openOn(t, store, store.Client())
}

// openOn opens what writes and reads through kv.
func openOn(t *testing.T, store *etcdstore.Store, kv clientv3.KV) *Resources {
	t.Helper()
	r, err := Open(t.Context(), Options{
		KV: kv, Watcher: store.Client(), Keys: etcdtest.Space, Creator: etcdtest.Creator(t, kv), Cluster: "here",
		Log: zerolog.New(zerolog.NewTestWriter(t)),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func check(t *testing.T, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !holds(); {
		if time.Now().After(deadline) {
			t.Fatal(what)
		}
		time.Sleep(time.Millisecond)
	}
}

var topicA = topicname.Name{Domain: topicname.Persistent, Tenant: "t", Namespace: "ns", Local: "a/%2F.."}

func TestTenantsAndNamespaces(t *testing.T) {
	store := etcdtest.Open(t, nil)
	r, ctx := open(t, store), t.Context()
	if got := r.Tenants(); !slices.Equal(got, []string{"public", "pulsar"}) {
		t.Errorf("tenants at the start: %q", got)
	}
	if r.Namespace("public/default") == nil || r.Namespace("pulsar/system") == nil || r.Namespace("public/other") != nil {
		t.Error("namespaces at the start")
	}
	check(t, "namespace without tenant", r.CreateNamespace(ctx, "t/ns", nil), ErrTenantNotFound)
	check(t, "create tenant", r.CreateTenant(ctx, "t", Document{"adminRoles": []byte(`["boss"]`), "unknown": []byte(`7`)}), nil)
	check(t, "create tenant again", r.CreateTenant(ctx, "t", nil), ErrTenantExists)
	check(t, "create namespace", r.CreateNamespace(ctx, "t/ns", nil), nil)
	check(t, "create namespace again", r.CreateNamespace(ctx, "t/ns", nil), ErrNamespaceExists)
	check(t, "delete tenant with namespaces", r.DeleteTenant(ctx, "t"), ErrTenantNotEmpty)
	name := etcdtest.Space.TopicName(topicname.Persistent, "t", "ns", "a")
	if _, err := store.Client().Put(ctx, name, "1"); err != nil {
		t.Fatal(err)
	}
	check(t, "delete namespace with topics", r.DeleteNamespace(ctx, "t/ns"), ErrNamespaceNotEmpty)
	if _, err := store.Client().Delete(ctx, name); err != nil {
		t.Fatal(err)
	}
	check(t, "policies of a topic", r.UpdateTopic(ctx, topicA, func(d Document) error { return d.Set("max_producers_per_topic", 3) }), nil)
	if p := r.Topic(topicA.WithPartition(2)); p == nil || *p.MaxProducers != 3 {
		t.Errorf("policies of a partition: %+v", p)
	}

	again := open(t, store) // a restart
	if got := again.Tenant("t"); got == nil || !slices.Equal(got.AdminRoles, []string{"boss"}) || string(got.Document["unknown"]) != "7" {
		t.Errorf("tenant after a restart: %+v", got)
	}
	if p := again.Topic(topicA); p == nil || *p.MaxProducers != 3 {
		t.Errorf("policies of a topic after a restart: %+v", p)
	}
	check(t, "delete namespace", r.DeleteNamespace(ctx, "t/ns"), nil)
	if r.Topic(topicA) != nil {
		t.Error("policies of a topic outlive its namespace")
	}
	check(t, "delete namespace again", r.DeleteNamespace(ctx, "t/ns"), ErrNamespaceNotFound)
	check(t, "delete tenant", r.DeleteTenant(ctx, "t"), nil)
	check(t, "delete tenant again", r.DeleteTenant(ctx, "t"), ErrTenantNotFound)
	eventually(t, "another process does not see the deletions", func() bool {
		return again.Tenant("t") == nil && again.Topic(topicA) == nil && again.Namespace("t/ns") == nil
	})
}

// Values that an earlier version stored are empty objects; a value that nobody can read stops the start.
func TestStoredValues(t *testing.T) {
	store := etcdtest.Open(t, nil)
	for _, key := range []string{etcdtest.Space.Tenant("old"), etcdtest.Space.Namespace("old", "ns")} {
		if _, err := store.Client().Put(t.Context(), key, "1"); err != nil {
			t.Fatal(err)
		}
	}
	r := open(t, store)
	if r.Tenant("old") == nil || r.Namespace("old/ns") == nil {
		t.Error("values of an earlier version are not read")
	}
	check(t, "update", r.UpdateNamespace(t.Context(), "old/ns", func(d Document) error { return d.Set("message_ttl_in_seconds", 5) }), nil)
	if p := r.Namespace("old/ns"); p == nil || *p.MessageTTLSeconds != 5 {
		t.Errorf("updated: %+v", p)
	}
	if _, err := store.Client().Put(t.Context(), etcdtest.Space.Tenant("bad"), "{"); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), Options{KV: store.Client(), Watcher: store.Client(), Keys: etcdtest.Space}); err == nil {
		t.Error("opened with a corrupt value")
	}
}

// Changes that meet are all kept, and a bad one changes nothing.
func TestUpdatesMeet(t *testing.T) {
	store := etcdtest.Open(t, nil)
	first, second := open(t, store), open(t, store)
	var all sync.WaitGroup
	for i, r := range []*Resources{first, second, first, second} {
		all.Go(func() {
			name := string(rune('a' + i))
			if err := r.UpdateNamespace(context.Background(), "public/default", func(d Document) error { return d.Set(name, i) }); err != nil {
				t.Error(err)
			}
			if r.Namespace("public/default").Document[name] == nil {
				t.Errorf("the change of %s is not in memory when the call returns", name)
			}
		})
	}
	all.Wait()
	for _, r := range []*Resources{first, second} {
		eventually(t, "changes are lost", func() bool { return len(r.Namespace("public/default").Document) == 4 })
	}
	var refusal *Error
	err := first.UpdateNamespace(t.Context(), "public/default", func(d Document) error { return d.Set("max_producers_per_topic", "x") })
	if !errors.As(err, &refusal) || refusal.Kind != Invalid || len(first.Namespace("public/default").Document) != 4 {
		t.Errorf("a bad value: %v, %s", err, first.Namespace("public/default").Document)
	}
	check(t, "unknown namespace", first.UpdateNamespace(t.Context(), "public/x", func(Document) error { return nil }), ErrNamespaceNotFound)
	check(t, "unknown tenant", first.UpdateNamespace(t.Context(), "x/x", func(Document) error { return nil }), ErrTenantNotFound)
}

// Policies of a topic that are written at the moment in which the namespace is deleted are not there for the next of its name.
func TestNamespaceIsDeletedMeanwhile(t *testing.T) {
	r, ctx := open(t, etcdtest.Open(t, nil)), t.Context()
	check(t, "create tenant", r.CreateTenant(ctx, "t", nil), nil)
	check(t, "create namespace", r.CreateNamespace(ctx, "t/ns", nil), nil)
	check(t, "policies of a topic", r.UpdateTopic(ctx, topicA, func(d Document) error {
		check(t, "delete namespace", r.DeleteNamespace(ctx, "t/ns"), nil)
		return d.Set("max_producers_per_topic", 3)
	}), ErrNamespaceNotFound)
	check(t, "create namespace again", r.CreateNamespace(ctx, "t/ns", nil), nil)
	if p := r.Topic(topicA); p != nil {
		t.Errorf("policies of a topic of a namespace that was deleted: %s", p.Document)
	}
}

// An event of the watch never replaces what came later, in whatever order both arrive.
func TestOldEventsChangeNothing(t *testing.T) {
	one, two := &Tenant{}, &Tenant{}
	table := newTable("", parseTenant)
	table.wrote("x", two, 7)
	table.saw("x", one, 5)
	if table.get("x") != two {
		t.Error("an older event replaced a write")
	}
	table.wrote("x", nil, 9)
	table.saw("x", two, 7)
	if table.get("x") != nil {
		t.Error("an older event brought a deleted value back")
	}
	table.saw("x", nil, 9)
	if len(table.entries) != 0 {
		t.Errorf("left over: %v", table.entries)
	}
	table.wrote("x", one, 8) // the watch has told of this one and of its deletion
	if table.get("x") != nil {
		t.Error("a write that the watch has overtaken came back")
	}
}

// deafWatcher tells of nothing.
type deafWatcher struct{ clientv3.Watcher }

func (deafWatcher) Watch(ctx context.Context, _ string, _ ...clientv3.OpOption) clientv3.WatchChan {
	answers := make(chan clientv3.WatchResponse)
	go func() {
		<-ctx.Done()
		close(answers)
	}()
	return answers
}

// A namespace that another process has made is found though the watch has not told of it; where nobody else writes, nothing is read.
func TestNamespaceMadeElsewhere(t *testing.T) {
	store := etcdtest.Open(t, nil)
	other := open(t, store)
	for _, shared := range []bool{true, false} {
		late, err := Open(t.Context(), Options{
			KV: store.Client(), Watcher: deafWatcher{}, Keys: etcdtest.Space, Creator: etcdtest.Creator(t, store.Client()), Cluster: "here", Shared: shared, Log: zerolog.Nop(),
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(late.Close)
		name := fmt.Sprintf("t-%t/ns", shared)
		tenant, _, _ := strings.Cut(name, "/")
		check(t, "make a tenant", other.CreateTenant(t.Context(), tenant, nil), nil)
		check(t, "make a namespace", other.CreateNamespace(t.Context(), name, nil), nil)
		found, err := late.FindNamespace(t.Context(), name)
		if err != nil || (found != nil) != shared || (late.Tenant(tenant) != nil) != shared {
			t.Errorf("shared %t: %v, %v", shared, found, err)
		}
		if missing, err := late.FindNamespace(t.Context(), "t/none"); missing != nil || err != nil {
			t.Errorf("%v, %v", missing, err)
		}
	}
}

// silentKV answers no read.
type silentKV struct{ clientv3.KV }

func (silentKV) Get(ctx context.Context, _ string, _ ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

// A store that does not answer holds up nobody for longer than StoreTimeout, neither who asks nor what is read again.
func TestSilentStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Resources{
			options:    Options{KV: silentKV{}, Shared: true, StoreTimeout: 10 * time.Second},
			tenants:    newTable("t/", parseTenant),
			namespaces: newTable("n/", parsePolicies),
		}
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		found, err := r.FindNamespace(ctx, "t/ns")
		if found != nil || !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != r.options.StoreTimeout {
			t.Errorf("%v, %v after %s", found, err, time.Since(began))
		}
		began = time.Now()
		if _, err := r.tenants.reload(ctx, silentKV{}, r.options.StoreTimeout, zerolog.Nop()); err == nil || time.Since(began) != r.options.StoreTimeout {
			t.Errorf("%v after %s", err, time.Since(began))
		}
	})
}

// After a compaction that the watch did not survive everything is read again, what can be: a value that cannot be read leaves the
// others true.
func TestWatchGap(t *testing.T) {
	store := etcdtest.Open(t, nil)
	r := open(t, store)
	client := store.Client()
	revision := r.tenants.watched
	var last int64
	for _, tenant := range []string{"a", "bad", "b"} {
		value := "{}"
		if tenant == "bad" {
			value = "{"
		}
		put, err := client.Put(t.Context(), etcdtest.Space.Tenant(tenant), value)
		if err != nil {
			t.Fatal(err)
		}
		last = put.Header.Revision
	}
	if _, err := client.Compact(t.Context(), last, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	late := newTable(etcdtest.Space.TenantPrefix(), parseTenant)
	before := &Tenant{}
	late.saw("bad", before, revision)
	late.saw("gone", &Tenant{}, revision)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var task sync.WaitGroup
	task.Go(func() { late.follow(ctx, client, client, revision-1, time.Minute, zerolog.Nop()) })
	eventually(t, "the gap was not read again", func() bool {
		return late.get("a") != nil && late.get("b") != nil && late.get("gone") == nil
	})
	if late.get("bad") != before {
		t.Error("the value before one that cannot be read is not in force")
	}
	cancel()
	task.Wait()
}

// cutOff answers as an etcd member without a leader does, and counts the requests.
type cutOff struct {
	clientv3.KV
	clientv3.Watcher
	requests atomic.Int64
}

func (c *cutOff) Get(context.Context, string, ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	c.requests.Add(1)
	return nil, rpctypes.ErrNoLeader
}

func (c *cutOff) Watch(context.Context, string, ...clientv3.OpOption) clientv3.WatchChan {
	c.requests.Add(1)
	answers := make(chan clientv3.WatchResponse, 1)
	answers <- clientv3.WatchResponse{Canceled: true, CancelReason: rpctypes.ErrNoLeader.Error()}
	close(answers)
	return answers
}

// Without a leader in etcd a table says once that it does not hear of changes and once that it cannot read, and asks ever less often.
func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said bytes.Buffer
		etcd := &cutOff{}
		ctx, cancel := context.WithCancel(t.Context())
		var task sync.WaitGroup
		task.Go(func() {
			newTable(etcdtest.Space.TenantPrefix(), parseTenant).follow(ctx, etcd, etcd, 1, time.Minute, zerolog.New(&said))
		})
		time.Sleep(time.Minute)
		cancel()
		task.Wait()
		if lines := bytes.Count(said.Bytes(), []byte("\n")); lines != 2 || etcd.requests.Load() > 30 {
			t.Errorf("%d requests in a minute, and said:\n%s", etcd.requests.Load(), &said)
		}
	})
}

func TestNumber(t *testing.T) {
	for text, want := range map[string]Number{`12`: 12, `"12"`: 12, `-1`: -1, `3.0`: 3, `"7.0"`: 7} {
		var got Number
		if err := got.UnmarshalJSON([]byte(text)); err != nil || got != want {
			t.Errorf("%s: %d, %v", text, got, err)
		}
	}
	for _, text := range []string{`"x"`, `1.5`, `""`, `{}`, `99999999999999999999999`} {
		var got Number
		if err := got.UnmarshalJSON([]byte(text)); err == nil {
			t.Errorf("%s: %d", text, got)
		}
	}
}

func FuzzPolicies(f *testing.F) {
	f.Add([]byte(`{"backlog_quota_map":{"destination_storage":{"limit":"10","policy":"producer_exception"}},"x":[1]}`))
	f.Add([]byte(`1`))
	f.Fuzz(func(t *testing.T, text []byte) {
		first, err := parsePolicies(text)
		if err != nil {
			return
		}
		again, err := first.Document.encode()
		if err != nil {
			return
		}
		if _, err := parsePolicies(again); err != nil {
			t.Errorf("%s was read, its encoding %s is not: %v", text, again, err)
		}
	})
}

// Policies of a topic are kept for a namespace that another process has just made, and not for one that is deleted meanwhile: the next
// namespace of that name would have them.
func TestTopicPoliciesNeedTheirNamespace(t *testing.T) {
	store := etcdtest.Open(t, nil)
	other := open(t, store)
	late, err := Open(t.Context(), Options{
		KV: store.Client(), Watcher: deafWatcher{}, Keys: etcdtest.Space, Creator: etcdtest.Creator(t, store.Client()), Cluster: "here", Shared: true, Log: zerolog.Nop(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(late.Close)
	name := topicname.Name{Domain: topicname.Persistent, Tenant: "public", Namespace: "ns", Local: "x"}
	set := func(d Document) error { return d.Set("message_ttl_in_seconds", 3) }
	check(t, "make a namespace", other.CreateNamespace(t.Context(), "public/ns", nil), nil)
	check(t, "set a policy elsewhere", late.UpdateTopic(t.Context(), name, set), nil)
	check(t, "delete the namespace meanwhile", other.UpdateTopic(t.Context(), name, func(d Document) error {
		check(t, "delete the namespace", other.DeleteNamespace(t.Context(), "public/ns"), nil)
		return set(d)
	}), ErrNamespaceNotFound)
	check(t, "make it anew", other.CreateNamespace(t.Context(), "public/ns", nil), nil)
	got, err := store.Client().Get(t.Context(), other.topics.prefix+topicName(name))
	if err != nil || len(got.Kvs) != 0 {
		t.Errorf("the new namespace has a policy of the old one: %v, %v", got, err)
	}
}
