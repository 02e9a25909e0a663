package server

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/internal/etcdtest"
)

// sickLog cannot read logs while sick is set.
type sickLog struct {
	clientv3.KV
	sick *atomic.Bool
}

func (k sickLog) Txn(ctx context.Context) clientv3.Txn {
	return &sickTxn{Txn: k.KV.Txn(ctx), sick: k.sick}
}

type sickTxn struct {
	clientv3.Txn
	sick  *atomic.Bool
	reads bool
}

func (x *sickTxn) If(c ...clientv3.Cmp) clientv3.Txn  { x.Txn = x.Txn.If(c...); return x }
func (x *sickTxn) Else(o ...clientv3.Op) clientv3.Txn { x.Txn = x.Txn.Else(o...); return x }
func (x *sickTxn) Then(ops ...clientv3.Op) clientv3.Txn {
	for _, op := range ops {
		x.reads = x.reads || op.IsGet() && strings.Contains(string(op.KeyBytes()), "/log/")
	}
	x.Txn = x.Txn.Then(ops...)
	return x
}

func (x *sickTxn) Commit() (*clientv3.TxnResponse, error) {
	if x.reads && x.sick.Load() {
		return nil, errors.New("etcdserver: request timed out")
	}
	return x.Txn.Commit()
}

// An instance that gave a coordinator up, which another one leads since, is well again when what was wrong with it is over, and
// asks the other one.
func TestWellAfterGivingUp(t *testing.T) {
	etcd := etcdtest.Serve(t, "http", nil)
	set := append(shared(etcd, 2), "coordinatorGiveUpSeconds=1", "coordinatorLeaseSeconds=2") // it competes again only behind the lease
	var sick atomic.Bool
	options := load(t, set...)
	options.WrapKV = func(kv clientv3.KV) clientv3.KV { return sickLog{kv, &sick} }
	ill := start(t, options)
	other := start(t, load(t, set...))
	evenly(t, 2, ill, other)
	tc := led(ill)[0]
	if h := ill.health(); !h.Healthy {
		t.Fatalf("before: %+v", h)
	}
	sick.Store(true)
	store := etcd.Client(t)
	if _, err := store.Revoke(t.Context(), leaderLease(t, store, ill, tc)); err != nil {
		t.Fatal(err)
	}
	until(t, "the other leads both", func() bool { return len(led(other)) == 2 })
	sick.Store(false)
	until(t, "it is well", func() bool { return ill.health().Healthy })
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := ill.ledHere(ctx, tc); err == nil {
		t.Error("an administrator who asks about the coordinator is kept at the instance that does not lead it")
	}
	if _, err := ill.group.List(ctx, nil, 0); err != nil {
		t.Errorf("list: %v", err)
	}
	if err := other.handOver(t.Context()); err != nil {
		t.Error(err)
	}
	if left := led(other); len(left) > 0 {
		t.Errorf("coordinators %v are not handed over", left)
	}
	until(t, "the first leads both", func() bool { return len(led(ill)) == 2 })
}
