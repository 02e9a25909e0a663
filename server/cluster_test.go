package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/admin"
	"github.com/pulsar-tc/pulsar-tc/internal/etcdtest"
	"github.com/pulsar-tc/pulsar-tc/internal/wireclient"
	"github.com/pulsar-tc/pulsar-tc/keyspace"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// patience is how long a condition may take to come true.
const patience = 30 * time.Second

// until waits for a condition.
func until(t *testing.T, what string, wanted func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !wanted(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: did not happen", what)
		}
	}
}

// led are the coordinators that s serves.
func led(s *Server) (all []uint64) {
	for _, status := range s.group.Statuses() {
		if status.Serving {
			all = append(all, status.TC)
		}
	}
	return all
}

// shared are the settings of servers on one etcd. Their leases are not to run out where etcd is slow for some seconds.
func shared(etcd *etcdtest.Server, coordinators int) []string {
	return []string{
		"metadataStoreUrl=etcd:" + etcd.Endpoint, fmt.Sprint("initialNumTransactionCoordinators=", coordinators), "coordinatorLeaseSeconds=10",
	}
}

// evenly waits until the servers lead as many coordinators as any other, or one less.
func evenly(t *testing.T, count int, servers ...*Server) {
	t.Helper()
	until(t, fmt.Sprintf("%d coordinators evenly at %d servers", count, len(servers)), func() bool {
		total := 0
		for _, s := range servers {
			n := len(led(s))
			total += n
			if n < count/len(servers) || n > (count+len(servers)-1)/len(servers) {
				return false
			}
		}
		return total == count
	})
}

func refusedWith(err error, code pulsarproto.ServerError) bool {
	var refusal *wireclient.ServerError
	return errors.As(err, &refusal) && refusal.Code == code
}

// Coordinators are spread evenly; any instance tells who leads one; who does not says so. An instance that comes is given its
// share, one that goes gives it back, and open transactions go along.
func TestCoordinatorsAreShared(t *testing.T) {
	const count = 5
	etcd := etcdtest.Serve(t, "http", nil)
	set := shared(etcd, count)
	first, second := start(t, load(t, set...)), start(t, load(t, set...))
	evenly(t, count, first, second)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	var open [count]txn.ID
	for tc := range uint64(count) {
		for _, through := range []*Server{first, second} {
			client, err := wireclient.DialTC(ctx, through.ServiceURL(), tc)
			if err != nil {
				t.Fatal(err)
			}
			if open[tc], err = client.Begin(ctx, tc, 60_000, ""); err != nil {
				t.Fatal(err)
			}
			_ = client.Close()
		}
	}
	tc := led(second)[0]
	elsewhere := dialPlain(ctx, t, first)
	if err := elsewhere.ConnectTC(ctx, tc); !refusedWith(err, pulsarproto.ServerError_ServiceNotReady) {
		t.Errorf("TC_CLIENT_CONNECT to who does not lead: %v, want ServiceNotReady", err)
	}
	if _, err := elsewhere.Begin(ctx, tc, 60_000, ""); !refusedWith(err, pulsarproto.ServerError_TransactionCoordinatorNotFound) {
		t.Errorf("NEW at who does not lead: %v, want TransactionCoordinatorNotFound", err)
	}
	if err := elsewhere.End(ctx, open[tc], txn.Commit, ""); !refusedWith(err, pulsarproto.ServerError_TransactionCoordinatorNotFound) {
		t.Errorf("END at who does not lead: %v, want TransactionCoordinatorNotFound", err)
	}
	for _, name := range []string{
		topicname.AssignTopic.WithPartition(int(tc)).String(), fmt.Sprint("persistent://pulsar/system/__terminated_txn_state_", tc),
	} {
		found, err := elsewhere.Lookup(ctx, name, false)
		if err != nil || found.GetBrokerServiceUrl() != second.ServiceURL() || found.GetProxyThroughServiceUrl() {
			t.Errorf("%s: %v, %v; want %s", name, found, err, second.ServiceURL())
		}
	}

	third := start(t, load(t, set...))
	evenly(t, count, first, second, third)
	for _, s := range []*Server{first, second, third} {
		if h := s.health(); !h.Healthy || len(h.Coordinators) != len(led(s)) || len(h.Instances) != 3 {
			t.Errorf("health of %s: %+v", s.ServiceURL(), h)
		}
	}
	stop(t, first)
	evenly(t, count, second, third)
	for tc, id := range open {
		client, err := wireclient.DialTC(ctx, third.ServiceURL(), uint64(tc))
		if err != nil {
			t.Fatal(err)
		}
		if err := client.End(ctx, id, txn.Commit, ""); err != nil {
			t.Errorf("commit %s: %v", id, err)
		}
		_ = client.Close()
	}
}

