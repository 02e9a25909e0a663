package topic

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

func TestNames(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.AutoPartitions = 3 })
	ctx := context.Background()
	count := func(name string, create bool) (int, error) {
		return w.topics.PartitionCount(ctx, parse(t, name), create)
	}
	for _, step := range []struct {
		name   string
		create bool
		want   int
		err    error
	}{
		{"missing", false, 0, ErrTopicNotFound},
		{"made", true, 3, nil},
		{"made", false, 3, nil},
		{"made-partition-1", true, 0, nil},
		{"made-partition-1", false, 0, nil},
		{"made-partition-3", false, 0, ErrTopicNotFound},
		{"persistent://no/such/topic", true, 0, ErrNamespaceNotFound},
		{"persistent://public/none/topic", true, 0, ErrNamespaceNotFound},
		{"persistent://pulsar/system/__transaction_log_0", true, 0, nil},
	} {
		got, err := count(step.name, step.create)
		if got != step.want || !errors.Is(err, step.err) || step.err == nil && err != nil {
			t.Errorf("partitions of %s, create %v: %d, %v; want %d, %v", step.name, step.create, got, err, step.want, step.err)
		}
	}
	for name, want := range map[string]error{
		"made":             txn.ErrNotAllowed,
		"made-partition-3": txn.ErrNotAllowed,
		"persistent://public/default/x-s__transaction_pending_ack":              txn.ErrNotAllowed,
		"persistent://pulsar/system/transaction_coordinator_assign-partition-0": txn.ErrNotAllowed,
		"non-persistent://public/default/x":                                     txn.ErrNotAllowed,
		"persistent://no/such/topic":                                            ErrNamespaceNotFound,
	} {
		if _, err := w.tryProduce(name, &pulsarproto.CommandProducer{}); !errors.Is(err, want) {
			t.Errorf("produce to %s: %v, want %v", name, err, want)
		}
		if _, err := w.trySubscribe(name, "s"); !errors.Is(err, want) {
			t.Errorf("subscribe to %s: %v, want %v", name, err, want)
		}
	}
	if _, err := w.trySubscribe("persistent://public/default/x__transaction_pending_ack", "s"); !strings.Contains(err.Error(), "Can not create transaction system topic") {
		t.Errorf("text %q", err)
	}
	w.produce("made-partition-2")
	got, err := w.topics.TopicsOfNamespace(ctx, "public/default", pulsarproto.CommandGetTopicsOfNamespace_ALL)
	want := []string{
		"persistent://public/default/made-partition-0", "persistent://public/default/made-partition-1", "persistent://public/default/made-partition-2",
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("topics %q, %v, want %q", got, err, want)
	}
}

func TestOddNamesStayApart(t *testing.T) {
	w := newWorld(t)
	names := []string{"a", "a ", "a%2fb", "%61", "..", ".", "ä", "a?b#c", "persistent://public/default/x\u2028"}
	for _, name := range names {
		w.produce(name).send(message(0, name))
	}
	w.restart()
	for _, name := range names {
		w.subscribe(name, "s/../"+name, earliest).want(name)
	}
	got, err := w.topics.TopicsOfNamespace(context.Background(), "public/default", pulsarproto.CommandGetTopicsOfNamespace_PERSISTENT)
	if err != nil || len(got) != len(names) {
		t.Fatalf("%q, %v", got, err)
	}
}

// A topic is made where its namespace exists only.
func TestNamespaces(t *testing.T) {
	w := newWorld(t, func(o *Options) {
		o.NamespaceExists = func(_ context.Context, namespace string) (bool, error) { return namespace == "acme/orders", nil }
	})
	if _, err := storeClient.Put(t.Context(), w.keys.Namespace("acme", "orders"), "{}"); err != nil {
		t.Fatal(err)
	}
	w.produce("persistent://acme/orders/t").send(message(0, "m"))
	for _, name := range []string{"persistent://acme/other/t", "t"} {
		if _, err := w.tryProduce(name, &pulsarproto.CommandProducer{}); !errors.Is(err, ErrNamespaceNotFound) {
			t.Errorf("produce to %s: %v", name, err)
		}
	}
}

