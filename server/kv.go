//go:build !failpoint

package server

import clientv3 "go.etcd.io/etcd/client/v3"

// wrapKV is the seam at which crash tests stop the process between two store effects.
func wrapKV(kv clientv3.KV) clientv3.KV { return kv }
