package sim

import (
	"context"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Mutants are the planted bugs. Each must be caught.
func Mutants() []Mutant {
	return []Mutant{
		{
			Name: "no fence compare", Bug: "a coordinator's writes do not compare the leader key with the term",
			KV: comparing(func(compares []clientv3.Cmp) []clientv3.Cmp { return compares[1:] }),
		},
		{
			Name: "blind append", Bug: "a coordinator's writes compare neither the leader key nor that the entry does not exist",
			KV: comparing(func([]clientv3.Cmp) []clientv3.Cmp { return nil }),
		},
	}
}

// comparing changes what the appends of coordinators compare: the leader key, and the key of the entry.
func comparing(change func([]clientv3.Cmp) []clientv3.Cmp) func(clientv3.KV) clientv3.KV {
	return func(kv clientv3.KV) clientv3.KV { return comparingKV{kv, change} }
}

type comparingKV struct {
	clientv3.KV
	change func([]clientv3.Cmp) []clientv3.Cmp
}

func (kv comparingKV) Txn(ctx context.Context) clientv3.Txn {
	return &comparingTxn{kv.KV.Txn(ctx), kv.change}
}

type comparingTxn struct {
	clientv3.Txn
	change func([]clientv3.Cmp) []clientv3.Cmp
}

func (t *comparingTxn) If(compares ...clientv3.Cmp) clientv3.Txn {
	if len(compares) == 2 && strings.HasSuffix(string(compares[0].KeyBytes()), "/leader") {
		compares = t.change(compares)
	}
	t.Txn = t.Txn.If(compares...)
	return t
}

func (t *comparingTxn) Then(ops ...clientv3.Op) clientv3.Txn { t.Txn = t.Txn.Then(ops...); return t }
func (t *comparingTxn) Else(ops ...clientv3.Op) clientv3.Txn { t.Txn = t.Txn.Else(ops...); return t }
