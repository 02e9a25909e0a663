package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/admin"
	"github.com/pulsar-tc/pulsar-tc/internal/etcdprocess"
	"github.com/pulsar-tc/pulsar-tc/internal/wiretopic"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
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

// fill writes keys of another program until the cluster takes no more.
func fill(t *testing.T, ctx context.Context, client *clientv3.Client) {
	t.Helper()
	value := strings.Repeat("x", 1<<20)
	for i := range 100 {
		_, err := client.Put(ctx, fmt.Sprint("/another/", i), value)
		if errors.Is(err, rpctypes.ErrNoSpace) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("etcd has no quota")
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
	cluster := etcdprocess.New(t, etcdprocess.Options{Quota: 16 << 20})
	etcd, err := cluster.Client()
	if err != nil {
		t.Fatal(err)
	}
	f := newStopped(t, binaries.Ordinary(t), onEtcd(cluster.Endpoints()...)...)
	f.resume()
	client := f.dial()
	producer := f.produce(client, topic("t1"))
	f.send(producer, "plain", nil)
	open, overdue := f.begin(client, longTTL, ""), f.begin(client, 3*time.Second, "")
	f.send(producer, "open", &open)
	f.send(producer, "overdue", &overdue)
	deadline := time.Now().Add(3 * time.Second)

	fill(t, f.ctx, etcd)
	f.await("health tells of the alarm", func() bool { return f.health().Store == "refuse-end" })
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
