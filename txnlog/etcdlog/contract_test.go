package etcdlog_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"

	"github.com/pulsar-tc/pulsar-tc/internal/etcdtest"
	"github.com/pulsar-tc/pulsar-tc/leader/etcdleader"
	"github.com/pulsar-tc/pulsar-tc/txn"
	"github.com/pulsar-tc/pulsar-tc/txnlog/etcdlog"
	"github.com/pulsar-tc/pulsar-tc/txnlog/logtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, etcdtest.IgnoreCluster()...) }

func TestContract(t *testing.T) {
	client := etcdtest.Open(t, nil).Client()
	logtest.Run(t, func(t testing.TB, limits logtest.Limits) logtest.Store {
		return newStore(t, client, limits)
	})
}

// store is etcd behind a client that can fail.
type store struct {
	client  *clientv3.Client
	faulty  *faultyKV
	leader  *etcdleader.Leader
	term    *etcdleader.Term
	options etcdlog.Options
}

func newStore(t testing.TB, client *clientv3.Client, limits logtest.Limits) *store {
	t.Helper()
	for _, prefix := range []string{etcdtest.Space.TC(logtest.TC), logtest.Participants} {
		if _, err := client.Delete(t.Context(), prefix, clientv3.WithPrefix()); err != nil {
			t.Fatal(err)
		}
	}
	leader, err := etcdleader.New(client, etcdtest.Space, etcdleader.Options{Exclusive: true}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(leader.Close)
	s := &store{client: client, faulty: &faultyKV{KV: client}, leader: leader, options: etcdlog.Options{MaxOps: 8192}}
	if limits == logtest.Tight {
		s.options.MaxOps = 16
	}
	return s
}

func (s *store) NewTerm(t testing.TB) logtest.Log {
	t.Helper()
	term, err := s.leader.Win(t.Context(), logtest.TC)
	if err != nil {
		t.Fatal(err)
	}
	s.term = term
	return etcdlog.New(s.faulty, etcdtest.Space, logtest.TC, term.Number(), s.options)
}

func (s *store) EndTerm(t testing.TB) {
	t.Helper()
	if err := s.term.Resign(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func (s *store) Intercept(f func() logtest.Fate) { s.faulty.intercept(f) }

func (s *store) Value(t testing.TB, index uint64) []byte {
	t.Helper()
	response, err := s.client.Get(t.Context(), etcdtest.Space.Log(logtest.TC, index))
	if err != nil {
		t.Fatal(err)
	}
	if len(response.Kvs) == 0 {
		return nil
	}
	return response.Kvs[0].Value
}

func (s *store) SetValue(t testing.TB, index uint64, value []byte) {
	t.Helper()
	key := etcdtest.Space.Log(logtest.TC, index)
	var err error
	if value == nil {
		_, err = s.client.Delete(t.Context(), key)
	} else {
		_, err = s.client.Put(t.Context(), key, string(value))
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (s *store) OpenKeys(t testing.TB, least uint64) []string {
	t.Helper()
	prefix := etcdtest.Space.OpenPrefix(txn.ID{Most: logtest.TC, Least: least})
	response, err := s.client.Get(t.Context(), prefix, clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	var hashes []string
	for _, kv := range response.Kvs {
		hashes = append(hashes, strings.TrimPrefix(string(kv.Key), prefix))
	}
	return hashes
}

func (s *store) Put(t testing.TB, key string) txn.Fence {
	t.Helper()
	response, err := s.client.Put(t.Context(), key, "")
	if err != nil {
		t.Fatal(err)
	}
	return txn.Fence{Key: key, Revision: response.Header.Revision}
}

func (s *store) Exists(t testing.TB, key string) bool {
	t.Helper()
	response, err := s.client.Get(t.Context(), key, clientv3.WithCountOnly())
	if err != nil {
		t.Fatal(err)
	}
	return response.Count > 0
}

// faultyKV decides the fate of transactions that write.
type faultyKV struct {
	clientv3.KV
	mu   sync.Mutex
	fate func() logtest.Fate // guarded by mu
}

func (kv *faultyKV) intercept(f func() logtest.Fate) {
	kv.mu.Lock()
	defer kv.mu.Unlock()
	kv.fate = f
}

func (kv *faultyKV) Txn(ctx context.Context) clientv3.Txn {
	return &faultyTxn{Txn: kv.KV.Txn(ctx), kv: kv}
}

type faultyTxn struct {
	clientv3.Txn
	kv     *faultyKV
	writes bool
}

func (t *faultyTxn) If(cmps ...clientv3.Cmp) clientv3.Txn {
	t.Txn = t.Txn.If(cmps...)
	return t
}

func (t *faultyTxn) Then(ops ...clientv3.Op) clientv3.Txn {
	for _, op := range ops {
		t.writes = t.writes || !op.IsGet()
	}
	t.Txn = t.Txn.Then(ops...)
	return t
}

func (t *faultyTxn) Else(ops ...clientv3.Op) clientv3.Txn {
	t.Txn = t.Txn.Else(ops...)
	return t
}

var errLost = errors.New("connection lost")

func (t *faultyTxn) Commit() (*clientv3.TxnResponse, error) {
	t.kv.mu.Lock()
	fate := t.kv.fate
	t.kv.mu.Unlock()
	if fate == nil || !t.writes {
		return t.Txn.Commit()
	}
	switch fate() {
	case logtest.LoseWrite:
		return nil, errLost
	case logtest.LoseAnswer:
		if _, err := t.Txn.Commit(); err != nil {
			return nil, err
		}
		return nil, errLost
	}
	return t.Txn.Commit()
}
