package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/admin"
	"github.com/pulsar-tc/pulsar-tc/internal/etcdprocess"
	"github.com/pulsar-tc/pulsar-tc/internal/faultnet"
	"github.com/pulsar-tc/pulsar-tc/internal/wireclient"
	"github.com/pulsar-tc/pulsar-tc/internal/wiretopic"
	"github.com/pulsar-tc/pulsar-tc/keyspace"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// prompt bounds an answer that needs nothing to get better.
const prompt = 5 * time.Second

// health is what the server says of itself, or nothing if it does not answer.
func (f *fixture) health() (health admin.Health) {
	response, err := http.Get(f.Server.WebURL + "/health")
	if err != nil {
		return health
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(&health); err != nil {
		f.Errorf("health: %v", err)
	}
	return health
}

// state is that of a transaction, or why it cannot be told.
func (f *fixture) state(id txn.ID) string {
	response, err := http.Get(fmt.Sprintf("%s/pulsar-tc/v1/transactions/%d/%d", f.Server.WebURL, id.Most, id.Least))
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	var described admin.Transaction
	if err := json.NewDecoder(response.Body).Decode(&described); err != nil || response.StatusCode != http.StatusOK {
		return response.Status
	}
	return described.State
}

// connect opens a connection that is registered with no coordinator.
func (f *fixture) connect() *wiretopic.Client {
	f.Helper()
	client, err := wiretopic.Dial(f.ctx, f.addr())
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = client.Close() }) // its fate does not matter any more
	return client
}

