// Package etcdcreator writes what rests on a key being absent, so that it does not come late.
//
// Of some writes it is not known whether they were stored, and etcd may apply one much later. A write that compares the revision of
// what it replaces fails then, because that revision never comes back. One that compares that there is nothing would be applied
// whenever there is nothing again: behind the deletion of what another attempt has made.
package etcdcreator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/keyspace"
	"github.com/pulsar-tc/pulsar-tc/outage"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// Instance is this process among those that share the store.
type Instance interface {
	// ID is unique among all processes that ever were.
	ID() string
	// Session returns the lease of the process. lost is not used.
	Session() (lease clientv3.LeaseID, lost <-chan struct{})
}

// Options say where a Creator writes.
type Options struct {
	KV   clientv3.KV
	Keys keyspace.Space
	Log  zerolog.Logger
	// Instance, if set, is asked with each write. Nil: no other process writes to the store.
	Instance func() Instance
	// Timeout bounds one call of the store. Default 10 s.
	Timeout time.Duration
}

// Creator makes the transactions of one process that rest on a key being absent.
//
// Each compares a key of the process, which is written anew before one of which it is not known whether it was stored is answered: if it
// still comes, it fails. With other instances the key hangs on this one's lease, so that it stays no longer than the instance, and is put
// before the first transaction: one that compares that there is no key would be applied when the lease is gone.
//
// What a process that was killed has sent may still come while its lease lives.
type Creator struct {
	options Options
	ctx     context.Context
	cancel  context.CancelFunc
	tasks   sync.WaitGroup

	turn      chan struct{} // has room for who uses the following
	revision  int64         // of the key; 0: there is none
	spent     bool          // the key has to be written before the next transaction
	repeating bool          // the key is being written until that succeeds
}

// New returns a Creator. Close must be called.
func New(options Options) *Creator {
	if options.Timeout == 0 {
		options.Timeout = 10 * time.Second
	}
	c := &Creator{options: options, turn: make(chan struct{}, 1), spent: options.Instance != nil}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// Close ends what runs in the background and returns when it has ended.
func (c *Creator) Close() {
	c.cancel()
	c.tasks.Wait()
}

// Txn commits a transaction of the store. Behind an error it may have been stored, and does not come any more, unless the error of
// Settled says so, too. Errors beside those of the store: txn.ErrNotReady while this instance has no lease.
func (c *Creator) Txn(ctx context.Context, compares []clientv3.Cmp, then, otherwise []clientv3.Op) (*clientv3.TxnResponse, error) {
	for {
		key, revision, err := c.current(ctx)
		if err != nil {
			return nil, err
		}
		result, err := c.commit(ctx,
			append(slices.Clip(compares), clientv3.Compare(clientv3.ModRevision(key), "=", revision)),
			then, append(slices.Clip(otherwise), clientv3.OpGet(key, clientv3.WithKeysOnly())))
		switch {
		case errors.Is(err, rpctypes.ErrNoSpace): // the store's answer: it has come, or never will
			return nil, err
		case err != nil:
			return nil, errors.Join(err, c.stop(revision))
		case result.Succeeded:
			return result, nil
		}
		var found int64
		last := len(otherwise)
		if kvs := result.Responses[last].GetResponseRange().Kvs; len(kvs) > 0 {
			found = kvs[0].ModRevision
		}
		if found == revision {
			result.Responses = result.Responses[:last]
			return result, nil
		}
		if err := c.found(ctx, found); err != nil {
			return nil, err
		}
	}
}

// Settled returns when no transaction of this process may come late: before it is said that something is not there, or relied on what
// was found. A full store takes none, so it does not keep anybody from deleting. Errors: that of ctx, of the store, txn.ErrNotReady.
func (c *Creator) Settled(ctx context.Context) error {
	return c.inTurn(ctx, func() error {
		if c.revision == 0 && c.options.Instance != nil { // there was none
			return nil
		}
		if err := c.renew(ctx); !errors.Is(err, rpctypes.ErrNoSpace) {
			return err
		}
		return nil
	})
}

// inTurn does something with what turn guards.
func (c *Creator) inTurn(ctx context.Context, do func() error) error {
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-c.turn }()
	return do()
}

// current is the key with the revision that a transaction has to compare.
func (c *Creator) current(ctx context.Context) (key string, revision int64, err error) {
	err = c.inTurn(ctx, func() error {
		err := c.renew(ctx)
		key, revision = c.key(), c.revision
		return err
	})
	return key, revision, err
}

func (c *Creator) key() string {
	if c.options.Instance == nil {
		return c.options.Keys.Creator("")
	}
	return c.options.Keys.Creator(c.options.Instance().ID())
}

// renew writes the key, if that has to be. The caller has the turn.
func (c *Creator) renew(ctx context.Context) error {
	if !c.spent {
		return nil
	}
	var options []clientv3.OpOption
	if c.options.Instance != nil {
		lease, _ := c.options.Instance().Session()
		options = append(options, clientv3.WithLease(lease))
	}
	put, err := c.commit(ctx, nil, []clientv3.Op{clientv3.OpPut(c.key(), "", options...)}, nil)
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return fmt.Errorf("%w: the lease of this instance is gone, it gets another one: %w", txn.ErrNotReady, err)
	}
	if err != nil {
		return err
	}
	c.revision, c.spent = put.Header.Revision, false
	return nil
}

var errNotStopped = fmt.Errorf("%w: an earlier creation may still be stored", txn.ErrNotReady)

// stop makes a transaction of which it is not known whether it was stored fail if it still comes.
func (c *Creator) stop(revision int64) error {
	return c.inTurn(c.ctx, func() error { // the context of the transaction may have ended
		if c.repeating {
			return errNotStopped
		}
		c.spent = c.spent || c.revision == revision
		err := c.renew(c.ctx)
		if err != nil {
			c.repeating = true
			c.tasks.Go(c.repeat)
		}
		return err
	})
}

// repeat writes the key as soon as the store takes it.
func (c *Creator) repeat() {
	var failing outage.Outage
	for c.ctx.Err() == nil {
		err := c.inTurn(c.ctx, func() error {
			err := c.renew(c.ctx)
			c.repeating = err != nil
			return err
		})
		if err == nil {
			return
		}
		if failing.Failed() {
			c.options.Log.Warn().Err(err).Msg("a topic, policy or schema whose creation failed may still come to be, until the store answers")
		}
		failing.Pause(c.ctx)
	}
}

// found takes the revision that the key was found to have instead of the one that a transaction has compared; 0: there is none.
func (c *Creator) found(ctx context.Context, revision int64) error {
	return c.inTurn(ctx, func() error {
		c.revision = max(c.revision, revision)
		c.spent = c.spent || revision == 0 && (c.options.Instance != nil || c.revision > 0)
		return nil
	})
}

func (c *Creator) commit(ctx context.Context, compares []clientv3.Cmp, then, otherwise []clientv3.Op) (*clientv3.TxnResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	return c.options.KV.Txn(ctx).If(compares...).Then(then...).Else(otherwise...).Commit()
}
