package topic

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

// creator is the key of this process that each creation of a topic compares. Of some creations it is not known whether they were stored,
// and etcd may apply one much later: behind the deletion of the topic that it, or another attempt, has made. So the key is written anew
// before such a creation is answered or tried again, and the late one fails.
//
// With other instances the key hangs on this one's lease, so that it stays no longer than the instance, and is put before the first
// creation: one that compares that there is none would be applied when the lease is gone.
type creator struct {
	turn     chan struct{} // has room for who uses the following
	revision int64         // of the key; 0: there is none
	spent    bool          // the next creation has to write the key first
}

func newCreator(instance Instance) creator {
	return creator{turn: make(chan struct{}, 1), spent: instance != nil}
}

func (ts *Topics) creatorKey() string {
	if ts.options.Instance == nil {
		return ts.options.Keys.Creator("")
	}
	return ts.options.Keys.Creator(ts.options.Instance.ID())
}

// asCreator does something with the creator, one caller at a time.
func (ts *Topics) asCreator(ctx context.Context, do func(c *creator) error) error {
	select {
	case ts.creator.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-ts.creator.turn }()
	return do(&ts.creator)
}

// creatorRevision is the revision that a creation has to compare.
func (ts *Topics) creatorRevision(ctx context.Context) (revision int64, err error) {
	err = ts.asCreator(ctx, func(c *creator) error {
		err := ts.renewCreator(ctx, c)
		revision = c.revision
		return err
	})
	return revision, err
}

// renewCreator writes the key, if that has to be.
func (ts *Topics) renewCreator(ctx context.Context, c *creator) error {
	if !c.spent {
		return nil
	}
	var options []clientv3.OpOption
	if ts.options.Instance != nil {
		lease, _ := ts.options.Instance.Session()
		options = append(options, clientv3.WithLease(lease))
	}
	put, err := ts.store.txn(ctx, nil, []clientv3.Op{clientv3.OpPut(ts.creatorKey(), "", options...)}, nil)
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return fmt.Errorf("%w: the lease of this instance is gone, it gets another one: %w", txn.ErrNotReady, err)
	}
	if err != nil {
		return err
	}
	c.revision, c.spent = put.Header.Revision, false
	return nil
}

// stopLate makes a creation of which it is not known whether it was stored fail if it still comes. If that fails, the next creation
// does it, and whoever would serve a topic waits for that: see noneIsLate.
func (ts *Topics) stopLate(revision int64) error {
	return ts.asCreator(ts.ctx, func(c *creator) error { // the context of the creation may have ended
		if c.spent {
			return errNotStopped // another creation of this revision has tried, and not long ago
		}
		c.spent = c.revision == revision
		return ts.renewCreator(ts.ctx, c)
	})
}

var errNotStopped = fmt.Errorf("%w: an earlier creation may still be stored", txn.ErrNotReady)

// noneIsLate returns when no creation of this process may come late: of a topic that is there now, and is deleted then.
func (ts *Topics) noneIsLate(ctx context.Context) error {
	return ts.asCreator(ctx, func(c *creator) error {
		if c.revision == 0 && ts.options.Instance != nil { // it has created nothing
			return nil
		}
		return ts.renewCreator(ctx, c)
	})
}

// foundCreator takes the revision that the key was found to have instead of the one that a creation has compared; 0: there is none.
func (ts *Topics) foundCreator(ctx context.Context, revision int64) error {
	return ts.asCreator(ctx, func(c *creator) error {
		c.revision = max(c.revision, revision)
		c.spent = c.spent || revision == 0 && (ts.options.Instance != nil || c.revision > 0)
		return nil
	})
}