// Instances that stop all at once do not wait for each other to take over.
func TestAllStopAtOnce(t *testing.T) {
	const count = 4
	set := shared(etcdtest.Serve(t, "http", nil), count)
	servers := []*Server{start(t, load(t, set...)), start(t, load(t, set...)), start(t, load(t, set...))}
	evenly(t, count, servers...)
	var stopping sync.WaitGroup
	for _, s := range servers {
		stopping.Go(func() { stopWithin(t, s, handOverGrace) })
	}
	stopping.Wait()
}

// dialPlain connects without asking for a coordinator.
func dialPlain(ctx context.Context, t *testing.T, s *Server) *wireclient.Conn {
	t.Helper()
	client, err := wireclient.Dial(ctx, s.ServiceURL()[len("pulsar://"):])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// Without its etcd an instance is not well, and says why, and it is when etcd is back: also one that leads nothing.
func TestHealthWithoutStore(t *testing.T) {
	etcd := etcdtest.Serve(t, "http", nil)
	s := start(t, load(t, append(shared(etcd, 1), "coordinatorLeaseSeconds=60")...)) // so that the term does not end first
	until(t, "well", well(t, s))
	etcd.Stop()
	until(t, "away", unwell(t, s, "away: ", etcd.Endpoint))
	if code, body := get(t, s.WebURL()+"/pulsar-tc/v1/transactions"); code != http.StatusServiceUnavailable ||
		!strings.Contains(body, "coordinator 0") || !strings.Contains(body, "away: ") || strings.Contains(body, "not found") {
		t.Errorf("a list without the store: %d %s", code, body)
	}
	etcd.Start(t)
	until(t, "well again", well(t, s))
}

// Where somebody has deleted the layout of the store no instance is well, and each says what is missing.
func TestHealthWithoutLayout(t *testing.T) {
	s := start(t, load(t))
	until(t, "well", well(t, s))
	store, space := s.store.Client(), s.options.space()
	if _, err := store.Delete(t.Context(), space.Root()+"meta/", clientv3.WithPrefix()); err != nil {
		t.Fatal(err)
	}
	until(t, "the version is missing", unwell(t, s, "without its layout: ", space.Schema()+": absent"))
	put := func(key string, value int) {
		if _, err := store.Put(t.Context(), key, strconv.Itoa(value)); err != nil {
			t.Fatal(err)
		}
	}
	put(space.Schema(), keyspace.SchemaVersion)
	until(t, "the number of coordinators is missing", unwell(t, s, "without its layout: ", space.Coordinators()+": absent"))
	put(space.Coordinators(), 1)
	until(t, "well again", well(t, s))
}

// A leader key that somebody has overwritten is soon one again that names the leader, and clients are served.
func TestOverwrittenLeaderKey(t *testing.T) {
	etcd := etcdtest.Serve(t, "http", nil)
	s := start(t, load(t, shared(etcd, 1)...))
	until(t, "well", well(t, s))
	leads := func() bool {
		id, _, err := s.leader.Holder(t.Context(), 0)
		return err == nil && id == s.cluster.Self().ID && well(t, s)()
	}
	until(t, "leads", leads)
	if _, err := s.store.Client().Put(t.Context(), s.options.space().Leader(0), "garbage"); err != nil {
		t.Fatal(err)
	}
	until(t, "leads again", leads)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	client, err := wireclient.DialTC(ctx, s.ServiceURL(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := client.Begin(ctx, 0, 60_000, ""); err != nil {
		t.Error(err)
	}
}

func healthOf(t *testing.T, s *Server) (code int, health admin.Health) {
	t.Helper()
	code, body := get(t, s.WebURL()+"/health")
	if err := json.Unmarshal([]byte(body), &health); err != nil {
		t.Fatal(err)
	}
	return code, health
}

func well(t *testing.T, s *Server) func() bool {
	return func() bool {
		code, health := healthOf(t, s)
		return code == http.StatusOK && health.Store == "normal"
	}
}

// unwell waits for a page that says why: begins so, and names what is meant.
func unwell(t *testing.T, s *Server, begins, names string) func() bool {
	return func() bool {
		code, health := healthOf(t, s)
		return code == http.StatusServiceUnavailable && strings.HasPrefix(health.Store, begins) && strings.Contains(health.Store, names)
	}
}

// The number of coordinators grows while everybody goes on, and every instance follows.
func TestCoordinatorsGrow(t *testing.T) {
	etcd := etcdtest.Serve(t, "http", nil)
	set := shared(etcd, 2)
	first, second := start(t, load(t, set...)), start(t, load(t, set...))
	evenly(t, 2, first, second)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	client, err := wireclient.DialTC(ctx, first.ServiceURL(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for _, one := range []struct {
		body string
		want int
	}{{"2", 406}, {"0", 406}, {"5000", 406}, {`"x"`, 400}, {"", 400}, {"6", 204}, {"5", 406}} {
		if got := grow(t, first, one.body); got != one.want {
			t.Errorf("replicas %q: %d, want %d", one.body, got, one.want)
		}
	}
	if got := grow(t, second, "6"); got != 406 {
		t.Errorf("replicas 6 again: %d, want 406", got)
	}
	evenly(t, 6, first, second)
	for tc := range uint64(6) {
		client, err := wireclient.DialTC(ctx, second.ServiceURL(), tc)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Begin(ctx, tc, 60_000, ""); err != nil {
			t.Errorf("coordinator %d: %v", tc, err)
		}
		_ = client.Close()
	}
	if third := start(t, load(t, set...)); third.group.Count() != 6 {
		t.Errorf("a new instance knows %d coordinators", third.group.Count())
	}
}

func grow(t *testing.T, s *Server, body string) (status int) {
	t.Helper()
	response, err := http.Post(s.WebURL()+"/admin/v3/transactions/transactionCoordinator/replicas", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	return response.StatusCode
}

// looksUpAgain reports whether a client that could not connect asks anew who leads: the coordinator went elsewhere between its
// look-up and its connect.
func looksUpAgain(ctx context.Context, err error) bool {
	return ctx.Err() == nil && (refusedWith(err, pulsarproto.ServerError_ServiceNotReady) || errors.Is(err, wireclient.ErrClosed) || errors.Is(err, syscall.ECONNREFUSED))
}

// Clients that registered notice nothing of a hand-over but that their connection is closed while they are idle: neither when an
// instance comes, nor when one goes.
func TestHandOverUnderLoad(t *testing.T) {
	const count = 4
	etcd := etcdtest.Serve(t, "http", nil)
	set := shared(etcd, count)
	first, second := start(t, load(t, set...)), start(t, load(t, set...))
	evenly(t, count, first, second)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()

	over := make(chan struct{})
	var clients sync.WaitGroup
	var ended, moved atomic.Int64
	for tc := range uint64(count) {
		for range 3 {
			clients.Go(func() {
				var client *wireclient.Conn
				for {
					for client == nil {
						var err error
						if client, err = wireclient.DialTC(ctx, first.ServiceURL(), tc); err != nil && !looksUpAgain(ctx, err) {
							t.Errorf("find coordinator %d: %v", tc, err)
							return
						}
					}
					// Not for so long that a server that hands over waits no more.
					for n, began := 0, time.Now(); n < 20 && time.Since(began) < 3*time.Second; n++ {
						id, err := client.Begin(ctx, tc, 60_000, "")
						if err == nil {
							err = client.End(ctx, id, txn.Commit, "")
						}
						if err != nil {
							t.Errorf("transaction %s of coordinator %d: %v", id, tc, err)
							return
						}
						ended.Add(1)
					}
					select {
					case <-over:
						_ = client.Close()
						return
					case <-client.Done():
						client = nil
						moved.Add(1)
					case <-time.After(4 * time.Second):
					}
				}
			})
		}
	}
	third := start(t, load(t, set...))
	evenly(t, count, first, second, third)
	until(t, "a client has moved", func() bool { return moved.Load() > 0 })
	stop(t, second)
	evenly(t, count, first, third)
	close(over)
	clients.Wait()
	t.Logf("%d transactions, %d connections moved", ended.Load(), moved.Load())
}
