package etcdstore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"

	"github.com/pulsar-tc/pulsar-tc/etcdstore"
	"github.com/pulsar-tc/pulsar-tc/internal/etcdtest"
)

// everything is more than an etcd of these tests takes.
const everything = 1 << 10

// fill stores keys of another program, of a mebibyte each, or as many as etcd takes.
func fill(t *testing.T, client *clientv3.Client, mebibytes int) {
	t.Helper()
	for range mebibytes {
		_, err := client.Put(t.Context(), fmt.Sprint("/another/", rand.Uint64()), strings.Repeat("x", 1<<20))
		if errors.Is(err, rpctypes.ErrNoSpace) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// makeRoom does what an operator does about the alarm.
func makeRoom(t *testing.T, client *clientv3.Client) {
	t.Helper()
	deleted, err := client.Delete(t.Context(), "/another/", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Compact(t.Context(), deleted.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Defragment(t.Context(), client.Endpoints()[0]); err != nil {
		t.Fatal(err)
	}
	if _, err := client.AlarmDisarm(t.Context(), &clientv3.AlarmMember{}); err != nil {
		t.Fatal(err)
	}
}

// FC-48: as the quota of the cluster is used up, by whomever, data is refused first, then new transactions; behind the alarm
// everything is. It heals without a restart.
func TestSpaceOfACluster(t *testing.T) {
	t.Parallel()
	server := etcdtest.Serve(t, "http", func(cfg *embed.Config) { cfg.QuotaBackendBytes = 64 << 20 })
	client := server.Client(t)
	store := connect(t, optionsFor(server.Endpoint))
	for _, step := range []struct {
		mebibytes int
		want      etcdstore.Space
	}{{40, etcdstore.Normal}, {8, etcdstore.RefuseData}, {5, etcdstore.RefuseNew}} {
		fill(t, client, step.mebibytes)
		// etcd's file grows in steps of its own, so that more may be refused than what is in use asks for.
		eventually(t, step.want.String(), func() bool {
			now := store.Space()
			return now == step.want || step.want != etcdstore.Normal && now > step.want
		})
	}
	fill(t, client, everything)
	// A write of our own that is refused tells at once.
	if _, err := store.Client().Put(t.Context(), "key", "value"); !errors.Is(err, rpctypes.ErrNoSpace) {
		t.Errorf("put: %v", err)
	}
	if got := store.Space(); got != etcdstore.RefuseEnd {
		t.Errorf("%s behind a refused write", got)
	}
	makeRoom(t, client)
	eventually(t, "there is room again", func() bool { return store.Space() == etcdstore.Normal })
}

// FC-48: a start on an etcd without space waits for room instead of ending again and again.
func TestStartWithoutSpace(t *testing.T) {
	t.Parallel()
	server := etcdtest.Serve(t, "http", func(cfg *embed.Config) { cfg.QuotaBackendBytes = 16 << 20 })
	client := server.Client(t)
	fill(t, client, everything)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if store, err := etcdstore.Connect(ctx, optionsFor(server.Endpoint), quiet); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("%v, %v: did not wait", store, err)
	}
	started := make(chan *etcdstore.Store, 1)
	go func() {
		store, err := etcdstore.Connect(t.Context(), optionsFor(server.Endpoint), quiet)
		if err != nil {
			t.Error(err)
		}
		started <- store
	}()
	makeRoom(t, client)
	store := <-started
	if store == nil {
		return
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}

// fillHistory writes one key again and again, until etcd takes no more.
func fillHistory(t *testing.T, client *clientv3.Client) {
	t.Helper()
	for {
		_, err := client.Put(t.Context(), "/another/key", strings.Repeat("x", 1<<20))
		if errors.Is(err, rpctypes.ErrNoSpace) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// FC-48, etcdManageStore: a cluster that is full of history is repaired by the process that uses it.
func TestManagedClusterIsRepaired(t *testing.T) {
	t.Parallel()
	server := etcdtest.Serve(t, "http", func(cfg *embed.Config) { cfg.QuotaBackendBytes = 16 << 20 })
	options := optionsFor(server.Endpoint)
	options.Manage = true
	store := connect(t, options)
	fillHistory(t, server.Client(t))
	eventually(t, "it stores again", func() bool {
		_, err := store.Client().Put(t.Context(), "key", "value")
		return err == nil
	})
	eventually(t, "there is room again", func() bool { return store.Space() == etcdstore.Normal })
}

// FC-48, etcdManageStore: so is one that was full before the process started.
func TestManagedClusterIsRepairedAtTheStart(t *testing.T) {
	t.Parallel()
	server := etcdtest.Serve(t, "http", func(cfg *embed.Config) { cfg.QuotaBackendBytes = 16 << 20 })
	fillHistory(t, server.Client(t))
	options := optionsFor(server.Endpoint)
	options.Manage = true
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	store, err := etcdstore.Connect(ctx, options, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}
