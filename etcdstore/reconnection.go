package etcdstore

import (
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
)

// reconnection is when a member that does not answer is dialled again. gRPC's own waits grow to two minutes, in which nothing is served
// although etcd is back; a member is one address, which a dial a second does no harm.
var reconnection = grpc.ConnectParams{
	Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
	MinConnectTimeout: 5 * time.Second, // TCP and TLS, on a busy host
}
