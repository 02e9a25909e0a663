package registry

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/keyspace"
	"github.com/pulsar-tc/pulsar-tc/schema"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// head tells which versions a topic has: live up to, without, next.
type head struct {
	next, live uint64
	revision   int64 // mod revision of its key; 0: there is none
}

const headLayout = 1

var errHead = errors.New("it is no head of schemas")

func (h head) encode() string {
	b := binary.AppendUvarint([]byte{headLayout}, h.next)
	return string(binary.AppendUvarint(b, h.live))
}

func decodeHead(stored []byte) (head, error) {
	if len(stored) < 3 || stored[0] != headLayout {
		return head{}, errHead
	}
	next, n := binary.Uvarint(stored[1:])
	if n <= 0 {
		return head{}, errHead
	}
	live, m := binary.Uvarint(stored[1+n:])
	if m <= 0 || 1+n+m != len(stored) || live > next {
		return head{}, errHead
	}
	return head{next: next, live: live}, nil
}

func (r *Registry) head(ctx context.Context, keys keyspace.Schemas) (head, error) {
	got, err := r.get(ctx, keys.Head())
	if err != nil || len(got.Kvs) == 0 {
		return head{}, err
	}
	h, err := decodeHead(got.Kvs[0].Value)
	if err != nil {
		return head{}, &txn.CorruptError{Key: keys.Head(), Reason: err.Error()}
	}
	h.revision = got.Kvs[0].ModRevision
	return h, nil
}

// version reads one version; found is false if it was deleted since the head was read.
func (r *Registry) version(ctx context.Context, keys keyspace.Schemas, number uint64) (v schema.Version, found bool, err error) {
	got, err := r.get(ctx, keys.Version(number))
	if err != nil || len(got.Kvs) == 0 {
		return v, false, err
	}
	if v, err = schema.Decode(got.Kvs[0].Value); err != nil {
		return v, false, &txn.CorruptError{Key: keys.Version(number), Reason: err.Error()}
	}
	v.Number = number
	return v, true, nil
}

// missing is the fault of a store that lacks a version which its head, read twice, counts.
func missing(keys keyspace.Schemas) error {
	return &txn.CorruptError{Key: keys.Head(), Reason: "it counts a version that is not there"}
}

func (r *Registry) get(ctx context.Context, key string) (*clientv3.GetResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, r.options.StoreTimeout)
	defer cancel()
	got, err := r.options.KV.Get(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("%w: read %s: %w", txn.ErrNotReady, key, err)
	}
	return got, nil
}

// change applies ops and stores next, if h is still the head.
func (r *Registry) change(ctx context.Context, keys keyspace.Schemas, h head, ops ...clientv3.Op) (applied bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.options.StoreTimeout)
	defer cancel()
	compares := []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(keys.Head()), "=", h.revision)}
	var result *clientv3.TxnResponse
	if h.revision == 0 {
		result, err = r.options.Creator.Txn(ctx, compares, ops, nil)
	} else {
		result, err = r.options.KV.Txn(ctx).If(compares...).Then(ops...).Commit()
	}
	if err != nil {
		return false, fmt.Errorf("%w: write %s: %w", txn.ErrNotReady, keys.Head(), err)
	}
	return result.Succeeded, nil
}
