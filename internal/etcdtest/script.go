package etcdtest

import (
	"context"
	"errors"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// ErrNoAnswer is the error of a transaction whose answer Script kept back.
var ErrNoAnswer = errors.New("it is not known whether it was stored")

// Script is a KV whose next transactions go as it was told, one after the other; others go to the store.
type Script struct {
	clientv3.KV

	mu      sync.Mutex
	acts    []act
	refusal error
}

type commit func() (*clientv3.TxnResponse, error)

type act func(commit) (*clientv3.TxnResponse, error)

// Pass lets a transaction go to the store.
func (s *Script) Pass() { s.add(func(c commit) (*clientv3.TxnResponse, error) { return c() }) }

// Hold keeps a transaction back and answers ErrNoAnswer. late sends it to the store; it must not be called before the transaction.
func (s *Script) Hold() (late func() (*clientv3.TxnResponse, error)) {
	held := make(chan commit, 1)
	s.add(func(c commit) (*clientv3.TxnResponse, error) {
		held <- c
		return nil, ErrNoAnswer
	})
	return func() (*clientv3.TxnResponse, error) { return (<-held)() }
}

// Lose sends a transaction to the store and answers ErrNoAnswer.
func (s *Script) Lose() {
	s.add(func(c commit) (*clientv3.TxnResponse, error) {
		if _, err := c(); err != nil {
			return nil, err
		}
		return nil, ErrNoAnswer
	})
}

// Fail answers a transaction with err, and it never comes to the store.
func (s *Script) Fail(err error) {
	s.add(func(commit) (*clientv3.TxnResponse, error) { return nil, err })
}

// Refuse answers every other transaction with err, and none comes to the store, until it is called with nil.
func (s *Script) Refuse(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusal = err
}

func (s *Script) add(a act) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.acts = append(s.acts, a)
}

func (s *Script) next() act {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refusal; len(s.acts) == 0 && err != nil {
		return func(commit) (*clientv3.TxnResponse, error) { return nil, err }
	}
	if len(s.acts) == 0 {
		return func(c commit) (*clientv3.TxnResponse, error) { return c() }
	}
	a := s.acts[0]
	s.acts = s.acts[1:]
	return a
}

// Txn begins a transaction, which goes on when its caller has given up.
func (s *Script) Txn(ctx context.Context) clientv3.Txn {
	return &scriptTxn{s.KV.Txn(context.WithoutCancel(ctx)), s}
}

type scriptTxn struct {
	clientv3.Txn
	script *Script
}

func (t *scriptTxn) If(cs ...clientv3.Cmp) clientv3.Txn  { t.Txn = t.Txn.If(cs...); return t }
func (t *scriptTxn) Then(os ...clientv3.Op) clientv3.Txn { t.Txn = t.Txn.Then(os...); return t }
func (t *scriptTxn) Else(os ...clientv3.Op) clientv3.Txn { t.Txn = t.Txn.Else(os...); return t }

func (t *scriptTxn) Commit() (*clientv3.TxnResponse, error) {
	return t.script.next()(t.Txn.Commit)
}
