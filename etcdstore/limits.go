package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// LimitError says that a cluster takes less than the settings say.
type LimitError struct {
	Setting string
	Value   int
	Flag    string // of etcd
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("%s=%d is more than etcd takes: raise etcd's %s, or lower the setting as far as its range goes", e.Setting, e.Value, e.Flag)
}

// probeTimeout bounds both probes: the members answer, but may be busy, or without a majority.
const probeTimeout = 10 * time.Second

// probeOverhead is what a request has beside the value of a probe. Writers keep as much below the limit.
const probeOverhead = 1 << 10

// tryLimits sends transactions of the sizes that the options allow. They cannot apply: their condition is never true, and they
// put nothing, so that they take no space either.
func tryLimits(ctx context.Context, kv clientv3.KV, o ClusterOptions) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	key := o.Space.Schema()
	gets := make([]clientv3.Op, o.MaxTxnOps)
	for i := range gets {
		gets[i] = clientv3.OpGet(key, clientv3.WithKeysOnly())
	}
	never := clientv3.Compare(clientv3.Version(key), "<", 0)
	_, err := kv.Txn(ctx).If(never).Then(gets...).Commit()
	if errors.Is(err, rpctypes.ErrTooManyOps) || tooLarge(err) {
		return &LimitError{"etcdMaxTxnOps", o.MaxTxnOps, "--max-txn-ops"}
	}
	if err != nil {
		return fmt.Errorf("try a transaction of %d operations: %w", o.MaxTxnOps, explain(err))
	}
	long := strings.Repeat("x", o.MaxRequestBytes-probeOverhead)
	_, err = kv.Txn(ctx).If(never, clientv3.Compare(clientv3.Value(key), "=", long)).Then(clientv3.OpDelete(key)).Commit()
	if tooLarge(err) {
		return &LimitError{"etcdMaxRequestBytes", o.MaxRequestBytes, "--max-request-bytes"}
	}
	if err != nil {
		return fmt.Errorf("try a request of %d bytes: %w", o.MaxRequestBytes, explain(err))
	}
	return nil
}

// tooLarge tells the refusals of a request for its size: etcd's, and gRPC's of one that is larger still.
func tooLarge(err error) bool {
	return errors.Is(err, rpctypes.ErrRequestTooLarge) || status.Code(err) == codes.ResourceExhausted && strings.Contains(err.Error(), "larger than max")
}
