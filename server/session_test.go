package server

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/internal/etcdtest"
)

// deafOnce loses the first record of the instance that is written under another lease than old.
type deafOnce struct {
	clientv3.KV
	old  *atomic.Int64 // 0: it loses nothing
	self *atomic.Pointer[Server]
}

func (k deafOnce) Txn(ctx context.Context) clientv3.Txn {
	return &deafTxn{Txn: k.KV.Txn(ctx), deafOnce: k}
}

type deafTxn struct {
	clientv3.Txn
	deafOnce
	record bool
}

func (x *deafTxn) Then(ops ...clientv3.Op) clientv3.Txn {
	for _, op := range ops {
		x.record = x.record || op.IsPut() && strings.Contains(string(op.KeyBytes()), "/instances/")
	}
	x.Txn = x.Txn.Then(ops...)
	return x.asTxn()
}

func (x *deafTxn) asTxn() clientv3.Txn                { return x }
func (x *deafTxn) If(c ...clientv3.Cmp) clientv3.Txn  { x.Txn = x.Txn.If(c...); return x }
func (x *deafTxn) Else(o ...clientv3.Op) clientv3.Txn { x.Txn = x.Txn.Else(o...); return x }
func (x *deafTxn) Commit() (*clientv3.TxnResponse, error) {
	if old := x.old.Load(); x.record && old != 0 && int64(x.self.Load().cluster.Session().Lease) != old {
		x.old.Store(0)
		time.Sleep(500 * time.Millisecond)
		return nil, errors.New("etcdserver: leader changed")
	}
	return x.Txn.Commit()
}

// Topics close with their session also when a session before could not be announced.
func TestTopicsCloseWithASessionBehindOneThatWasNotAnnounced(t *testing.T) {
	etcd := etcdtest.Serve(t, "http", nil)
	store := etcd.Client(t)
	var old atomic.Int64
	var self atomic.Pointer[Server]
	options := load(t, shared(etcd, 1)...)
	options.WrapKV = func(kv clientv3.KV) clientv3.KV { return deafOnce{kv, &old, &self} }
	s := start(t, options)
	self.Store(s)
	evenly(t, 1, s)
	lose := func() {
		lost := s.cluster.Session()
		if _, err := store.Revoke(t.Context(), lost.Lease); err != nil {
			t.Fatal(err)
		}
		<-lost.Lost
	}
	first := s.cluster.Session().Lease
	old.Store(int64(first))
	lose()
	until(t, "the record is lost once", func() bool { return old.Load() == 0 })
	until(t, "the instance is known again", func() bool {
		found, err := store.Get(t.Context(), s.options.space().Instance(s.cluster.Self().ID))
		return err == nil && len(found.Kvs) == 1 && found.Kvs[0].Lease == int64(s.cluster.Session().Lease)
	})
	const topic = "persistent://public/default/waiting"
	consumer, err := official(t, s).Subscribe(pulsar.ConsumerOptions{Topic: topic, SubscriptionName: "s"})
	if err != nil {
		t.Fatal(err)
	}
	defer consumer.Close()
	if !s.topics.Loaded(parsed(t, topic)) {
		t.Fatal("the topic is not loaded")
	}
	lose()
	// The client comes again at once, and the topic is loaded and owned again.
	until(t, "the topic closes", func() bool { return ownerIn(t, s, topic) == s.cluster.Self().ID })
}
