package pulsaradmin

import (
	"context"
	"testing"

	"github.com/rs/zerolog"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/internal/etcdtest"
	"github.com/pulsar-tc/pulsar-tc/resources"
)

// deafWatcher tells of nothing.
type deafWatcher struct{ clientv3.Watcher }

func (deafWatcher) Watch(ctx context.Context, _ string, _ ...clientv3.OpOption) clientv3.WatchChan {
	answers := make(chan clientv3.WatchResponse)
	context.AfterFunc(ctx, func() { close(answers) })
	return answers
}

// A grant that another instance has just stored, and of which this one has not heard, goes with the topic, too; and where nothing is
// granted nothing is written.
func TestGrantOfAnotherInstanceGoesWithItsTopic(t *testing.T) {
	const namespace, topic = "public/default", "persistent://public/default/t"
	store := etcdtest.Open(t, nil)
	r, err := resources.Open(t.Context(), resources.Options{
		KV: store.Client(), Watcher: deafWatcher{}, Keys: etcdtest.Space, Creator: etcdtest.Creator(t, store.Client()), Cluster: "here", Log: zerolog.Nop(),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	h := &handler{Options: Options{Resources: r}}
	key := etcdtest.Space.Namespace("public", "default")
	if _, err := store.Client().Put(t.Context(), key, `{"auth_policies":{"destination_auth":{"`+topic+`":{"alice":["consume"]}}}}`); err != nil {
		t.Fatal(err)
	}
	var revisions [2]int64
	for i := range revisions {
		if err := h.withGrants(t.Context(), namespace, nil, func(of string) bool { return of == topic }); err != nil {
			t.Fatal(err)
		}
		stored, err := store.Client().Get(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		revisions[i] = stored.Kvs[0].ModRevision
		if text := string(stored.Kvs[0].Value); i == 0 && text != `{"auth_policies":{"namespace_auth":{},"destination_auth":{},"subscription_auth_roles":{}}}` {
			t.Errorf("stored: %s", text)
		}
	}
	if revisions[0] != revisions[1] {
		t.Error("nothing is taken away, and the namespace is written all the same")
	}
}
