package etcdlog_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/txn"
	"github.com/pulsar-tc/pulsar-tc/txnlog/etcdlog"
)

// slowKV is behind a network that carries a mebibyte in a second.
type slowKV struct{ etcdlog.KV }

func (kv slowKV) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	response, err := kv.KV.Get(ctx, key, opts...)
	if err != nil {
		return nil, err
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(time.Duration(size(response.Kvs)) * time.Second >> 20):
		return response, nil
	}
}

func size(kvs []*mvccpb.KeyValue) (bytes int) {
	for _, kv := range kvs {
		bytes += len(kv.Key) + len(kv.Value)
	}
	return bytes
}

// A page is fitted to the entries before it. When large ones follow thousands of small ones, more is asked for than comes in time: the
// load goes on with less, else no load of this log would ever end.
func TestLargeEntriesBehindSmallOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client, open := modelled(t)
		log := open(client)
		if _, err := log.Load(t.Context(), func(txn.LogEntry) error { return nil }); err != nil {
			t.Fatal(err)
		}
		small, large := ends(1, false), ends(10_000, false)
		const smalls, larges = 2400, 60
		for range smalls {
			if _, err := log.Append(t.Context(), small); err != nil {
				t.Fatal(err)
			}
		}
		for range larges {
			if _, err := log.Append(t.Context(), large); err != nil {
				t.Fatal(err)
			}
		}
		records := 0
		if _, err := open(slowKV{client}).Load(t.Context(), func(entry txn.LogEntry) error {
			records += len(entry.Records)
			return nil
		}); err != nil || records != smalls+10_000*larges {
			t.Errorf("%d records, %v", records, err)
		}
	})
}

// countingKV counts the bytes that it reads in transactions.
type countingKV struct {
	etcdlog.KV
	read int
}

func (kv *countingKV) Txn(ctx context.Context) clientv3.Txn {
	return countingTxn{kv.KV.Txn(ctx), kv}
}

type countingTxn struct {
	clientv3.Txn
	kv *countingKV
}

func (t countingTxn) If(c ...clientv3.Cmp) clientv3.Txn  { return countingTxn{t.Txn.If(c...), t.kv} }
func (t countingTxn) Then(o ...clientv3.Op) clientv3.Txn { return countingTxn{t.Txn.Then(o...), t.kv} }
func (t countingTxn) Else(o ...clientv3.Op) clientv3.Txn { return countingTxn{t.Txn.Else(o...), t.kv} }

func (t countingTxn) Commit() (*clientv3.TxnResponse, error) {
	response, err := t.Txn.Commit()
	if err == nil {
		for _, r := range response.Responses {
			t.kv.read += size(r.GetResponseRange().GetKvs())
		}
	}
	return response, err
}

// The cleaning of a log of large entries reads about as much as it asks for, not as many entries as if they were small.
func TestOldestEntriesThatAreLarge(t *testing.T) {
	_, client, open := modelled(t)
	kv := &countingKV{KV: client}
	log := open(kv)
	if _, err := log.Load(t.Context(), func(txn.LogEntry) error { return nil }); err != nil {
		t.Fatal(err)
	}
	large := ends(10_000, false)
	for range 60 {
		if _, err := log.Append(t.Context(), large); err != nil {
			t.Fatal(err)
		}
	}
	const asked = 128 << 10
	for step := range 20 {
		kv.read = 0
		entries, err := log.ReadPrefix(t.Context(), asked)
		if err != nil || len(entries) != 1 || entries[0].Index != uint64(step+1) || entries[0].Bytes < asked {
			t.Fatalf("step %d: %d entries, %v", step, len(entries), err)
		}
		if step > 0 && kv.read > 2*entries[0].Bytes {
			t.Fatalf("step %d reads %d bytes for an entry of %d", step, kv.read, entries[0].Bytes)
		}
		if _, err := log.Append(t.Context(), txn.Batch{DropBefore: uint64(step + 2)}); err != nil {
			t.Fatal(err)
		}
	}
}
