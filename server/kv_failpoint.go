//go:build failpoint

package server

import (
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/internal/failpoint"
)

func wrapKV(kv clientv3.KV) clientv3.KV { return failpoint.Wrap(kv) }
