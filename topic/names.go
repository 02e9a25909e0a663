package topic

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// checkStored is check for a topic that is stored here: of a non-persistent one only the number of partitions is.
func (ts *Topics) checkStored(ctx context.Context, name topicname.Name) error {
	if name.Domain == topicname.NonPersistent {
		return fmt.Errorf("%w: a non-persistent topic is not stored: %s", txn.ErrNotAllowed, name)
	}
	return ts.check(ctx, name)
}

// check refuses names that no topic can have.
func (ts *Topics) check(ctx context.Context, name topicname.Name) error {
	if name.TransactionInternal() {
		return fmt.Errorf("%w: Can not create transaction system topic %s", txn.ErrNotAllowed, name)
	}
	exists, err := ts.options.NamespaceExists(ctx, name.NamespaceName())
	if err == nil && !exists {
		err = ErrNamespaceNotFound
	}
	return err
}

// identify returns the id of a topic, and creates the topic if it may. A partition of a partitioned topic always may: it
// exists since the partitioned topic does.
func (ts *Topics) identify(ctx context.Context, name topicname.Name, create bool) (uint64, error) {
	if err := ts.checkStored(ctx, name); err != nil {
		return 0, err
	}
	for {
		id, err := ts.findOrCreate(ctx, name, create)
		if !errors.Is(err, errChanged) {
			return id, err
		}
	}
}

func (ts *Topics) findOrCreate(ctx context.Context, name topicname.Name, create bool) (uint64, error) {
	key := ts.nameKey(name)
	got, err := ts.store.get(ctx, key)
	if err != nil {
		return 0, err
	}
	if len(got.Kvs) > 0 {
		return uint64(got.Kvs[0].CreateRevision), ts.options.Creator.Settled(ctx)
	}
	b, err := ts.base(ctx, name)
	if err != nil {
		return 0, err
	}
	partition := name.Partition()
	switch {
	case b.number > 0 && partition < 0:
		return 0, errPartitioned(name)
	case b.number > 0 && partition >= b.number:
		return 0, notAPartition(name, b.number)
	case b.number == 0 && !(create && ts.options.AutoCreation(name).Topics):
		return 0, fmt.Errorf("%w: %s", ErrTopicNotFound, name)
	}
	id, _, err := ts.create(ctx, name, b, attributes{})
	return id, err
}

func errPartitioned(name topicname.Name) error {
	return fmt.Errorf("%w: %s is a partitioned topic", txn.ErrNotAllowed, name)
}

func (ts *Topics) nameKey(name topicname.Name) string {
	return ts.options.Keys.TopicName(name.Domain, name.Tenant, name.Namespace, name.Local)
}

func (ts *Topics) partitionedKey(name topicname.Name) string {
	return ts.options.Keys.Partitioned(name.Domain, name.Tenant, name.Namespace, name.Local)
}

// TopicExists reports whether name is a stored topic, a partitioned topic or a partition of one.
func (ts *Topics) TopicExists(ctx context.Context, name topicname.Name) (bool, error) {
	got, err := ts.store.get(ctx, ts.nameKey(name), clientv3.WithCountOnly())
	if err != nil || got.Count > 0 {
		return err == nil, err
	}
	partitions, err := ts.partitions(ctx, name.Base())
	return partitions > 0 && name.Partition() < partitions, err
}

// PartitionCount implements conn.Topics. A topic that does not exist and may not be created counts as a plain one if create
// allows it to be made by its first use; otherwise it is not found.
func (ts *Topics) PartitionCount(ctx context.Context, name topicname.Name, create bool) (int, error) {
	exists, err := ts.options.NamespaceExists(ctx, name.NamespaceName())
	if err != nil {
		return 0, err
	}
	if !exists {
		return 0, ErrNamespaceNotFound
	}
	partitions, err := ts.partitions(ctx, name)
	if err != nil || partitions > 0 {
		return partitions, err
	}
	auto := ts.options.AutoCreation(name)
	if create && (auto.Partitions == 0 || name.Domain == topicname.Segment || !auto.Topics || name.Partition() >= 0 || name.TransactionInternal()) {
		return 0, nil
	}
	exists, err = ts.TopicExists(ctx, name)
	switch {
	case err != nil || exists:
		return 0, err
	case !create:
		return 0, ErrTopicNotFound
	}
	err = ts.CreatePartitioned(ctx, name, auto.Partitions, nil)
	if errors.Is(err, ErrTopicExists) { // somebody else has just made it
		return ts.partitions(ctx, name)
	}
	return auto.Partitions, err
}

