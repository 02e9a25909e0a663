package etcdstore

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// underway is what members of a cluster were asked and have not answered yet. They pass requests on to their leader. What one that is
// gone has got is answered seven seconds later, with a timeout. So long stands a stream of renewals, too, of which one was passed on.
// Source: etcd's server/config, ReqTimeout, with the default heartbeats; LeaseRenew in server/etcdserver.
type underway struct {
	mu       sync.Mutex
	requests map[*request]struct{} // guarded by mu
}

// request is one of them.
type request struct {
	began time.Time
	end   context.CancelCauseFunc
}

// errLostWithLeader is the cause of the end of a request.
var errLostWithLeader = errors.New("etcd has elected another leader, and the one before has not answered")

func newUnderway() *underway { return &underway{requests: make(map[*request]struct{})} }

// ask sends a request, unless it is one to a member by itself, which may take its time. A request that was ended fails as one whose
// connection was lost: whether it was applied is unknown. With the code of a cancelled request etcd's client would send it again.
func (u *underway) ask(ctx context.Context, method string, send func(context.Context) error) error {
	if strings.HasPrefix(method, "/etcdserverpb.Maintenance/") {
		return send(ctx)
	}
	ctx, r := u.begin(ctx)
	defer r.end(nil)
	err := send(ctx)
	u.forget(r)
	if err != nil && errors.Is(context.Cause(ctx), errLostWithLeader) {
		return status.Error(codes.Unavailable, errLostWithLeader.Error())
	}
	return err
}

// renewals is the stream in which a client renews its leases. One that was ended is begun anew.
const renewals = "/etcdserverpb.Lease/LeaseKeepAlive"

// stream begins a stream. Watches are left alone: they ask nothing.
func (u *underway) stream(ctx context.Context, d *grpc.StreamDesc, conn *grpc.ClientConn, method string, begin grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
	if method != renewals {
		return begin(ctx, d, conn, method, options...)
	}
	ctx, r := u.begin(ctx)
	context.AfterFunc(ctx, func() { u.forget(r) })
	stream, err := begin(ctx, d, conn, method, options...)
	if err != nil {
		r.end(nil)
		return nil, err
	}
	return stream, nil
}

func (u *underway) begin(ctx context.Context) (context.Context, *request) {
	ctx, end := context.WithCancelCause(ctx)
	r := &request{time.Now(), end}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.requests[r] = struct{}{}
	return ctx, r
}

func (u *underway) forget(r *request) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.requests, r)
}

// lose ends the requests and streams that began before a time.
func (u *underway) lose(before time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for r := range u.requests {
		if r.began.Before(before) {
			r.end(errLostWithLeader)
		}
	}
}