// A namespace that is deleted at the moment in which a topic of it is made has none: what a topic without a namespace holds of a
// transaction no END would reach, because a namespace that does not exist has nothing to apply.
func TestNamespaceIsDeletedMeanwhile(t *testing.T) {
	var w *world
	w = newWorld(t, func(o *Options) {
		o.NamespaceExists = func(ctx context.Context, namespace string) (bool, error) {
			_, err := storeClient.Delete(ctx, w.keys.Namespace("acme", "orders"))
			return true, err
		}
	})
	namespace := w.keys.Namespace("acme", "orders")
	for name, create := range map[string]func(topicname.Name) error{
		"by use": func(name topicname.Name) error {
			_, err := w.tryProduce(name.String(), &pulsarproto.CommandProducer{})
			return err
		},
		"topic":       func(name topicname.Name) error { return w.topics.CreateTopic(t.Context(), name, nil) },
		"partitioned": func(name topicname.Name) error { return w.topics.CreatePartitioned(t.Context(), name, 2, nil) },
	} {
		if _, err := storeClient.Put(t.Context(), namespace, "{}"); err != nil {
			t.Fatal(err)
		}
		if err := create(parse(t, "persistent://acme/orders/t")); !errors.Is(err, ErrNamespaceNotFound) {
			t.Errorf("%s: %v, want %v", name, err, ErrNamespaceNotFound)
		}
	}
	for _, prefix := range []string{w.keys.AllTopicNames(), w.keys.AllPartitioned()} {
		if left, err := storeClient.Get(t.Context(), prefix, clientv3.WithPrefix()); err != nil || left.Count != 0 {
			t.Errorf("%d keys below %s, %v", left.Count, prefix, err)
		}
	}
}

// A partition whose partitioned topic is deleted, or made, at the moment in which it is made is what the topic says then.
func TestPartitionedTopicChangesMeanwhile(t *testing.T) {
	w := newWorld(t, func(o *Options) {
		o.AutoCreation = func(name topicname.Name) AutoCreation { return AutoCreation{Topics: name.Base().Local != "deleted"} }
	})
	ctx := context.Background()
	meanwhile := func(do func() error) {
		w.kv.set(func(commit func() (*clientv3.TxnResponse, error)) (*clientv3.TxnResponse, error) {
			w.kv.set(nil)
			if err := do(); err != nil {
				t.Error(err)
			}
			return commit()
		})
	}
	deleted, made := parse(t, "deleted"), parse(t, "made")
	if err := w.topics.CreatePartitioned(ctx, deleted, 2, nil); err != nil {
		t.Fatal(err)
	}
	meanwhile(func() error { return w.topics.DeletePartitioned(ctx, deleted, false) })
	if _, err := w.tryProduce("deleted-partition-0", &pulsarproto.CommandProducer{}); !errors.Is(err, ErrTopicNotFound) {
		t.Errorf("deleted meanwhile: %v", err)
	}
	meanwhile(func() error { return w.topics.CreatePartitioned(ctx, made, 2, nil) })
	if _, err := w.tryProduce("made-partition-2", &pulsarproto.CommandProducer{}); !errors.Is(err, txn.ErrNotAllowed) {
		t.Errorf("made meanwhile: %v", err)
	}
	if left, err := storeClient.Get(ctx, w.keys.AllTopicNames(), clientv3.WithPrefix()); err != nil || left.Count != 0 {
		t.Errorf("%d topics, %v", left.Count, err)
	}
	w.kv.set(nil)
	w.produce("made-partition-1")
}

func TestNoAutoCreation(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.AllowAutoTopicCreation = false })
	if _, err := w.tryProduce("a", &pulsarproto.CommandProducer{}); !errors.Is(err, ErrTopicNotFound) {
		t.Fatalf("produce: %v", err)
	}
	if err := w.topics.CreatePartitioned(context.Background(), parse(t, "p"), 2, nil); err != nil {
		t.Fatal(err)
	}
	if err := w.topics.CreatePartitioned(context.Background(), parse(t, "p"), 5, nil); !errors.Is(err, ErrTopicExists) {
		t.Fatalf("made again: %v", err)
	}
	w.produce("p-partition-1").send(message(0, "m"))
}
