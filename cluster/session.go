package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

type session struct {
	lease   clientv3.LeaseID
	lost    chan struct{}
	renewed <-chan *clientv3.LeaseKeepAliveResponse
	stop    context.CancelFunc // ends the renewal
}

// begin gets a lease that is renewed while run lasts, and puts the own record under it.
func (c *Cluster) begin(ctx, run context.Context) error {
	request, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	granted, err := c.options.Client.Grant(request, int64(c.options.Lease/time.Second))
	if err != nil {
		return fmt.Errorf("grant the lease of a session: %w", err)
	}
	renewing, stop := context.WithCancel(run)
	renewed, err := c.options.Client.KeepAlive(renewing, granted.ID)
	if err != nil {
		stop()
		return fmt.Errorf("renew the lease of a session: %w", err)
	}
	c.mu.Lock()
	c.session = session{lease: granted.ID, lost: make(chan struct{}), renewed: renewed, stop: stop}
	c.mu.Unlock()
	if err := c.announce(ctx); err != nil {
		c.lose() // whoever has seen the session already hears that it is over
		return errors.Join(err, c.revoke(ctx))
	}
	return nil
}

// announce puts the own record under the lease of the session, unless this process is leaving.
func (c *Cluster) announce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if c.Leaving() {
		return nil
	}
	key, value, err := c.record()
	if err != nil {
		return err
	}
	if _, err := c.options.Client.Txn(ctx).Then(clientv3.OpPut(key, value, clientv3.WithLease(c.Session().Lease))).Commit(); err != nil {
		return fmt.Errorf("write the record of this instance: %w", err)
	}
	return nil
}

// correct writes the own record, or deletes it when this process is leaving: one that was written late may have come behind the deletion.
func (c *Cluster) correct(ctx context.Context) error {
	if c.Leaving() {
		return c.withdraw(ctx)
	}
	return c.announce(ctx)
}

// Leaving reports whether Leave was called.
func (c *Cluster) Leaving() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.leaving
}

// revoke ends the lease of the newest session, so that nothing can be put under it any more.
func (c *Cluster) revoke(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, err := c.options.Client.Revoke(ctx, c.Session().Lease)
	if err != nil && !errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return fmt.Errorf("revoke the lease of the session, it will run out: %w", err)
	}
	return nil
}

// keepSession tends one session after the other.
func (c *Cluster) keepSession(run context.Context) {
	for {
		c.tend(run)
		if run.Err() != nil {
			return
		}
		c.lose()
		c.options.Log.Warn().Msg("the session of this instance is lost, a new one begins")
		if err := c.revoke(run); err != nil && run.Err() == nil {
			c.options.Log.Warn().Err(err).Msg("lease not revoked")
		}
		pause := firstRetry
		for {
			err := c.begin(run, run)
			if err == nil {
				break
			}
			if run.Err() != nil {
				return
			}
			if pause == firstRetry {
				c.options.Log.Warn().Err(err).Msg("no new session, trying again until there is one")
			}
			wait(run, pause)
			pause = min(2*pause, lastRetry)
		}
	}
}

// lose tells that the newest session is over.
func (c *Cluster) lose() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.session.stop()
	close(c.session.lost)
}

// tend writes the own record from time to time, and takes it away when this process leaves. It returns when the lease is gone
// or run is done.
func (c *Cluster) tend(run context.Context) {
	next := time.NewTimer(refreshInterval)
	defer next.Stop()
	c.mu.Lock()
	renewed, leave := c.session.renewed, c.leave
	c.mu.Unlock()
	for {
		again := refreshInterval
		var err error
		select { // nothing is written for a session that is known to be over
		case _, alive := <-renewed:
			if !alive {
				return
			}
		default:
		}
		select {
		case <-run.Done():
			return
		case _, alive := <-renewed:
			if !alive {
				return
			}
			continue
		case <-leave:
			if err = c.withdraw(run); err == nil {
				leave = nil
			}
		case <-c.wrong:
			err = c.correct(run)
		case <-next.C:
			err = c.announce(run)
		}
		if errors.Is(err, rpctypes.ErrLeaseNotFound) {
			return
		}
		if err != nil && run.Err() == nil {
			c.options.Log.Warn().Err(err).Msg("record of this instance not written, trying again")
			wait(run, firstRetry)
			again = lastRetry
		}
		next.Reset(again)
	}
}

// withdraw deletes the own record.
func (c *Cluster) withdraw(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if _, err := c.options.Client.Txn(ctx).Then(clientv3.OpDelete(c.options.Keys.Instance(c.Self().ID))).Commit(); err != nil {
		return fmt.Errorf("delete the record of this instance: %w", err)
	}
	select {
	case <-c.left:
	default:
		close(c.left)
	}
	return nil
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
