package etcdleader

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Term is one period of leadership.
type Term struct {
	client    Client
	key       string
	number    int64
	lost      chan struct{}
	elsewhere chan struct{}
	stop      context.CancelFunc
}

// Number is the create revision of the leader key.
func (t *Term) Number() int64 { return t.number }

// Lost is closed when the lease is known to be gone or is not renewed any more, and when the leader key is known to be gone or
// overwritten.
func (t *Term) Lost() <-chan struct{} { return t.lost }

// Elsewhere is closed when another process is to lead; see coordinator.Term.
func (t *Term) Elsewhere() <-chan struct{} { return t.elsewhere }

// Fence is the condition of every write of this term, and the key that it compares. A write whose condition fails reads the
// key in its else branch.
func (t *Term) Fence() (clientv3.Cmp, string) {
	return clientv3.Compare(clientv3.CreateRevision(t.key), "=", t.number), t.key
}

// Resign deletes this term's leader key, whatever it holds, and nothing else. After an error the key goes with its lease, or whoever
// wants to lead deletes it because it has none.
func (t *Term) Resign(ctx context.Context) error {
	t.stop()
	return remove(ctx, t.client, t.key, t.number)
}

// watchLease closes lost when the client stops to renew: the lease is gone or was not renewed for its whole time, or the term was
// stopped.
func (t *Term) watchLease(renewed <-chan *clientv3.LeaseKeepAliveResponse) {
	defer close(t.lost)
	defer t.stop()
	for range renewed {
	}
}
