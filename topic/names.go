package topic

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// check refuses names that no topic here can have.
func (ts *Topics) check(ctx context.Context, name topicname.Name) error {
	if name.Domain != topicname.Persistent && name.Domain != topicname.Segment {
		return fmt.Errorf("%w: %s topics are not supported: %s", txn.ErrNotAllowed, name.Domain, name)
	}
	if name.TransactionInternal() {
		return fmt.Errorf("%w: Can not create transaction system topic %s", txn.ErrNotAllowed, name)
	}
	exists, err := ts.NamespaceExists(ctx, name.NamespaceName())
	if err == nil && !exists {
		err = ErrNamespaceNotFound
	}
	return err
}

// identify returns the id of a topic, and creates the topic if it may. A partition of a partitioned topic always may: it
// exists since the partitioned topic does.
func (ts *Topics) identify(ctx context.Context, name topicname.Name, create bool) (uint64, error) {
	if err := ts.check(ctx, name); err != nil {
		return 0, err
	}
	key := ts.nameKey(name)
	got, err := ts.store.get(ctx, key)
	if err != nil {
		return 0, err
	}
	if len(got.Kvs) > 0 {
		return uint64(got.Kvs[0].CreateRevision), nil
	}
	partitions, err := ts.partitions(ctx, name.Base())
	if err != nil {
		return 0, err
	}
	partition := name.Partition()
	switch {
	case partitions > 0 && partition < 0:
		return 0, fmt.Errorf("%w: %s is a partitioned topic", txn.ErrNotAllowed, name)
	case partitions > 0 && partition >= partitions:
		return 0, fmt.Errorf("%w: Illegal topic partition name %s with max allowed %d partitions", txn.ErrNotAllowed, name, partitions)
	case partitions == 0 && !(create && ts.options.AllowAutoTopicCreation):
		return 0, fmt.Errorf("%w: %s", ErrTopicNotFound, name)
	}
	return ts.create(ctx, name)
}

// create makes a topic, and returns the id of the one that was made meanwhile if there is one. A partitioned topic of the same
// name that was made meanwhile stays the only one.
func (ts *Topics) create(ctx context.Context, name topicname.Name) (uint64, error) {
	key := ts.nameKey(name)
	absent := []clientv3.Cmp{
		clientv3.Compare(clientv3.CreateRevision(key), "=", 0),
		clientv3.Compare(clientv3.CreateRevision(ts.partitionedKey(name)), "=", 0),
	}
	result, err := ts.store.txn(ctx, absent, []clientv3.Op{clientv3.OpPut(key, "1")}, []clientv3.Op{clientv3.OpGet(key)})
	if err != nil {
		return 0, fmt.Errorf("create %s: %w", name, err)
	}
	if result.Succeeded {
		return uint64(result.Header.Revision), nil
	}
	if kvs := result.Responses[0].GetResponseRange().Kvs; len(kvs) > 0 {
		return uint64(kvs[0].CreateRevision), nil
	}
	return 0, fmt.Errorf("%w: %s is a partitioned topic", txn.ErrNotAllowed, name)
}

func (ts *Topics) nameKey(name topicname.Name) string {
	return ts.options.Keys.TopicName(name.Domain, name.Tenant, name.Namespace, name.Local)
}

func (ts *Topics) partitionedKey(name topicname.Name) string {
	return ts.options.Keys.Partitioned(name.Domain, name.Tenant, name.Namespace, name.Local)
}

// partitions returns the number of partitions of a partitioned topic, and 0 for other names.
func (ts *Topics) partitions(ctx context.Context, name topicname.Name) (int, error) {
	key := ts.partitionedKey(name)
	got, err := ts.store.get(ctx, key)
	if err != nil || len(got.Kvs) == 0 {
		return 0, err
	}
	return parsePartitions(key, got.Kvs[0].Value)
}

func parsePartitions(key string, value []byte) (int, error) {
	n, err := strconv.Atoi(string(value))
	if err != nil || n <= 0 {
		return 0, &txn.CorruptError{Key: key, Reason: "it is no number of partitions"}
	}
	return n, nil
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
	exists, err := ts.NamespaceExists(ctx, name.NamespaceName())
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
	if create && (ts.options.AutoPartitions == 0 || name.Domain == topicname.Segment || !ts.options.AllowAutoTopicCreation || name.Partition() >= 0 || name.TransactionInternal()) {
		return 0, nil
	}
	exists, err = ts.TopicExists(ctx, name)
	switch {
	case err != nil || exists:
		return 0, err
	case !create:
		return 0, ErrTopicNotFound
	}
	return ts.CreatePartitioned(ctx, name, ts.options.AutoPartitions)
}

// CreatePartitioned makes a partitioned topic and returns its number of partitions, which is another if it exists.
// Errors: txn.ErrNotAllowed if a plain topic has the name, ErrNamespaceNotFound.
func (ts *Topics) CreatePartitioned(ctx context.Context, name topicname.Name, partitions int) (int, error) {
	if err := ts.check(ctx, name); err != nil {
		return 0, err
	}
	if partitions <= 0 || name.Partition() >= 0 || name.Domain == topicname.Segment {
		return 0, fmt.Errorf("%w: %d partitions of %s", txn.ErrNotAllowed, partitions, name)
	}
	key := ts.partitionedKey(name)
	absent := []clientv3.Cmp{
		clientv3.Compare(clientv3.CreateRevision(key), "=", 0),
		clientv3.Compare(clientv3.CreateRevision(ts.nameKey(name)), "=", 0),
	}
	result, err := ts.store.txn(ctx, absent, []clientv3.Op{clientv3.OpPut(key, strconv.Itoa(partitions))}, []clientv3.Op{clientv3.OpGet(key)})
	if err != nil {
		return 0, fmt.Errorf("create %s: %w", name, err)
	}
	if result.Succeeded {
		return partitions, nil
	}
	if kvs := result.Responses[0].GetResponseRange().Kvs; len(kvs) > 0 {
		return parsePartitions(key, kvs[0].Value)
	}
	return 0, fmt.Errorf("%w: %s is a topic without partitions", txn.ErrNotAllowed, name)
}

// TopicsOfNamespace implements conn.Topics. A namespace that does not exist has no topics, as in Pulsar.
func (ts *Topics) TopicsOfNamespace(ctx context.Context, namespace string, mode pulsarproto.CommandGetTopicsOfNamespace_Mode) ([]string, error) {
	exists, err := ts.NamespaceExists(ctx, namespace)
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
		partitions, err := parsePartitions(prefix+topic, value)
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

func (ts *Topics) eachName(ctx context.Context, prefix string, visit func(name string, value []byte) error) error {
	return ts.store.scanPrefix(ctx, prefix, func(key, value []byte) error {
		name, err := url.PathUnescape(strings.TrimPrefix(string(key), prefix))
		if err != nil {
			return &txn.CorruptError{Key: string(key), Reason: err.Error()}
		}
		return visit(name, value)
	})
}
