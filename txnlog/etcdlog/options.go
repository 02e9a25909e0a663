package etcdlog

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// KV is what a log needs of an etcd client.
type KV interface {
	Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error)
	Txn(ctx context.Context) clientv3.Txn
}

const (
	// Limits of an etcd server with its default settings. Source: etcd embed.DefaultMaxTxnOps, DefaultMaxRequestBytes.
	defaultMaxOps   = 128
	defaultMaxBytes = 1536 << 10

	// pageBytes is how much of the log a load asks for at once; it holds two pages.
	pageBytes = 4 << 20
	// readTimeout bounds the read of one page: the answer may be lost, and a load that waits for it would hold the term for ever.
	readTimeout = 10 * time.Second
	// firstPage and largestPage are in entries, whose size is not known before the first.
	firstPage   = 32
	largestPage = 4096
)

// Options fit a log to its etcd. The zero value is for a server with default settings that somebody else keeps.
type Options struct {
	// MaxOps limits the operations of one etcd transaction. Default 128.
	MaxOps int
	// MaxBytes limits the size of one request. Default 1.5 MiB.
	MaxBytes int
	// Pin, if not nil, keeps a revision readable until release is called. Both are called from several goroutines.
	Pin func(rev int64) (release func())
	// Wrote, if not nil, hears of the bytes of every request that may have been applied.
	Wrote func(n int)
}

func (o Options) withDefaults() Options {
	if o.MaxOps == 0 {
		o.MaxOps = defaultMaxOps
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = defaultMaxBytes
	}
	if o.Pin == nil {
		o.Pin = func(int64) func() { return func() {} }
	}
	if o.Wrote == nil {
		o.Wrote = func(int) {}
	}
	return o
}
