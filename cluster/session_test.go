package cluster_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/internal/etcdtest"
)

// announceFails fails the first transaction behind a lease that was granted, when the test has let it go on.
type announceFails struct {
	*clientv3.Client
	goOn  chan struct{}
	armed atomic.Bool // the next lease that is granted begins it
	fail  atomic.Int32
}

func (c *announceFails) Grant(ctx context.Context, ttl int64) (*clientv3.LeaseGrantResponse, error) {
	granted, err := c.Client.Grant(ctx, ttl)
	if c.armed.CompareAndSwap(true, false) {
		c.fail.Store(1)
	}
	return granted, err
}

func (c *announceFails) Txn(ctx context.Context) clientv3.Txn {
	if c.fail.Add(-1) >= 0 {
		return failingTxn{c.goOn}
	}
	return c.Client.Txn(ctx)
}

type failingTxn struct{ goOn chan struct{} }

func (f failingTxn) If(...clientv3.Cmp) clientv3.Txn  { return f }
func (f failingTxn) Then(...clientv3.Op) clientv3.Txn { return f }
func (f failingTxn) Else(...clientv3.Op) clientv3.Txn { return f }
func (f failingTxn) Commit() (*clientv3.TxnResponse, error) {
	<-f.goOn
	return nil, errors.New("etcdserver: leader changed")
}

// A session whose record could not be written is over, and whoever took its lease hears of that.
func TestSessionThatWasNotAnnounced(t *testing.T) {
	client := &announceFails{Client: etcdtest.Open(t, nil).Client(), goOn: make(chan struct{})}
	a := join(t, client, nil)
	first := a.Session()
	client.armed.Store(true)
	if _, err := client.Revoke(t.Context(), first.Lease); err != nil {
		t.Fatal(err)
	}
	closed(t, "the session is lost", first.Lost)
	second := a.Session()
	for deadline := time.Now().Add(patience); second.Lease == first.Lease; second = a.Session() {
		if time.Now().After(deadline) {
			t.Fatal("no second session")
		}
		time.Sleep(10 * time.Millisecond)
	}
	close(client.goOn)
	third := second
	for deadline := time.Now().Add(patience); third.Lease == second.Lease; third = a.Session() {
		if time.Now().After(deadline) {
			t.Fatal("no third session")
		}
		time.Sleep(10 * time.Millisecond)
	}
	closed(t, "the second session is over", second.Lost)
}
