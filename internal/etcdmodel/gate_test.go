package etcdmodel_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/internal/etcdmodel"
)

func gated(t *testing.T, options etcdmodel.Options, gate etcdmodel.Gate) (*etcdmodel.Model, *etcdmodel.Client) {
	model := etcdmodel.New(options)
	c := model.Client("one", gate)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		model.Close()
	})
	return model, c
}

func value(model *etcdmodel.Model, key string) string {
	for _, kv := range model.Contents(key) {
		return kv.Value
	}
	return "none"
}

// Each fate of a request: what the caller hears and what becomes of the store are two things.
func TestFates(t *testing.T) {
	lost := errors.New("connection lost")
	for name, c := range map[string]struct {
		gate    etcdmodel.Gate
		want    error
		applied bool
	}{
		"none":      {nil, nil, true},
		"pass":      {func(context.Context, *etcdmodel.Request) error { return nil }, nil, true},
		"refused":   {func(context.Context, *etcdmodel.Request) error { return rpctypes.ErrGRPCNoSpace }, rpctypes.ErrNoSpace, false},
		"lost":      {func(_ context.Context, r *etcdmodel.Request) error { return lost }, lost, false},
		"unheard":   {func(_ context.Context, r *etcdmodel.Request) error { r.Apply(); return rpctypes.ErrTimeout }, rpctypes.ErrTimeout, true},
		"timed out": {func(ctx context.Context, r *etcdmodel.Request) error { <-ctx.Done(); return ctx.Err() }, context.DeadlineExceeded, false},
		"too late":  {func(ctx context.Context, r *etcdmodel.Request) error { <-ctx.Done(); r.Apply(); return ctx.Err() }, context.DeadlineExceeded, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				model, client := gated(t, etcdmodel.Options{}, c.gate)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if _, err := client.Put(ctx, "a", "x"); !errors.Is(err, c.want) {
					t.Errorf("%v, want %v", err, c.want)
				}
				if applied := value(model, "a") == "x"; applied != c.applied {
					t.Errorf("applied %v", applied)
				}
			})
		})
	}
}

// Requests are applied in the order that the gate chooses, and once each.
func TestOrderIsTheGates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := make(chan *etcdmodel.Request, 2)
		model, client := gated(t, etcdmodel.Options{}, func(ctx context.Context, r *etcdmodel.Request) error {
			held <- r
			<-ctx.Done()
			return ctx.Err()
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for _, v := range []string{"first", "second"} {
			if _, err := client.Put(ctx, "a", v); !errors.Is(err, context.DeadlineExceeded) && v == "first" {
				t.Fatal(err)
			}
			ctx, cancel = context.WithTimeout(t.Context(), time.Second)
			defer cancel()
		}
		first, second := <-held, <-held
		for _, r := range []*etcdmodel.Request{second, first, second} {
			if err := r.Apply(); err != nil {
				t.Fatal(err)
			}
		}
		if got := value(model, "a"); got != "first" || model.Revision() != 3 {
			t.Errorf("%s at revision %d", got, model.Revision())
		}
	})
}

// A member that lags behind answers what rests on nothing: serializable reads and transactions that read nothing.
func TestStaleMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client := gated(t, etcdmodel.Options{}, func(_ context.Context, r *etcdmodel.Request) error {
			if r.Stale() {
				return r.ApplyStale(2)
			}
			return nil
		})
		for _, v := range []string{"old", "new"} {
			if _, err := client.Put(t.Context(), "a", v); err != nil {
				t.Fatal(err)
			}
		}
		read := func(opts ...clientv3.OpOption) string {
			got, err := client.Get(t.Context(), "a", opts...)
			if err != nil {
				t.Fatal(err)
			}
			return string(got.Kvs[0].Value)
		}
		if got := read(clientv3.WithSerializable()) + read(); got != "oldnew" {
			t.Error(got)
		}
		old := clientv3.Compare(clientv3.ModRevision("a"), "=", 2)
		for _, c := range []struct {
			then []clientv3.Op
			want bool
		}{{nil, true}, {[]clientv3.Op{clientv3.OpGet("a")}, false}, {[]clientv3.Op{clientv3.OpPut("b", "")}, false}} {
			got, err := client.Txn(t.Context()).If(old).Then(c.then...).Else(c.then...).Commit()
			if err != nil || got.Succeeded != c.want {
				t.Errorf("%d operations: %v, %v", len(c.then), got.Succeeded, err)
			}
		}
	})
}

func TestNoSpace(t *testing.T) {
	model, client := gated(t, etcdmodel.Options{}, nil)
	model.SetNoSpace(true)
	put := clientv3.OpPut("a", "x")
	for _, op := range []clientv3.Op{put, clientv3.OpTxn(nil, nil, []clientv3.Op{put})} {
		if _, err := client.Do(t.Context(), op); !errors.Is(err, rpctypes.ErrNoSpace) {
			t.Error(err)
		}
	}
	if _, err := client.Grant(t.Context(), 10); !errors.Is(err, rpctypes.ErrNoSpace) {
		t.Error(err)
	}
	for _, op := range []clientv3.Op{clientv3.OpDelete("a"), clientv3.OpGet("a"), clientv3.OpTxn(nil, []clientv3.Op{clientv3.OpDelete("a")}, nil)} {
		if _, err := client.Do(t.Context(), op); err != nil {
			t.Error(err)
		}
	}
	model.SetNoSpace(false)
	if _, err := client.Do(t.Context(), put); err != nil {
		t.Error(err)
	}
}

