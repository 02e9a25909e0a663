package etcdstore_test

import (
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"

	"github.com/pulsar-tc/pulsar-tc/etcdstore"
	"github.com/pulsar-tc/pulsar-tc/internal/certtest"
	"github.com/pulsar-tc/pulsar-tc/internal/etcdprocess"
	"github.com/pulsar-tc/pulsar-tc/internal/etcdtest"
	"github.com/pulsar-tc/pulsar-tc/internal/loopback"
)

// at makes a member listen at a given address.
func at(address string) func(*embed.Config) {
	return func(cfg *embed.Config) { cfg.ListenClientUrls = []url.URL{{Scheme: "http", Host: address}} }
}

// eventually polls until done is true.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: did not happen", what)
		}
	}
}

// An endpoint that is down at the start and then belongs to another cluster is never used.
func TestStrangerComesLater(t *testing.T) {
	t.Parallel()
	home := etcdtest.Serve(t, "http", nil)
	address := loopback.Address(t)
	options := optionsFor(home.Endpoint, "http://"+address)
	options.Patience = time.Second
	store := connect(t, options)
	stranger := etcdtest.Serve(t, "http", at(address))
	for until := time.Now().Add(4 * time.Second); time.Now().Before(until); { // some looks
		if _, err := store.Client().Put(t.Context(), "key", "value"); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := stranger.Client(t).Get(t.Context(), "key"); err != nil || len(got.Kvs) != 0 {
		t.Errorf("%v, %v: the stranger was written to", got, err)
	}
	select {
	case err := <-store.Failed():
		t.Errorf("failed: %v", err)
	default:
	}
}

// A member that was replaced by one of another cluster ends the process: what it believes to be stored is not there.
func TestReplacedCluster(t *testing.T) {
	t.Parallel()
	home := etcdtest.Serve(t, "http", nil)
	store, err := etcdstore.Connect(t.Context(), optionsFor(home.Endpoint), quiet)
	if err != nil {
		t.Fatal(err)
	}
	home.Stop()
	etcdtest.Serve(t, "http", at(strings.TrimPrefix(home.Endpoint, "http://")))
	eventually(t, "an answer of the other cluster is refused", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := store.Client().Get(ctx, "key")
		return err != nil && strings.Contains(err.Error(), "answers for cluster")
	})
	select {
	case err := <-store.Failed():
		if !strings.Contains(err.Error(), "answers for cluster") {
			t.Errorf("failed: %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Error("not told")
	}
	if err := store.Close(); err == nil {
		t.Error("close hides the failure")
	}
}

// An etcd that goes away comes back for the same store, and a member that does not answer is given no requests.
func TestMembersGoAndComeBack(t *testing.T) {
	t.Parallel()
	home := etcdtest.Serve(t, "http", nil)
	options := optionsFor(home.Endpoint, "http://"+loopback.Address(t))
	options.Patience = time.Second
	store := connect(t, options)
	if got := store.Client().Endpoints(); len(got) != 1 || got[0] != home.Endpoint {
		t.Errorf("requests go to %v", got)
	}
	home.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if _, err := store.Client().Put(ctx, "key", "value"); err == nil {
		t.Fatal("written to nobody")
	}
	eventually(t, "away", func() bool { return strings.Contains(store.Away(), home.Endpoint) })
	home.Start(t)
	eventually(t, "back", func() bool { return store.Away() == "" })
	eventually(t, "written again", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := store.Client().Put(ctx, "key", "value")
		return err == nil
	})
}

// FC-52: tokens of a few seconds expire again and again; requests, watches and leases go on. Wrong credentials in between are an
// error, and heal when they are right again.
func TestTokensExpire(t *testing.T) {
	t.Run("simple", func(t *testing.T) { tokensExpire(t, func(cfg *embed.Config) { cfg.AuthTokenTTL = 2 }) })
	t.Run("JWT", func(t *testing.T) {
		key := filepath.Join(t.TempDir(), "key.pem")
		pair := certtest.NewAuthority(t).Sign(t, "tokens", time.Now().Add(time.Hour))
		if err := os.WriteFile(key, pair.Key, 0o600); err != nil {
			t.Fatal(err)
		}
		tokensExpire(t, func(cfg *embed.Config) { cfg.AuthToken = "jwt,priv-key=" + key + ",sign-method=ES256,ttl=2s" })
	})
}

func tokensExpire(t *testing.T, change func(*embed.Config)) {
	t.Parallel()
	server := etcdtest.Serve(t, "http", change)
	prefix := etcdtest.Space.Root()
	root := server.Authenticate(t, prefix)
	options := optionsFor(server.Endpoint)
	options.User, options.Password = etcdtest.User, etcdtest.UserPassword
	store := connect(t, options)
	client := store.Client()
	key := prefix + "key"

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	events := make(chan string, 100)
	go follow(ctx, client, key, events)
	lease, err := client.Grant(ctx, 10)
	if err != nil {
		t.Fatal(err)
	}
	renewed, err := client.KeepAlive(ctx, lease.ID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Put(ctx, prefix+"leased", "", clientv3.WithLease(lease.ID)); err != nil {
		t.Fatal(err)
	}
	go func() {
		for range renewed {
		}
	}()
	put := func(value string) error {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		_, err := client.Put(ctx, key, value)
		return err
	}
	heard := func(value string) {
		t.Helper()
		eventually(t, "the watch hears of "+value, func() bool {
			if put(value) != nil {
				return false
			}
			select {
			case got := <-events:
				return got == value
			case <-time.After(200 * time.Millisecond): // the watch may not stand yet
				return false
			}
		})
	}
	for _, value := range []string{"1", "2"} {
		heard(value)
		time.Sleep(5 * time.Second) // longer than a token; twice is as long as the lease
		fresh, end := context.WithTimeout(ctx, 10*time.Second)
		if response := <-client.Watch(fresh, key, clientv3.WithCreatedNotify()); !response.Created || response.Err() != nil {
			t.Errorf("a fresh watch: %+v, %v", response, response.Err())
		}
		end()
	}
	server.Stop() // breaks all connections
	server.Start(t)
	heard("after a restart")

	etcdtest.Revoke(t, root, prefix)
	if err := put("refused"); err == nil {
		t.Error("written without a right")
	}
	etcdtest.Grant(t, root, prefix)
	heard("after a right came back")
	setPassword := func(password string) {
		t.Helper()
		eventually(t, "password changed", func() bool {
			ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
			defer cancel()
			_, err := root.UserChangePassword(ctx, etcdtest.User, password)
			return err == nil
		})
	}
	setPassword("another")
	eventually(t, "an error", func() bool { return put("refused") != nil })
	setPassword(etcdtest.UserPassword)
	heard("after the password came back")
	if got, err := root.Get(ctx, prefix+"leased"); err != nil || len(got.Kvs) != 1 {
		t.Errorf("%v, %v: the lease was not renewed", got, err)
	}
}

// follow watches as the product does: a watch that ends is begun again.
func follow(ctx context.Context, client *clientv3.Client, key string, events chan<- string) {
	for ctx.Err() == nil {
		watch, cancel := context.WithCancel(ctx)
		for response := range client.Watch(watch, key) {
			for _, event := range response.Events {
				events <- string(event.Kv.Value)
			}
		}
		cancel()
		_ = sleepFor(ctx, 50*time.Millisecond)
	}
}

func sleepFor(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return errors.New("done")
	case <-time.After(d):
		return nil
	}
}

// An etcd that was put back to a backup while a process used it ends the process, although it is the same cluster by its id.
func TestClusterGoesBack(t *testing.T) {
	t.Parallel()
	home := etcdtest.Serve(t, "http", nil)
	store, err := etcdstore.Connect(t.Context(), optionsFor(home.Endpoint), quiet)
	if err != nil {
		t.Fatal(err)
	}
	home.Stop()
	backup := t.TempDir()
	if err := os.CopyFS(backup, os.DirFS(home.Dir())); err != nil {
		t.Fatal(err)
	}
	home.Start(t)
	put := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := store.Client().Put(ctx, "key", "value")
		return err
	}
	for range 3 {
		eventually(t, "written", func() bool { return put() == nil })
	}
	home.Stop()
	if err := errors.Join(os.RemoveAll(home.Dir()), os.CopyFS(home.Dir(), os.DirFS(backup))); err != nil {
		t.Fatal(err)
	}
	home.Start(t)
	eventually(t, "the first answer of the backup is refused", func() bool {
		err := put()
		if err == nil {
			t.Fatal("taken for the same store")
		}
		return strings.Contains(err.Error(), "restored from a backup")
	})
	if err := <-store.Failed(); !strings.Contains(err.Error(), "restored from a backup") {
		t.Errorf("failed: %v", err)
	}
	if err := store.Close(); err == nil {
		t.Error("close hides the failure")
	}
}

// Members without a majority are told apart from members that are away, by a store in use and at a start.
func TestNoMajority(t *testing.T) {
	t.Parallel()
	cluster := etcdprocess.New(t, etcdprocess.Options{Members: 3})
	store := connect(t, optionsFor(cluster.Endpoints()...))
	for _, m := range cluster.Members[1:] {
		if err := m.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "away", func() bool { return strings.Contains(store.Away(), "a majority") })
	options := optionsFor(cluster.Endpoints()...)
	options.Patience = 3 * time.Second
	refusedWith(t, options, "a majority")
}
