package main

import (
	"context"
	"slices"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// transaction is one etcd transaction that a server committed.
type transaction struct {
	compares  []clientv3.Cmp
	then      []clientv3.Op
	otherwise []clientv3.Op
	succeeded bool
}

// bytes is the size of what t writes: keys and values.
func (t *transaction) bytes() int {
	size := 0
	for _, op := range t.then {
		if !op.IsGet() {
			size += len(op.KeyBytes()) + len(op.RangeBytes()) + len(op.ValueBytes())
		}
	}
	return size
}

func (t *transaction) writes() bool {
	return slices.ContainsFunc(t.then, func(op clientv3.Op) bool { return !op.IsGet() })
}

// recording stands between a server and its store. While it is on it keeps every transaction that the store has committed,
// in the order of their answers.
type recording struct {
	clientv3.KV

	mu           sync.Mutex // guards the following
	on           bool
	transactions []transaction
}

// wrap is for server.Options.WrapKV.
func (r *recording) wrap(kv clientv3.KV) clientv3.KV {
	r.KV = kv
	return r
}

func (r *recording) start() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.on = true
}

// stop returns what was committed since start.
func (r *recording) stop() []transaction {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.on = false
	recorded := r.transactions
	r.transactions = nil
	return recorded
}

func (r *recording) Txn(ctx context.Context) clientv3.Txn {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.on {
		return r.KV.Txn(ctx)
	}
	return &recordedTxn{Txn: r.KV.Txn(ctx), recording: r}
}

// recordedTxn copies the lists, which the server may use again; keys and values are new with each operation.
type recordedTxn struct {
	clientv3.Txn
	recording *recording
	transaction
}

func (t *recordedTxn) If(compares ...clientv3.Cmp) clientv3.Txn {
	t.compares = slices.Clone(compares)
	t.Txn = t.Txn.If(compares...)
	return t
}

func (t *recordedTxn) Then(ops ...clientv3.Op) clientv3.Txn {
	t.then = slices.Clone(ops)
	t.Txn = t.Txn.Then(ops...)
	return t
}

func (t *recordedTxn) Else(ops ...clientv3.Op) clientv3.Txn {
	t.otherwise = slices.Clone(ops)
	t.Txn = t.Txn.Else(ops...)
	return t
}

func (t *recordedTxn) Commit() (*clientv3.TxnResponse, error) {
	response, err := t.Txn.Commit()
	if err != nil {
		return nil, err
	}
	t.succeeded = response.Succeeded
	t.recording.mu.Lock()
	defer t.recording.mu.Unlock()
	if t.recording.on {
		t.recording.transactions = append(t.recording.transactions, t.transaction)
	}
	return response, nil
}