// TopicsOfNamespace implements conn.Topics. A namespace that does not exist has no topics, as in Pulsar.
func (ts *Topics) TopicsOfNamespace(ctx context.Context, namespace string, mode pulsarproto.CommandGetTopicsOfNamespace_Mode) ([]string, error) {
	exists, err := ts.options.NamespaceExists(ctx, namespace)
	if err != nil {
		return nil, err
	}
	if !exists {
		return nil, nil
	}
	if mode == pulsarproto.CommandGetTopicsOfNamespace_NON_PERSISTENT {
		return nil, nil
	}
	tenant, local, _ := strings.Cut(namespace, "/")
	var names []string
	add := func(name topicname.Name) {
		if !name.TransactionInternal() {
			names = append(names, name.String())
		}
	}
	err = ts.eachName(ctx, ts.options.Keys.TopicNamePrefix(topicname.Persistent, tenant, local), func(topic string, _ []byte) error {
		add(topicname.Name{Domain: topicname.Persistent, Tenant: tenant, Namespace: local, Local: topic})
		return nil
	})
	if err != nil {
		return nil, err
	}
	prefix := ts.options.Keys.PartitionedPrefix(topicname.Persistent, tenant, local)
	err = ts.eachName(ctx, prefix, func(topic string, value []byte) error {
		partitions, _, err := decodeAttributes(prefix+topic, value)
		for p := range partitions {
			add(topicname.Name{Domain: topicname.Persistent, Tenant: tenant, Namespace: local, Local: topic}.WithPartition(p))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// Segments lists the segments of scalable topics of a namespace, in order. Lists for clients have none.
func (ts *Topics) Segments(ctx context.Context, namespace string) ([]string, error) {
	tenant, local, _ := strings.Cut(namespace, "/")
	var names []string
	err := ts.eachName(ctx, ts.options.Keys.TopicNamePrefix(topicname.Segment, tenant, local), func(segment string, _ []byte) error {
		names = append(names, topicname.Name{Domain: topicname.Segment, Tenant: tenant, Namespace: local, Local: segment}.String())
		return nil
	})
	slices.Sort(names)
	return names, err
}

// PartitionedTopics lists the partitioned topics of a namespace, persistent or not, in order.
// Errors: ErrNamespaceNotFound.
func (ts *Topics) PartitionedTopics(ctx context.Context, namespace string) ([]string, error) {
	exists, err := ts.options.NamespaceExists(ctx, namespace)
	if err == nil && !exists {
		err = ErrNamespaceNotFound
	}
	if err != nil {
		return nil, err
	}
	tenant, local, _ := strings.Cut(namespace, "/")
	var names []string
	for _, domain := range []string{topicname.Persistent, topicname.NonPersistent} {
		err := ts.eachName(ctx, ts.options.Keys.PartitionedPrefix(domain, tenant, local), func(topic string, _ []byte) error {
			names = append(names, topicname.Name{Domain: domain, Tenant: tenant, Namespace: local, Local: topic}.String())
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	slices.Sort(names)
	return names, nil
}

func (ts *Topics) eachName(ctx context.Context, prefix string, visit func(name string, value []byte) error) error {
	return ts.store.scanPrefix(ctx, prefix, func(key, value []byte) error {
		name, err := url.PathUnescape(strings.TrimPrefix(string(key), prefix))
		if err != nil {
			return &txn.CorruptError{Key: string(key), Reason: err.Error()}
		}
		return visit(name, value)
	})
}
