package etcdstore

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// identity is by what a cluster is known again. What a process believes to be stored is there as long as the answers are of one
// cluster and its revisions grow: one that was replaced, or restored from a backup, has lost what the process rests on.
type identity struct {
	cluster  atomic.Uint64 // 0: not known yet
	revision atomic.Int64  // the newest one of all answers
}

// statusMethod is the one that may be answered by a stranger: it is how strangers are found.
const statusMethod = "/etcdserverpb.Maintenance/Status"

// inspect sees every answer. One that cannot be of the cluster ends the process.
func (c *cluster) inspect(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	before := c.identity.revision.Load()
	ask := func(ctx context.Context) error {
		return c.endpoints.underway.ask(ctx, method, func(ctx context.Context) error {
			return invoke(ctx, method, request, reply, conn, options...)
		})
	}
	var err error
	if method == authenticateMethod {
		err = c.tokens.get(ctx, reply.(*etcdserverpb.AuthenticateResponse), ask)
	} else {
		err = ask(ctx)
	}
	if err != nil {
		if rpctypes.ErrorDesc(err) == rpctypes.ErrorDesc(rpctypes.ErrGRPCNoSpace) {
			c.room.refused()
		}
		return err
	}
	answer, has := reply.(interface {
		GetHeader() *etcdserverpb.ResponseHeader
	})
	if !has || method == statusMethod {
		return nil
	}
	if err := c.identity.check(answer.GetHeader(), request, before); err != nil {
		c.failure.set(err)
		return status.Error(codes.DataLoss, err.Error())
	}
	return nil
}

// check takes the header of an answer, its request, and the newest revision of all answers before the request was sent.
func (i *identity) check(header *etcdserverpb.ResponseHeader, request any, before int64) error {
	want, got := i.cluster.Load(), header.GetClusterId()
	if want == 0 || got == 0 {
		return nil
	}
	if got != want {
		return fmt.Errorf("etcd: an endpoint that belonged to cluster %x answers for cluster %x", want, got)
	}
	revision := header.GetRevision()
	if revision < before && ordered(request) {
		return fmt.Errorf("etcd: revision %d after %d: the cluster was restored from a backup, or lost what it had acknowledged", revision, before)
	}
	for known := before; known < revision && !i.revision.CompareAndSwap(known, revision); {
		known = i.revision.Load()
	}
	return nil
}

// ordered tells the requests whose answers come in order, whichever member gives them: etcd proposes them to all members, or
// reads behind all that was proposed.
func ordered(request any) bool {
	switch r := request.(type) {
	case *etcdserverpb.PutRequest, *etcdserverpb.DeleteRangeRequest:
		return true
	case *etcdserverpb.RangeRequest:
		return !r.GetSerializable()
	case *etcdserverpb.TxnRequest:
		return slices.ContainsFunc(r.GetSuccess(), writes) || slices.ContainsFunc(r.GetFailure(), writes)
	}
	return false
}

func writes(op *etcdserverpb.RequestOp) bool {
	return op.GetRequestPut() != nil || op.GetRequestDeleteRange() != nil
}
