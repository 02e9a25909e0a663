package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/admin"
	"github.com/pulsar-tc/pulsar-tc/cluster"
	"github.com/pulsar-tc/pulsar-tc/etcdstore"
	"github.com/pulsar-tc/pulsar-tc/internal/etcdtest"
	"github.com/pulsar-tc/pulsar-tc/internal/loopback"
	"github.com/pulsar-tc/pulsar-tc/internal/wireclient"
	"github.com/pulsar-tc/pulsar-tc/server"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// A list has the transactions of all instances, whichever is asked. Where one of them does not answer it says so, and fails.
func TestListHasAllInstances(t *testing.T) {
	etcd := etcdtest.Serve(t, "http", nil)
	set := []string{"metadataStoreUrl=etcd:" + etcd.Endpoint, "initialNumTransactionCoordinators=2"}
	first, second := start(t, set...), start(t, set...)
	ids := []string{beginAt(t, first), beginAt(t, second)}
	for _, s := range []*server.Server{first, second} {
		out, code, err := run("transactions", "list", "--admin-url", s.WebURL())
		if code != 0 || !strings.Contains(out, ids[0]) || !strings.Contains(out, ids[1]) {
			t.Errorf("list: code %d, %v\n%s", code, err, out)
		}
	}
	if out, code, err := run("transactions", "list", "--admin-url", first.WebURL(), "--limit", "1"); code != 0 || strings.Count(out, "OPEN") != 1 {
		t.Errorf("list of one: code %d, %v\n%s", code, err, out)
	}
}

// beginAt opens a transaction at a coordinator that s leads, once it leads one.
func beginAt(t *testing.T, s *server.Server) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	client, err := wireclient.Dial(ctx, strings.TrimPrefix(s.ServiceURL(), "pulsar://"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for tc := uint64(0); ctx.Err() == nil; tc = 1 - tc {
		if client.ConnectTC(ctx, tc) != nil {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		if id, err := client.Begin(ctx, tc, 60_000, ""); err == nil {
			return id.String()
		}
	}
	t.Fatalf("%s leads no coordinator", s.ServiceURL())
	return ""
}

func TestListTellsWhatIsMissing(t *testing.T) {
	gone := httptest.NewServer(nil)
	gone.Close()
	asked := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := `[{"id": "(0,1)", "state": "OPEN"}]`
		if r.URL.Path == "/health" {
			answer = `{"instances": [{"id": "a", "self": true}, {"id": "b", "webUrl": "` + gone.URL + `"}, {"id": "c"}]}`
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = w.Write([]byte(answer))
	}))
	defer asked.Close()
	out, code, err := run("transactions", "list", "--admin-url", asked.URL)
	if code != 1 || !strings.Contains(out, "(0,1)") {
		t.Fatalf("code %d, %v\n%s", code, err, out)
	}
	for _, missing := range []string{"lacks what " + gone.URL + " leads", "lacks what c leads"} {
		if !strings.Contains(err.Error(), missing) {
			t.Errorf("%v, want %q", err, missing)
		}
	}
}

// All instances are asked at the same time: each of these answers when every one has been asked.
func TestListAsksAllAtOnce(t *testing.T) {
	const count = 3
	var asked sync.WaitGroup
	asked.Add(count)
	all := make(chan struct{})
	go func() {
		asked.Wait()
		close(all)
	}()
	var instances []string
	mux := http.NewServeMux()
	mux.HandleFunc("/health", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `{"instances": [%s]}`, strings.Join(instances, ","))
	})
	mux.HandleFunc("/pulsar-tc/v1/transactions", func(w http.ResponseWriter, r *http.Request) {
		asked.Done()
		select {
		case <-all:
			_, _ = fmt.Fprintf(w, `[{"id": %q}]`, r.Host)
		case <-r.Context().Done():
		}
	})
	var want []string
	for i := range count {
		instance := httptest.NewServer(mux)
		defer instance.Close()
		instances = append(instances, fmt.Sprintf(`{"self": %t, "webUrl": %q}`, i == 0, instance.URL))
		want = append(want, instance.URL)
	}
	out, code, err := run("transactions", "list", "--admin-url", want[0], "--json")
	if code != 0 {
		t.Fatalf("code %d, %v\n%s", code, err, out)
	}
	var found []admin.Transaction
	if err := json.Unmarshal([]byte(out), &found); err != nil || len(found) != count {
		t.Fatalf("%v\n%s", err, out)
	}
	for i := range found {
		if "http://"+found[i].ID != want[i] {
			t.Errorf("place %d of the list is that of %s, want %s", i, found[i].ID, want[i])
		}
	}
}

