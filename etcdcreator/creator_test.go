package etcdcreator_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"

	"github.com/pulsar-tc/pulsar-tc/etcdcreator"
	"github.com/pulsar-tc/pulsar-tc/internal/etcdtest"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a Creator of a process and a store that goes by a script.
type world struct {
	t       *testing.T
	client  *clientv3.Client
	script  *etcdtest.Script
	creator *etcdcreator.Creator
}

func newWorld(t *testing.T, instance *instance) *world {
	client := etcdtest.Open(t, nil).Client()
	w := &world{t: t, client: client, script: &etcdtest.Script{KV: client}}
	options := etcdcreator.Options{KV: w.script, Keys: etcdtest.Space, Log: zerolog.New(zerolog.NewTestWriter(t))}
	if instance != nil {
		instance.begin(t, client)
		options.Instance = func() etcdcreator.Instance { return instance }
	}
	w.creator = etcdcreator.New(options)
	t.Cleanup(w.creator.Close)
	return w
}

// instance has a lease of the store.
type instance struct{ lease clientv3.LeaseID }

func (i *instance) ID() string                                   { return "a" }
func (i *instance) Session() (clientv3.LeaseID, <-chan struct{}) { return i.lease, nil }

func (i *instance) begin(t *testing.T, client *clientv3.Client) {
	t.Helper()
	granted, err := client.Grant(t.Context(), 600)
	if err != nil {
		t.Fatal(err)
	}
	i.lease = granted.ID
}

const key = "/made"

func (w *world) make() (*clientv3.TxnResponse, error) {
	return w.creator.Txn(context.Background(), []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(key), "=", 0)},
		[]clientv3.Op{clientv3.OpPut(key, "")}, []clientv3.Op{clientv3.OpGet(key)})
}

func (w *world) mustMake() {
	w.t.Helper()
	if made, err := w.make(); err != nil || !made.Succeeded {
		w.t.Fatalf("made: %v, %v", made, err)
	}
}

func (w *world) unmake() {
	w.t.Helper()
	if _, err := w.client.Delete(w.t.Context(), key); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) comesTooLate(late func() (*clientv3.TxnResponse, error)) {
	w.t.Helper()
	if applied, err := late(); err != nil || applied.Succeeded {
		w.t.Errorf("the late transaction: %v, %v", applied, err)
	}
}

func each(t *testing.T, test func(t *testing.T, w *world)) {
	t.Run("alone", func(t *testing.T) { test(t, newWorld(t, nil)) })
	t.Run("several instances", func(t *testing.T) { test(t, newWorld(t, &instance{})) })
}

// What was answered with an error does not come any more, whatever was made and deleted since.
func TestLateTransaction(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.mustMake()
		w.unmake()
		late := w.script.Hold()
		if _, err := w.make(); !errors.Is(err, etcdtest.ErrNoAnswer) {
			t.Fatalf("made: %v", err)
		}
		w.mustMake()
		w.unmake()
		w.comesTooLate(late)
	})
}

// The answer tells what there is, and nothing of the creator's own key.
func TestAnswer(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.mustMake()
		found, err := w.make()
		if err != nil || found.Succeeded || len(found.Responses) != 1 || string(found.Responses[0].GetResponseRange().Kvs[0].Key) != key {
			t.Errorf("made again: %v, %v", found, err)
		}
	})
}

// A transaction that could not be stopped at once is stopped as soon as the store answers, without anybody asking; who asks before is told
// that nothing is settled.
func TestTransactionStoppedLater(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.mustMake()
		w.unmake()
		late, down := w.script.Hold(), errors.New("etcdserver: no leader")
		w.script.Refuse(down)
		if _, err := w.make(); !errors.Is(err, etcdtest.ErrNoAnswer) || !errors.Is(err, down) {
			t.Fatalf("made: %v", err)
		}
		if err := w.creator.Settled(t.Context()); !errors.Is(err, down) {
			t.Errorf("settled: %v", err)
		}
		before, err := w.client.Get(t.Context(), etcdtest.Space.Topics(), clientv3.WithPrefix())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		written := w.client.Watch(ctx, etcdtest.Space.Topics(), clientv3.WithPrefix(), clientv3.WithRev(before.Header.Revision+1))
		w.script.Refuse(nil)
		if _, wrote := <-written; !wrote {
			t.Error("nobody has tried again")
		}
		w.comesTooLate(late)
	})
}

// Nobody repeats what was stored, or refused, by a full store, and it keeps nobody from deleting.
func TestFullStore(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.mustMake()
		w.script.Fail(rpctypes.ErrNoSpace)
		if _, err := w.make(); !errors.Is(err, rpctypes.ErrNoSpace) {
			t.Fatalf("made: %v", err)
		}
		w.unmake()
		w.mustMake()
		w.unmake()
		late := w.script.Hold()
		w.script.Refuse(rpctypes.ErrNoSpace)
		if _, err := w.make(); !errors.Is(err, etcdtest.ErrNoAnswer) {
			t.Fatalf("made: %v", err)
		}
		if err := w.creator.Settled(t.Context()); err != nil {
			t.Errorf("settled: %v", err)
		}
		w.script.Refuse(nil)
		w.mustMake()
		w.unmake()
		w.comesTooLate(late)
	})
}

// Without a lease nothing is made, and clients are to try again; the next session's makes again.
func TestWithoutALease(t *testing.T) {
	i := &instance{}
	w := newWorld(t, i)
	if _, err := w.client.Revoke(t.Context(), i.lease); err != nil {
		t.Fatal(err)
	}
	if _, err := w.make(); !errors.Is(err, txn.ErrNotReady) {
		t.Errorf("made: %v", err)
	}
	i.begin(t, w.client)
	w.mustMake()
	w.unmake()
	if _, err := w.client.Revoke(t.Context(), i.lease); err != nil {
		t.Fatal(err)
	}
	i.begin(t, w.client)
	w.mustMake()
	found, err := w.client.Get(t.Context(), etcdtest.Space.Creator("a"))
	if err != nil || len(found.Kvs) != 1 || clientv3.LeaseID(found.Kvs[0].Lease) != i.lease {
		t.Errorf("the key of the creator: %v, %v", found, err)
	}
}
