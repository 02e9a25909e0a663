package etcdstore

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// FC-52: however many ask, etcd is asked for one token at a time; a refusal holds for a second, a caller's own end for nobody else.
func TestTokensAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens := newTokens()
		asked := 0
		var refusal error
		get := func(ctx context.Context) (string, error) {
			var reply etcdserverpb.AuthenticateResponse
			err := tokens.get(ctx, &reply, func(context.Context) error {
				asked++
				time.Sleep(100 * time.Millisecond)
				reply.Token = "token"
				return refusal
			})
			return reply.Token, err
		}
		all := func() {
			var group sync.WaitGroup
			for range 20 {
				group.Go(func() {
					if token, err := get(t.Context()); !errors.Is(err, refusal) || err == nil && token != "token" {
						t.Errorf("%q, %v", token, err)
					}
				})
			}
			group.Wait()
		}
		all()
		if asked != 1 {
			t.Errorf("asked %d times", asked)
		}
		time.Sleep(tokenShare)
		refusal, asked = errors.New("wrong password"), 0
		for range 5 {
			all()
			time.Sleep(refusalShare / 10)
		}
		if asked != 1 {
			t.Errorf("asked %d times for a refusal", asked)
		}
		time.Sleep(refusalShare)
		refusal, asked = nil, 0
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		tokens.turn = make(chan struct{}, 1) // somebody has the turn
		if _, err := get(cancelled); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		tokens.turn <- struct{}{}
		all()
		if asked != 1 {
			t.Errorf("asked %d times behind a caller that went", asked)
		}
	})
}

// A member that does not answer says nothing of the password: whoever asks next asks another one.
func TestUnansweredTokenIsNotShared(t *testing.T) {
	for _, lost := range []error{
		status.Error(codes.Unavailable, "closed network connection"), rpctypes.ErrGRPCNoLeader, context.DeadlineExceeded, context.Canceled,
		status.Error(codes.DeadlineExceeded, "tokenTime"), status.Error(codes.Canceled, "closing"),
	} {
		tokens := newTokens()
		var reply etcdserverpb.AuthenticateResponse
		if err := tokens.get(t.Context(), &reply, func(context.Context) error { return lost }); !errors.Is(err, lost) {
			t.Errorf("%v, want %v", err, lost)
		}
		if err := tokens.get(t.Context(), &reply, func(context.Context) error { return nil }); err != nil {
			t.Errorf("%v is shared", err)
		}
	}
}
