package etcdtest

import (
	"testing"

	"github.com/rs/zerolog"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/etcdcreator"
)

// Creator makes the creator of the only process of a store, which is closed when the test ends.
func Creator(t testing.TB, kv clientv3.KV) *etcdcreator.Creator {
	creator := etcdcreator.New(etcdcreator.Options{KV: kv, Keys: Space, Log: zerolog.Nop()})
	t.Cleanup(creator.Close)
	return creator
}
