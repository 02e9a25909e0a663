package etcdmodel

import (
	"context"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// firstKeepAlive is how long a client waits for the first answer (defaultTTL of clientv3/lease.go).
	firstKeepAlive = 5 * time.Second
	// keepAliveRetry is between a renewal that failed and the next (retryConnWait of clientv3/lease.go).
	keepAliveRetry = 500 * time.Millisecond
	// keepAliveAnswers are kept for a reader; more are dropped (LeaseResponseChSize).
	keepAliveAnswers = 16
)

// KeepAlive renews a lease at a third of its time, as clientv3's does: the channel closes when etcd answers that the lease is
// gone, when no answer came for the whole time of the lease since the last one came, or when ctx or the client ends.
func (c *Client) KeepAlive(ctx context.Context, id clientv3.LeaseID) (<-chan *clientv3.LeaseKeepAliveResponse, error) {
	answers := make(chan *clientv3.LeaseKeepAliveResponse, keepAliveAnswers)
	c.tasks.Go(func() {
		defer close(answers)
		ctx, cancel := c.until(ctx)
		defer cancel()
		deadline := time.Now().Add(firstKeepAlive)
		for {
			response := c.renew(ctx, id, deadline)
			if response == nil || response.TTL <= 0 {
				return
			}
			select {
			case answers <- response:
			default:
			}
			ttl := time.Duration(response.TTL) * time.Second
			deadline = time.Now().Add(ttl)
			if !pause(ctx, ttl/3) {
				return
			}
		}
	})
	return answers, nil
}

// until is a context that also ends with the client.
func (c *Client) until(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(c.ctx, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// renew repeats a renewal until it is answered. nil: it was not, until the deadline.
func (c *Client) renew(ctx context.Context, id clientv3.LeaseID, deadline time.Time) *clientv3.LeaseKeepAliveResponse {
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	for {
		response, err := c.KeepAliveOnce(ctx, id)
		switch {
		case err == nil:
			return response
		case err == rpctypes.ErrLeaseNotFound:
			return &clientv3.LeaseKeepAliveResponse{ID: id}
		case !pause(ctx, keepAliveRetry):
			return nil
		}
	}
}

func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// KeepAliveOnce renews a lease.
func (c *Client) KeepAliveOnce(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseKeepAliveResponse, error) {
	response, err := call[pb.LeaseKeepAliveResponse](ctx, c.sender, &pb.LeaseKeepAliveRequest{ID: int64(id)})
	if err != nil {
		return nil, clientv3.ContextError(ctx, err)
	}
	if response.TTL <= 0 {
		return nil, rpctypes.ErrLeaseNotFound
	}
	return &clientv3.LeaseKeepAliveResponse{ResponseHeader: response.Header, ID: id, TTL: response.TTL}, nil
}