// A client learns that its lease is gone when it has not been answered for the whole time of the lease; the key may be gone
// before.
func TestLeaseOfClientThatIsCutOff(t *testing.T) {
	for _, keep := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var cut atomic.Bool
			model, client := gated(t, etcdmodel.Options{KeepExpired: keep}, func(ctx context.Context, r *etcdmodel.Request) error {
				if cut.Load() {
					<-ctx.Done()
					return ctx.Err()
				}
				return nil
			})
			lease, err := client.Grant(t.Context(), 6)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := client.Put(t.Context(), "a", "x", clientv3.WithLease(lease.ID)); err != nil {
				t.Fatal(err)
			}
			answers, err := client.KeepAlive(t.Context(), lease.ID)
			if err != nil {
				t.Fatal(err)
			}
			for range 10 {
				<-answers
			}
			cut.Store(true)
			since := time.Now()
			for range answers {
			}
			if got := time.Since(since); got != 6*time.Second {
				t.Errorf("noticed after %v", got)
			}
			synctest.Wait()
			if got := value(model, "a"); (got == "x") != keep {
				t.Errorf("%s with leases kept %v", got, keep)
			}
			for _, id := range model.Expired() {
				model.Expire(id)
			}
			if got := value(model, "a"); got != "none" {
				t.Errorf("%s after the lease's end", got)
			}
		})
	}
}

// A watch is a request, too: what happened while it is held is told at once, or is gone.
func TestHeldWatch(t *testing.T) {
	for _, compacted := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			release := make(chan struct{})
			model, client := gated(t, etcdmodel.Options{}, func(ctx context.Context, r *etcdmodel.Request) error {
				if r.Kind != etcdmodel.Events {
					return nil
				}
				select {
				case <-release:
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			answers := client.Watch(ctx, "a")
			for _, v := range []string{"x", "y", "z"} {
				if _, err := client.Put(ctx, "a", v); err != nil {
					t.Fatal(err)
				}
			}
			if compacted {
				if err := model.Compact(4); err != nil {
					t.Fatal(err)
				}
			}
			close(release)
			answer := <-answers
			if !compacted && len(answer.Events) != 3 || compacted && !errors.Is(answer.Err(), rpctypes.ErrCompacted) {
				t.Errorf("%d events, %v", len(answer.Events), answer.Err())
			}
			cancel()
			if _, more := <-answers; more {
				t.Error("a watch outlives its context")
			}
		})
	}
}

func TestRefusedWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refuse := false
		_, client := gated(t, etcdmodel.Options{}, func(_ context.Context, r *etcdmodel.Request) error {
			if refuse {
				return rpctypes.ErrGRPCNoLeader
			}
			return nil
		})
		standing := client.Watch(t.Context(), "a")
		if _, err := client.Put(t.Context(), "a", ""); err != nil {
			t.Fatal(err)
		}
		<-standing
		refuse = true
		for range client.Watch(t.Context(), "a") {
			break
		}
		first := <-client.Watch(t.Context(), "a")
		if !errors.Is(first.Err(), rpctypes.ErrNoLeader) {
			t.Error(first.Err())
		}
	})
}

// What would change nothing is told apart before it is applied.
func TestChanges(t *testing.T) {
	var changes bool
	model, client := gated(t, etcdmodel.Options{}, func(_ context.Context, r *etcdmodel.Request) error {
		changes = r.Changes()
		return nil
	})
	missing := clientv3.Compare(clientv3.CreateRevision("a"), "=", 0)
	put := clientv3.OpPut("a", "")
	for i, op := range []clientv3.Op{
		clientv3.OpGet("a"), clientv3.OpDelete("a"), put, clientv3.OpTxn([]clientv3.Cmp{missing}, []clientv3.Op{put}, nil),
		clientv3.OpTxn([]clientv3.Cmp{missing}, nil, []clientv3.Op{clientv3.OpTxn(nil, []clientv3.Op{put}, nil)}),
		clientv3.OpTxn(nil, []clientv3.Op{clientv3.OpDelete("b"), clientv3.OpGet("a")}, nil),
		clientv3.OpTxn(nil, []clientv3.Op{clientv3.OpDelete("a")}, nil), clientv3.OpDelete("a"), clientv3.OpTxn(nil, nil, nil),
	} {
		before := model.Revision()
		if _, err := client.Do(t.Context(), op); err != nil {
			t.Fatal(err)
		}
		if changed := model.Revision() != before; changed != changes {
			t.Errorf("operation %d: changed %v, foretold %v", i, changed, changes)
		}
	}
}

func TestDescriptions(t *testing.T) {
	var seen []string
	_, client := gated(t, etcdmodel.Options{}, func(_ context.Context, r *etcdmodel.Request) error {
		seen = append(seen, r.String())
		if !slices.IsSorted(r.Keys()) || r.Writes() == strings.Contains(r.String(), "one get") {
			t.Errorf("%s: keys %q, writes %v", r, r.Keys(), r.Writes())
		}
		return nil
	})
	ops := []clientv3.Op{
		clientv3.OpGet("a", clientv3.WithPrefix()), clientv3.OpPut("b", "secret"), clientv3.OpDelete("c", clientv3.WithRange("e")),
		clientv3.OpTxn([]clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision("a"), "=", 5)},
			[]clientv3.Op{clientv3.OpPut("b", "secret")}, []clientv3.Op{clientv3.OpTxn(nil, []clientv3.Op{clientv3.OpDelete("c")}, nil)}),
	}
	for _, op := range ops {
		if _, err := client.Do(t.Context(), op); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		"one get a*", "one put b=6B", "one delete [c, e)",
		"one txn if create(a)=5 then put b=6B else (then delete c)",
	}
	if !slices.Equal(seen, want) {
		t.Errorf("%q", seen)
	}
}
