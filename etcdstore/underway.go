package etcdstore

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// underway are the requests to a cluster that are not answered yet. Members pass requests on to their leader. What one that is gone
// has got is answered seven seconds later, with a timeout.
// Source: etcd's server/config, ReqTimeout, with the default heartbeats.
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
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	r := &request{time.Now(), end}
	u.mu.Lock()
	u.requests[r] = struct{}{}
	u.mu.Unlock()
	err := send(ctx)
	u.mu.Lock()
	delete(u.requests, r)
	u.mu.Unlock()
	if err != nil && errors.Is(context.Cause(ctx), errLostWithLeader) {
		return status.Error(codes.Unavailable, errLostWithLeader.Error())
	}
	return err
}

// lose ends the requests that began before a time.
func (u *underway) lose(before time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for r := range u.requests {
		if r.began.Before(before) {
			r.end(errLostWithLeader)
		}
	}
}
