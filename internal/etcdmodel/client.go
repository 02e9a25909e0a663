package etcdmodel

import (
	"context"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Client is one user of the model: a clientv3.KV, a Lease and a Watcher. Close it.
type Client struct {
	clientv3.KV
	clientv3.Lease // but for KeepAlive and KeepAliveOnce
	sender

	ctx    context.Context
	cancel context.CancelFunc
	tasks  sync.WaitGroup // watches and renewals
}

// Client returns a new client. gate may be nil.
func (m *Model) Client(name string, gate Gate) *Client {
	send := sender{model: m, name: name, gate: gate}
	ctx, cancel := context.WithCancel(context.Background())
	return &Client{
		KV: clientv3.NewKVFromKVClient(remoteKV{send}, nil), Lease: clientv3.NewLeaseFromLeaseClient(remoteLease{send}, nil, 0),
		sender: send, ctx: ctx, cancel: cancel,
	}
}

// Close ends all watches and stops renewing leases, which then run out. Requests that a gate holds are not touched.
func (c *Client) Close() error {
	c.cancel()
	c.tasks.Wait()
	return c.Lease.Close()
}

// sender passes requests through the gate.
type sender struct {
	model *Model
	name  string
	gate  Gate
}

// send returns the answer of a request. Errors are as they come from etcd, before the client looks at them.
func (s sender) send(ctx context.Context, message any) (any, error) {
	if err := ctx.Err(); err != nil {
		return nil, status.FromContextError(err).Err()
	}
	r := newRequest(s.name, s.model, message)
	if s.gate != nil {
		if err := s.gate(ctx, r); err != nil {
			return nil, err
		}
	}
	if err := r.Apply(); err != nil {
		return nil, err
	}
	return r.answer, nil
}

func call[Answer any](ctx context.Context, s sender, message any) (*Answer, error) {
	answer, err := s.send(ctx, message)
	if err != nil {
		return nil, err
	}
	return answer.(*Answer), nil
}

// remoteKV and remoteLease are etcd's services as the client knows them, so that options and errors are treated by the
// client's own code.
type remoteKV struct{ sender }

func (k remoteKV) Range(ctx context.Context, r *pb.RangeRequest, _ ...grpc.CallOption) (*pb.RangeResponse, error) {
	return call[pb.RangeResponse](ctx, k.sender, r)
}

func (k remoteKV) Put(ctx context.Context, r *pb.PutRequest, _ ...grpc.CallOption) (*pb.PutResponse, error) {
	return call[pb.PutResponse](ctx, k.sender, r)
}

func (k remoteKV) DeleteRange(ctx context.Context, r *pb.DeleteRangeRequest, _ ...grpc.CallOption) (*pb.DeleteRangeResponse, error) {
	return call[pb.DeleteRangeResponse](ctx, k.sender, r)
}

func (k remoteKV) Txn(ctx context.Context, r *pb.TxnRequest, _ ...grpc.CallOption) (*pb.TxnResponse, error) {
	return call[pb.TxnResponse](ctx, k.sender, r)
}

func (k remoteKV) Compact(ctx context.Context, r *pb.CompactionRequest, _ ...grpc.CallOption) (*pb.CompactionResponse, error) {
	return call[pb.CompactionResponse](ctx, k.sender, r)
}

var errNotModelled = status.Error(codes.Unimplemented, "etcdmodel: this call is not modelled")

func (k remoteKV) RangeStream(context.Context, *pb.RangeRequest, ...grpc.CallOption) (grpc.ServerStreamingClient[pb.RangeStreamResponse], error) {
	return nil, errNotModelled
}

type remoteLease struct{ sender }

func (l remoteLease) LeaseGrant(ctx context.Context, r *pb.LeaseGrantRequest, _ ...grpc.CallOption) (*pb.LeaseGrantResponse, error) {
	return call[pb.LeaseGrantResponse](ctx, l.sender, r)
}

func (l remoteLease) LeaseRevoke(ctx context.Context, r *pb.LeaseRevokeRequest, _ ...grpc.CallOption) (*pb.LeaseRevokeResponse, error) {
	return call[pb.LeaseRevokeResponse](ctx, l.sender, r)
}

func (l remoteLease) LeaseTimeToLive(ctx context.Context, r *pb.LeaseTimeToLiveRequest, _ ...grpc.CallOption) (*pb.LeaseTimeToLiveResponse, error) {
	return call[pb.LeaseTimeToLiveResponse](ctx, l.sender, r)
}

func (l remoteLease) LeaseLeases(ctx context.Context, r *pb.LeaseLeasesRequest, _ ...grpc.CallOption) (*pb.LeaseLeasesResponse, error) {
	return call[pb.LeaseLeasesResponse](ctx, l.sender, r)
}

// LeaseKeepAlive is not called: the client of the model renews by itself.
func (l remoteLease) LeaseKeepAlive(context.Context, ...grpc.CallOption) (grpc.BidiStreamingClient[pb.LeaseKeepAliveRequest, pb.LeaseKeepAliveResponse], error) {
	return nil, errNotModelled
}