// fill writes keys of another program, a MiB each, until the cluster takes no more or it has as many. It reports whether it takes more.
func fill(t *testing.T, ctx context.Context, client *clientv3.Client, most int) bool {
	t.Helper()
	value := strings.Repeat("x", 1<<20)
	for i := range most {
		_, err := client.Put(ctx, fmt.Sprintf("/another/%d/%d", most, i), value)
		if errors.Is(err, rpctypes.ErrNoSpace) {
			return false
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return true
}

// makeRoom does what an operator does about the alarm.
func makeRoom(t *testing.T, ctx context.Context, cluster *etcdprocess.Cluster, client *clientv3.Client) {
	t.Helper()
	if _, err := client.Delete(ctx, "/another/", clientv3.WithPrefix()); err != nil {
		t.Fatal(err)
	}
	if _, err := cluster.Compact(ctx); err != nil {
		t.Fatal(err)
	}
	for _, m := range cluster.Members {
		if err := m.Defragment(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := client.AlarmDisarm(ctx, &clientv3.AlarmMember{}); err != nil {
		t.Fatal(err)
	}
}

// FC-48: an etcd without space is an alarm and no crash: what cannot be stored is refused promptly, what needs no store goes on,
// nothing is lost or reported done; once there is room everything goes on without a restart, overdue timeouts too.
func TestFC48EtcdWithoutSpace(t *testing.T) {
	t.Run("seen before a write meets it", func(t *testing.T) { etcdWithoutSpace(t, false) })
	t.Run("met by a write", func(t *testing.T) { etcdWithoutSpace(t, true) })
}

// etcdWithoutSpace has a write of the coordinator meet the alarm, or lets the server see the alarm first. A term whose write met
// it is over, and no other can begin before there is room.
func etcdWithoutSpace(t *testing.T, met bool) {
	cluster := etcdprocess.New(t, etcdprocess.Options{Quota: 16 << 20})
	etcd, err := cluster.Client()
	if err != nil {
		t.Fatal(err)
	}
	f := newStopped(t, binaries.Ordinary(t), onEtcd(cluster.Endpoints()...)...)
	fill(t, f.ctx, etcd, 10) // most of it now: the rest is to be quick
	f.Start()
	client := f.dial()
	producer := f.produce(client, topic("t1"))
	f.send(producer, "plain", nil)
	const soon = 10 * time.Second // behind it etcd is to be full already
	open, overdue := f.begin(client, longTTL, ""), f.begin(client, soon, "")
	f.send(producer, "open", &open)
	f.send(producer, "overdue", &overdue)
	deadline := time.Now().Add(soon)

	if fill(t, f.ctx, etcd, 100) {
		t.Fatal("etcd has no quota")
	}
	if met {
		for range 10 {
			client.StartNewTxn(0, 60_000, "", func(*pulsarproto.BaseCommand, error) {}) // whatever comes of them
		}
	}
	f.await("health tells of the alarm", func() bool { return f.health().Store == "refuse-end" })
	if !strings.Contains(f.metrics(""), `pulsar_tc_store_space{cluster="standalone"} 3`) {
		t.Error("the metrics do not tell of it")
	}
	refused := func(what string, do func(context.Context) error) {
		t.Helper()
		ctx, cancel := context.WithTimeout(f.ctx, prompt)
		defer cancel()
		switch code := codeOf(do(ctx)); code {
		case pulsarproto.ServerError_ServiceNotReady, pulsarproto.ServerError_TransactionCoordinatorNotFound:
		default:
			t.Errorf("%s: answered %s, want a refusal that is tried again", what, codeText(code))
		}
	}
	for range 2 { // before and after the deadline has passed
		client := f.connect()
		refused("NEW_TXN", func(ctx context.Context) error {
			_, err := client.Begin(ctx, 0, 60_000, "")
			return err
		})
		refused("END_TXN", func(ctx context.Context) error { return client.End(ctx, open, txn.Commit, "") })
		if _, err := client.Lookup(f.ctx, topic("t1"), false); err != nil {
			t.Errorf("LOOKUP: %v", err)
		}
		time.Sleep(time.Until(deadline))
	}
	if f.state(overdue) == txn.Aborted.String() || f.state(open) == txn.Committed.String() {
		t.Error("reported done")
	}

	makeRoom(t, f.ctx, cluster, etcd)
	f.await("the overdue timeout happens", func() bool { return f.state(overdue) == txn.Aborted.String() })
	f.end(f.dial(), open, txn.Commit, success)
	f.holds(topic("t1"), "plain", "open")
	if got := f.health().Store; got != "normal" {
		t.Errorf("store: %s", got)
	}
}

// tenantSeen reports whether a server knows a tenant. It answers from memory that a watch keeps.
func (f *fixture) tenantSeen(name string) bool {
	status, err := f.tryRest(http.MethodGet, "tenants/"+name, "")
	return err == nil && status == http.StatusOK
}

const anyTenant = `{"adminRoles":[],"allowedClusters":["standalone"]}`

// FC-49: what changed while a server was cut off from etcd, and was compacted there, is noticed within seconds, by watches that
// do not go round in circles; the coordinator that moved away meanwhile is told where it is.
func TestFC49CutOffWhileCompacted(t *testing.T) {
	cluster := etcdprocess.New(t, etcdprocess.Options{})
	link := faultnet.New(t, cluster.Members[0].Address())
	f := newStopped(t, binaries.Ordinary(t), onEtcd("http://"+link.Addr())...)
	f.Start()
	other := newStopped(t, binaries.Ordinary(t), onEtcd(cluster.Endpoints()...)...)
	other.Instance.Start()
	before := len(f.Server.Lines())

	link.Cut()
	other.mustRest(http.MethodPut, "tenants/while-cut", anyTenant)
	etcd, err := cluster.Client()
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		if _, err := etcd.Put(f.ctx, "/another/key", fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := cluster.Compact(f.ctx); err != nil {
		t.Fatal(err)
	}
	other.await("the other leads", func() bool { return other.leads() })
	f.await("the term ends without etcd", func() bool { return !f.leads() })
	link.Heal()
	f.await("the change is noticed", func() bool { return f.tenantSeen("while-cut") })
	other.mustRest(http.MethodPut, "tenants/behind-it", anyTenant)
	f.await("the next change is noticed", func() bool { return f.tenantSeen("behind-it") })
	if lines := len(f.Server.Lines()) - before; lines > 200 {
		t.Errorf("%d lines of log", lines)
	}
	f.await("a transaction commits", func() bool { return commits(f, other) })
}

// commits reports whether a transaction could be committed on the one of two servers that leads.
func commits(one, other *fixture) bool {
	leader := one
	if !leader.leads() {
		leader = other
	}
	client, err := leader.tryDial(&pulsarproto.CommandConnect{}, nil)
	if err != nil {
		return false
	}
	defer client.Close()
	id, err := client.Begin(leader.ctx, 0, 60_000, "")
	return err == nil && client.End(leader.ctx, id, txn.Commit, "") == nil
}

// FC-49: watches of prefixes where nothing happens live through compactions and a restart of etcd.
func TestFC49QuietWatches(t *testing.T) {
	cluster := etcdprocess.New(t, etcdprocess.Options{})
	set := onEtcd(cluster.Endpoints()...)
	f, other := newStopped(t, binaries.Ordinary(t), set...), newStopped(t, binaries.Ordinary(t), set...)
	f.Start()
	other.Instance.Start()
	etcd, err := cluster.Client()
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		if _, err := etcd.Put(f.ctx, "/another/key", fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
		if _, err := cluster.Compact(f.ctx); err != nil {
			t.Fatal(err)
		}
	}
	member := cluster.Members[0]
	if err := errors.Join(member.Kill(), member.Start(f.ctx)); err != nil {
		t.Fatal(err)
	}
	other.await("etcd is written to again", func() bool {
		status, err := other.tryRest(http.MethodPut, "tenants/quiet", anyTenant)
		return err == nil && (status/100 == 2 || status == http.StatusConflict)
	})
	f.await("the change is noticed", func() bool { return f.tenantSeen("quiet") })
	f.await("a transaction commits", func() bool { return commits(f, other) })
}

// leads reports whether the server serves coordinator 0.
func (f *fixture) leads() bool {
	health := f.health()
	return len(health.Coordinators) > 0 && health.Coordinators[0].Serving
}

// FC-49: a load meets compactions, again and again, and yields what there is.
func TestFC49LoadWhileCompacting(t *testing.T) {
	cluster := etcdprocess.New(t, etcdprocess.Options{})
	f := newStopped(t, binaries.Ordinary(t), onEtcd(cluster.Endpoints()...)...)
	f.Start()
	const transactions = 20_000
	client := f.dial()
	answers := make(chan error, transactions)
	for range transactions {
		client.StartNewTxn(0, uint64(longTTL.Milliseconds()), "", func(answer *pulsarproto.BaseCommand, err error) {
			if err == nil {
				err = wireclient.ErrorOf(answer)
			}
			answers <- err
		})
	}
	for range transactions {
		f.want("NEW_TXN", <-answers, success)
	}
	f.Kill()
	compacting, stop := context.WithCancel(f.ctx)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for compacting.Err() == nil {
			if _, err := cluster.Compact(compacting); err != nil && compacting.Err() == nil && !errors.Is(err, rpctypes.ErrCompacted) {
				t.Error(err)
			}
			if _, err := cluster.Members[0].Status(compacting); err != nil && compacting.Err() == nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		}
	}()
	defer func() { stop(); <-stopped }()
	f.Start()
	if got := f.health().Coordinators[0].Transactions; got != transactions {
		t.Errorf("%d transactions, want %d", got, transactions)
	}
}

// FC-52: a server lives through any number of expiries of its token, watches included; wrong credentials in between are told at
// a bounded rate and heal; secrets are in no log.
func TestFC52TokensExpire(t *testing.T) {
	const password = "a secret of the coordinator"
	cluster := etcdprocess.New(t, etcdprocess.Options{TokenTTL: 2, Flags: []string{"--bcrypt-cost=4"}})
	link := faultnet.New(t, cluster.Members[0].Address())
	ctx := t.Context()
	if err := cluster.Authenticate(ctx, "coordinator", password, "/pulsar-tc/"); err != nil {
		t.Fatal(err)
	}
	etcd, err := cluster.Client()
	if err != nil {
		t.Fatal(err)
	}
	set := append(onEtcd("http://"+link.Addr()), "etcdUser=coordinator", "etcdPassword="+password)
	f := newStopped(t, binaries.Ordinary(t), set...)
	f.Start()
	other := newStopped(t, binaries.Ordinary(t), set...)
	other.Instance.Start()
	works := func(tenant string) {
		t.Helper()
		other.await("the other writes "+tenant, func() bool {
			status, err := other.tryRest(http.MethodPut, "tenants/"+tenant, anyTenant)
			return err == nil && (status/100 == 2 || status == http.StatusConflict)
		})
		f.await("the watch tells of "+tenant, func() bool { return f.tenantSeen(tenant) })
		f.await("a transaction commits", func() bool { return commits(f, other) })
	}
	works("first")
	for i := range 3 {
		time.Sleep(2500 * time.Millisecond) // longer than a token
		works(fmt.Sprint("idle-", i))
	}
	link.Break()
	works("after-a-break")

	before := len(f.Server.Lines())
	if _, err := etcd.UserChangePassword(ctx, "coordinator", "another"); err != nil {
		t.Fatal(err)
	}
	link.Break()
	f.await("the reason is told", func() bool { return f.Server.Said("authentication failed") })
	if _, err := etcd.UserChangePassword(ctx, "coordinator", password); err != nil {
		t.Fatal(err)
	}
	works("after-the-password-came-back")
	lines := f.Server.Lines()
	if n := len(lines) - before; n > 200 {
		t.Errorf("%d lines of log", n)
	}
	for _, line := range append(lines, other.Server.Lines()...) {
		if strings.Contains(line, password) {
			t.Errorf("tells the password: %s", line)
		}
	}
}

// A coordinator that cannot load says why in log, metric and health, tries again and never serves half of what it has; the
// others serve. When the reason is gone it serves, without a restart.
func TestCoordinatorThatCannotLoad(t *testing.T) {
	cluster := etcdprocess.New(t, etcdprocess.Options{})
	set := append(onEtcd(cluster.Endpoints()...), "initialNumTransactionCoordinators=2")
	f := newStopped(t, binaries.Ordinary(t), set...)
	f.Start()
	client := f.dial()
	kept := f.begin(client, longTTL, "")
	f.Kill()
	etcd, err := cluster.Client()
	if err != nil {
		t.Fatal(err)
	}
	damaged := keyspace.New("pulsar-tc", "standalone").Log(0, 1<<40)
	if _, err := etcd.Put(f.ctx, damaged, "no log entry"); err != nil {
		t.Fatal(err)
	}
	f.Instance.Start()
	f.await("health says why", func() bool {
		health := f.health()
		return !health.Healthy && len(health.Coordinators) == 2 && strings.Contains(health.Coordinators[0].Reason, damaged) &&
			!health.Coordinators[0].Serving && health.Coordinators[1].Serving
	})
	if !f.Server.Said("coordinator cannot load") {
		t.Error("the log does not say so")
	}
	failures := `pulsar_tc_load_failures_total{cluster="standalone",coordinator_id="0"} `
	if page := f.metrics(""); !strings.Contains(page, failures) || strings.Contains(page, failures+"0\n") {
		t.Error("the metrics do not say so")
	}
	ctx, cancel := context.WithTimeout(f.ctx, prompt)
	defer cancel()
	if _, err := f.connect().Begin(ctx, 1, 60_000, ""); err != nil {
		t.Errorf("NEW_TXN at the other coordinator: %v", err)
	}
	if _, err := etcd.Delete(f.ctx, damaged); err != nil {
		t.Fatal(err)
	}
	f.await("it serves", func() bool { return f.health().Healthy })
	f.end(f.dial(), kept, txn.Commit, success)
}

// O-4: a transaction that waits for a participant that fails for good is listed with the reason, by REST and on the command
// line, until an operator declares the participant done.
func TestTransactionThatCannotFinish(t *testing.T) {
	cluster := etcdprocess.New(t, etcdprocess.Options{})
	f := newStopped(t, binaries.Ordinary(t), onEtcd(cluster.Endpoints()...)...)
	f.Start()
	client := f.dial()
	id := f.begin(client, longTTL, "")
	f.send(f.produce(client, topic("damaged")), "m1", &id)
	f.send(f.produce(client, topic("good")), "m2", &id)
	f.Kill()
	damage(t, f.ctx, cluster, topic("damaged"))
	f.Start()

	client = f.dial()
	ended := make(chan error, 1)
	client.StartEndTxn(id, txn.Commit, "", func(answer *pulsarproto.BaseCommand, err error) {
		if err == nil {
			err = wireclient.ErrorOf(answer)
		}
		ended <- err
	})
	waiting := func() *admin.Participant {
		for _, p := range f.describe(id).Participants {
			if p.State == "waiting" && p.Failure != "" {
				return &p
			}
		}
		return nil
	}
	f.await("the reason is listed", func() bool { return waiting() != nil })
	stuck := waiting()
	if stuck.Topic != topic("damaged") || !strings.Contains(stuck.Failure, "m/tail") {
		t.Errorf("waits for %+v", stuck)
	}
	list := f.command("transactions", "list", "--state", "COMMITTING")
	if !strings.Contains(list, id.String()) || !strings.Contains(list, topic("damaged")) || !strings.Contains(list, "m/tail") {
		t.Errorf("listed as\n%s", list)
	}
	select {
	case err := <-ended:
		t.Fatalf("answered %v although it is not done", err)
	default:
	}
	f.command("transactions", "resolve", id.String(), "--participant", topic("damaged"))
	f.want("END_TXN", <-ended, success)
	f.holds(topic("good"), "m2")
}

// damage makes what a topic stores of itself unreadable.
func damage(t *testing.T, ctx context.Context, cluster *etcdprocess.Cluster, name string) {
	t.Helper()
	etcd, err := cluster.Client()
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := topicname.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	keys := keyspace.New("pulsar-tc", "standalone")
	found, err := etcd.Get(ctx, keys.TopicName(parsed.Domain, parsed.Tenant, parsed.Namespace, parsed.Local))
	if err != nil || len(found.Kvs) != 1 {
		t.Fatalf("name of %s: %v, %v", name, found, err)
	}
	// The data of a topic are named after the revision that created its name.
	tail := keys.Topic(uint64(found.Kvs[0].CreateRevision)).Tail()
	if got, err := etcd.Put(ctx, tail, "no position", clientv3.WithPrevKV()); err != nil || got.PrevKv == nil {
		t.Fatalf("%s: %v, %v", tail, got, err)
	}
}

// command runs the product's command line against the server and returns what it prints.
func (f *fixture) command(arguments ...string) string {
	f.Helper()
	out, err := exec.CommandContext(f.ctx, f.Options.Binary, append(arguments, "--admin-url", f.Server.WebURL)...).CombinedOutput()
	if err != nil {
		f.Fatalf("%v: %v\n%s", arguments, err, out)
	}
	return string(out)
}
