package etcdprocess

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/pulsar-tc/pulsar-tc/internal/certtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testTime bounds one test.
const testTime = 2 * time.Minute

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), testTime)
	t.Cleanup(cancel)
	return ctx
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func client(t *testing.T, c *Cluster) *clientv3.Client {
	t.Helper()
	client, err := c.Client()
	must(t, err)
	return client
}

func value(ctx context.Context, t *testing.T, c *Cluster, key string) string {
	t.Helper()
	got, err := client(t, c).Get(ctx, key)
	must(t, err)
	if len(got.Kvs) == 0 {
		return ""
	}
	return string(got.Kvs[0].Value)
}

func put(ctx context.Context, t *testing.T, c *Cluster, key, value string) {
	t.Helper()
	_, err := client(t, c).Put(ctx, key, value)
	must(t, err)
}

func TestThreeMembersSurviveOne(t *testing.T) {
	ctx := testContext(t)
	c := New(t, Options{Members: 3})
	put(ctx, t, c, "key", "1")
	leader, err := c.Leader(ctx)
	must(t, err)
	must(t, leader.Kill())
	next, err := c.Leader(ctx)
	must(t, err)
	if next == leader {
		t.Fatal("the dead member leads")
	}
	put(ctx, t, c, "key", "2")
	must(t, leader.Start(ctx))

	must(t, next.Pause())
	if now, err := c.Leader(ctx); err != nil || now == next {
		t.Fatalf("%v leads, %v", now, err)
	}
	others, err := other(c, next).Client()
	must(t, err)
	_, err = others.Put(ctx, "key", "3")
	must(t, err)
	must(t, next.Resume())
	for _, m := range c.Members {
		must(t, c.MoveLeader(ctx, m))
		if now, err := c.Leader(ctx); err != nil || now != m {
			t.Fatalf("%v leads, want %s; %v", now, m.Name, err)
		}
	}
	if got := value(ctx, t, c, "key"); got != "3" {
		t.Errorf("value %q", got)
	}
}

// other returns a member that is not m.
func other(c *Cluster, m *Member) *Member {
	for _, o := range c.Members {
		if o != m {
			return o
		}
	}
	return nil
}

func TestCompactDefragment(t *testing.T) {
	ctx := testContext(t)
	c := New(t, Options{})
	put(ctx, t, c, "key", "1")
	put(ctx, t, c, "key", "2")
	revision, err := c.Compact(ctx)
	must(t, err)
	_, err = client(t, c).Get(ctx, "key", clientv3.WithRev(revision-1))
	if !errors.Is(err, rpctypes.ErrCompacted) {
		t.Errorf("%v, want the older revision to be compacted", err)
	}
	must(t, c.Members[0].Defragment(ctx))
}

func TestQuota(t *testing.T) {
	ctx := testContext(t)
	c := New(t, Options{Quota: 16 << 20})
	must(t, c.Fill(ctx))
	if _, err := client(t, c).Put(ctx, "key", "value"); !errors.Is(err, rpctypes.ErrNoSpace) {
		t.Fatalf("%v, want no space", err)
	}
	must(t, c.Drain(ctx))
	put(ctx, t, c, "key", "value")
	must(t, c.Alarm(ctx))
	if _, err := client(t, c).Put(ctx, "key", "value"); !errors.Is(err, rpctypes.ErrNoSpace) {
		t.Fatalf("%v, want no space", err)
	}
	must(t, c.Disarm(ctx))
	put(ctx, t, c, "key", "value")
}

func TestRestore(t *testing.T) {
	ctx := testContext(t)
	c := New(t, Options{Members: 3})
	put(ctx, t, c, "key", "saved")
	saved := filepath.Join(t.TempDir(), "snapshot")
	must(t, c.Save(ctx, saved))
	put(ctx, t, c, "key", "newer")
	must(t, c.Restore(ctx, saved))
	if got := value(ctx, t, c, "key"); got != "saved" {
		t.Errorf("value %q", got)
	}
	put(ctx, t, c, "key", "newest")
}

func TestAuthenticate(t *testing.T) {
	ctx := testContext(t)
	c := New(t, Options{TokenTTL: 1})
	must(t, c.Authenticate(ctx, "coordinator", "secret", "ours/"))
	put(ctx, t, c, "theirs/key", "value") // by root
	user, err := clientv3.New(clientv3.Config{Endpoints: c.Endpoints(), Username: "coordinator", Password: "secret", Logger: zap.NewNop()})
	must(t, err)
	defer func() { must(t, user.Close()) }()
	_, err = user.Put(ctx, "ours/key", "value")
	must(t, err)
	if _, err := user.Get(ctx, "theirs/key"); !errors.Is(err, rpctypes.ErrPermissionDenied) {
		t.Errorf("%v, want the user to be refused", err)
	}
}

func TestTLS(t *testing.T) {
	ctx := testContext(t)
	authority := certtest.NewAuthority(t)
	until := time.Now().Add(time.Hour)
	server := certtest.Write(t, authority.Sign(t, "etcd", until, "localhost"), authority)
	files := certtest.Write(t, authority.Sign(t, "client", until), authority)
	c := New(t, Options{TLS: &TLS{Server: server, Client: files}})
	put(ctx, t, c, "key", "value")
}
