package etcdlog_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/status"

	"github.com/pulsar-tc/pulsar-tc/internal/etcdmodel"
	"github.com/pulsar-tc/pulsar-tc/keyspace"
	"github.com/pulsar-tc/pulsar-tc/txn"
	"github.com/pulsar-tc/pulsar-tc/txnlog/etcdlog"
)

// A load ends although the answer to a read of it is lost, that of the first page or of a later one: otherwise it would hold the
// term for ever, with a lease that is renewed.
func TestLoadOutlivesLostAnswers(t *testing.T) {
	for name, lost := range map[string]etcdmodel.Kind{"first page": etcdmodel.Txn, "later page": etcdmodel.Get} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				model, calm, open := modelled(t)
				fill(t, open(calm))

				deaf := model.Client("deaf", func(ctx context.Context, r *etcdmodel.Request) error {
					if r.Kind != lost {
						return nil
					}
					<-ctx.Done()
					return status.FromContextError(ctx.Err()).Err()
				})
				defer deaf.Close()
				if _, err := open(deaf).Load(t.Context(), func(txn.LogEntry) error { return nil }); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("load: %v, want %v", err, context.DeadlineExceeded)
				}
			})
		})
	}
}

// modelled is a store in memory, a client of it, and what opens the log of one term by a client.
func modelled(t *testing.T) (*etcdmodel.Model, *etcdmodel.Client, func(etcdlog.KV) *etcdlog.Log) {
	t.Helper()
	model := etcdmodel.New(etcdmodel.Options{})
	t.Cleanup(model.Close)
	space := keyspace.New("pulsar-tc", "modelled")
	client := model.Client("client", nil)
	t.Cleanup(func() { _ = client.Close() })
	created, err := client.Put(t.Context(), space.Leader(0), "")
	if err != nil {
		t.Fatal(err)
	}
	return model, client, func(kv etcdlog.KV) *etcdlog.Log {
		return etcdlog.New(kv, space, 0, created.Header.Revision, etcdlog.Options{})
	}
}

// fill writes more entries than a load reads at first.
func fill(t *testing.T, log *etcdlog.Log) {
	t.Helper()
	if _, err := log.Load(t.Context(), func(txn.LogEntry) error { return nil }); err != nil {
		t.Fatal(err)
	}
	for range 40 {
		if _, err := log.Append(t.Context(), batchOf(1)); err != nil {
			t.Fatal(err)
		}
	}
}
