package sim

import (
	"context"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// store is what a process writes to and reads from.
type store = clientv3.KV

// transaction is one before it is sent.
type transaction struct {
	ctx             context.Context
	kv              store
	compares        []clientv3.Cmp
	then, otherwise []clientv3.Op
}

func (t *transaction) send() (*clientv3.TxnResponse, error) {
	return t.kv.Txn(t.ctx).If(t.compares...).Then(t.then...).Else(t.otherwise...).Commit()
}

// isFenced reports whether the transaction holds only in a term, and is not about the leader key itself.
func (t *transaction) isFenced() bool {
	if len(t.compares) == 0 || !strings.HasSuffix(string(t.compares[0].KeyBytes()), "/leader") || len(t.then) == 0 {
		return false
	}
	first := t.then[0]
	return first.IsGet() || string(first.KeyBytes()) != string(t.compares[0].KeyBytes())
}

// appends reports whether the transaction writes to a log.
func (t *transaction) appends() bool { return t.isFenced() && len(t.compares) == 2 }

// loads reports whether the transaction reads a log.
func (t *transaction) loads() bool {
	return t.isFenced() && t.then[0].IsGet() && isLog(string(t.then[0].KeyBytes()))
}

// proves reports whether the transaction only proves the term.
func (t *transaction) proves() bool {
	return t.isFenced() && t.then[0].IsGet() && string(t.then[0].KeyBytes()) == string(t.compares[0].KeyBytes())
}

// rewrite sends transactions by way of commit.
func rewrite(commit func(*transaction) (*clientv3.TxnResponse, error)) func(*process, store) store {
	return func(_ *process, kv store) store { return rewriting{kv, commit} }
}

type rewriting struct {
	store
	commit func(*transaction) (*clientv3.TxnResponse, error)
}

func (r rewriting) Txn(ctx context.Context) clientv3.Txn {
	return &rewritten{transaction{ctx: ctx, kv: r.store}, r.commit}
}

type rewritten struct {
	transaction
	commit func(*transaction) (*clientv3.TxnResponse, error)
}

func (t *rewritten) If(compares ...clientv3.Cmp) clientv3.Txn { t.compares = compares; return t }
func (t *rewritten) Then(ops ...clientv3.Op) clientv3.Txn     { t.then = ops; return t }
func (t *rewritten) Else(ops ...clientv3.Op) clientv3.Txn     { t.otherwise = ops; return t }
func (t *rewritten) Commit() (*clientv3.TxnResponse, error)   { return t.commit(&t.transaction) }

func withoutFence(t *transaction) (*clientv3.TxnResponse, error) {
	if t.appends() {
		t.compares = t.compares[1:]
	}
	return t.send()
}

func withoutCompares(t *transaction) (*clientv3.TxnResponse, error) {
	if t.appends() {
		t.compares = nil
	}
	return t.send()
}

func withEmptyProof(t *transaction) (*clientv3.TxnResponse, error) {
	if t.proves() {
		t.then, t.otherwise = nil, nil
	}
	return t.send()
}

// inHalves writes the record first: as a process that was refused a batch with a key in it twice may try again.
func inHalves(t *transaction) (*clientv3.TxnResponse, error) {
	if !t.appends() || len(t.then) == 1 {
		return t.send()
	}
	first, second := *t, *t
	first.then, second.then = t.then[len(t.then)/2:], t.then[:len(t.then)/2]
	second.compares = t.compares[:1]
	response, err := first.send()
	if err != nil || !response.Succeeded {
		return response, err
	}
	return second.send()
}

// withSerializableLoad reads the first page of a log, and the bound of ids, without a condition and from any member.
func withSerializableLoad(t *transaction) (*clientv3.TxnResponse, error) {
	if t.loads() {
		t.compares, t.otherwise = nil, nil
		for i := range t.then {
			clientv3.WithSerializable()(&t.then[i])
		}
	}
	return t.send()
}

// serializableLoad reads the other pages alike.
type serializableLoad struct{ store }

func (s serializableLoad) Get(ctx context.Context, key string, options ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	if isLog(key) {
		options = append(options, clientv3.WithSerializable())
	}
	return s.store.Get(ctx, key, options...)
}

// unpinned reads pages of a log at the newest revision.
type unpinned struct{ store }

func (u unpinned) Get(ctx context.Context, key string, options ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	if isLog(key) {
		options = append(options, clientv3.WithRev(0))
	}
	return u.store.Get(ctx, key, options...)
}

// retriedBlindly repeats an append until there is an answer. If then the entry exists, it takes it for its own.
func retriedBlindly(t *transaction) (*clientv3.TxnResponse, error) {
	response, err := t.send()
	if !t.appends() {
		return response, err
	}
	retried := false
	for tries := 0; err != nil && tries < 5 && t.ctx.Err() == nil; tries++ {
		retried = true
		response, err = t.send()
	}
	if retried && err == nil {
		response.Succeeded = true
	}
	return response, err
}