// The token goes along to the instance that leads, whose host has another name.
func TestTokenGoesToTheLeader(t *testing.T) {
	leader := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			w.WriteHeader(http.StatusUnauthorized)
		}
		_, _ = w.Write([]byte(`{"id": "(0,1)"}`))
	}))
	defer leader.Close()
	asked := httptest.NewServer(http.RedirectHandler(strings.Replace(leader.URL, "127.0.0.1", "localhost", 1), http.StatusTemporaryRedirect))
	defer asked.Close()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, code, err := run("transactions", "describe", "(0,1)", "--admin-url", asked.URL, "--token-file", file); code != 0 {
		t.Errorf("code %d, %v\n%s", code, err, out)
	}
	next, _ := http.NewRequest(http.MethodGet, leader.URL, nil)
	first, _ := http.NewRequest(http.MethodGet, "https://localhost", nil)
	if err := showAgain("secret", next, []*http.Request{first}); err == nil || next.Header.Get("Authorization") != "" {
		t.Errorf("from TLS to a connection in the clear: %v", err)
	}
}

// bury puts what an instance leaves behind that died: its record and its leader keys, under a lease that revoke ends.
func bury(t *testing.T, etcd *etcdtest.Server, dead cluster.Instance, coordinators uint64) (revoke func()) {
	t.Helper()
	client, space := etcd.Client(t), etcdtest.Space
	if _, err := etcdstore.EnsureLayout(t.Context(), client, space, coordinators); err != nil {
		t.Fatal(err)
	}
	granted, err := client.Grant(t.Context(), 600)
	if err != nil {
		t.Fatal(err)
	}
	record, err := json.Marshal(dead)
	if err != nil {
		t.Fatal(err)
	}
	left := map[string]string{space.Instance(dead.ID): string(record)}
	for tc := range coordinators {
		left[space.Leader(tc)] = dead.ID + " term"
	}
	for key, value := range left {
		if _, err := client.Put(t.Context(), key, value, clientv3.WithLease(granted.ID)); err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		if _, err := client.Revoke(context.Background(), granted.ID); err != nil {
			t.Error(err)
		}
	}
}

// Of a leader that has died an operator hears who it is, and until when to wait for another; an end waits itself.
func TestDeadLeader(t *testing.T) {
	const coordinators = 2
	etcd := etcdtest.Serve(t, "http", nil)
	port, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer port.Close()
	asked := make(chan struct{}, 1)
	go func() {
		for {
			connection, err := port.Accept()
			if err != nil {
				return
			}
			_ = connection.Close()
			select {
			case asked <- struct{}{}:
			default:
			}
		}
	}()
	dead := cluster.Instance{ID: "dead", ServiceURL: "pulsar://" + port.Addr().String(), WebURL: "http://" + loopback.Address(t)}
	revoke := bury(t, etcd, dead, coordinators)
	s := start(t, "metadataStoreUrl=etcd:"+etcd.Endpoint, "clusterName=test")

	var told error
	id := txn.ID{Least: 1}
	for ; id.Most < coordinators; id.Most++ {
		_, code, err := run("transactions", "describe", id.String(), "--admin-url", s.WebURL())
		if code == 1 && strings.Contains(err.Error(), "connection refused") {
			told = err
			break
		}
	}
	if told == nil {
		t.Fatal("no transaction was asked of the dead leader")
	}
	for _, part := range []string{"led by " + dead.WebURL, "within 8s"} {
		if !strings.Contains(told.Error(), part) {
			t.Errorf("%v, want %q", told, part)
		}
	}

	ended := make(chan int)
	go func() {
		_, code, err := run("transactions", "end", "--service-url", s.ServiceURL(), "--txn-id", id.String(), "--action", "commit")
		if code != exitNotFound {
			t.Errorf("end: code %d, %v", code, err)
		}
		ended <- code
	}()
	select {
	case <-asked:
	case <-ended:
		t.Error("ended without the leader")
		return
	}
	revoke()
	<-ended
}
