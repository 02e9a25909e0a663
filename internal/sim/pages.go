package sim

import (
	"context"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// pages makes loads of logs read few entries at a time, so that short logs have several pages, too. limit 0: as many as they want.
type pages struct {
	clientv3.KV
	limit int64
}

// isLog tells reads of logs.
func isLog(key string) bool { return strings.Contains(key, "/log/") }

func (p pages) Get(ctx context.Context, key string, options ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	if p.limit > 0 && isLog(key) {
		options = append(options, clientv3.WithLimit(p.limit))
	}
	return p.KV.Get(ctx, key, options...)
}

func (p pages) Txn(ctx context.Context) clientv3.Txn {
	return &rewritten{transaction{ctx: ctx, kv: p.KV}, p.commit}
}

func (p pages) commit(t *transaction) (*clientv3.TxnResponse, error) {
	if p.limit > 0 && t.loads() && strings.HasSuffix(string(t.then[0].KeyBytes()), "/log/") { // not of a cleaning
		clientv3.WithLimit(p.limit)(&t.then[0])
	}
	return t.send()
}
