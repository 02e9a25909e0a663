package topic

import (
	"context"
	"errors"
	"fmt"
	"maps"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// CreateTopic makes a topic without partitions, or one partition of a partitioned topic.
// Errors: ErrTopicExists, ErrNamespaceNotFound, txn.ErrNotAllowed.
func (ts *Topics) CreateTopic(ctx context.Context, name topicname.Name, properties map[string]string) error {
	if err := ts.checkStored(ctx, name); err != nil {
		return err
	}
	for {
		b, err := ts.base(ctx, name)
		if err != nil {
			return err
		}
		switch partition := name.Partition(); {
		case b.number > 0 && partition < 0:
			return errTakenByPartitioned(name)
		case b.number > 0 && partition >= b.number:
			return notAPartition(name, b.number)
		}
		_, made, err := ts.create(ctx, name, b, attributes{Properties: properties})
		switch {
		case errors.Is(err, errChanged):
			continue
		case err == nil && !made:
			return fmt.Errorf("%w: %s", ErrTopicExists, name)
		}
		return err
	}
}

func notAPartition(name topicname.Name, partitions int) error {
	return fmt.Errorf("%w: Illegal topic partition name %s with max allowed %d partitions", txn.ErrNotAllowed, name, partitions)
}

// base is the partitioned topic of a name, as it was read. The zero base: there is none.
type base struct {
	number  int   // of partitions
	created int64 // create revision
}

func (ts *Topics) base(ctx context.Context, name topicname.Name) (base, error) {
	key := ts.partitionedKey(name.Base())
	got, err := ts.store.get(ctx, key)
	if err != nil || len(got.Kvs) == 0 {
		return base{}, err
	}
	number, _, err := decodeAttributes(key, got.Kvs[0].Value)
	return base{number, got.Kvs[0].CreateRevision}, err
}

// create makes a topic if its base still is b, and returns the id of the one that was made meanwhile if there is one. Errors: errChanged
// of a partition whose partitioned topic was made or deleted meanwhile; txn.ErrNotAllowed where a partitioned topic has the name.
func (ts *Topics) create(ctx context.Context, name topicname.Name, b base, a attributes) (id uint64, made bool, err error) {
	a.Created = ts.options.Now().UnixMilli()
	value, err := a.encode(oneTopic)
	if err != nil {
		return 0, false, fmt.Errorf("create %s: %w", name, err)
	}
	key := ts.nameKey(name)
	result, err := ts.make(ctx, name, b, key, value)
	if err != nil {
		return 0, false, fmt.Errorf("create %s: %w", name, err)
	}
	if result.Succeeded {
		return uint64(result.Header.Revision), true, nil
	}
	if kvs := result.Responses[0].GetResponseRange().Kvs; len(kvs) > 0 {
		return uint64(kvs[0].CreateRevision), false, nil
	}
	if name.Partition() >= 0 {
		return 0, false, fmt.Errorf("create %s: %w", name, errChanged)
	}
	return 0, false, errTakenByPartitioned(name)
}

func errTakenByPartitioned(name topicname.Name) error {
	return fmt.Errorf("%w: %w: %s is a partitioned topic", txn.ErrNotAllowed, ErrTopicExists, name)
}

// make puts the key of a topic, or of a partitioned topic, if there is none of the name, its base still is b and its namespace exists. If
// there is one, the answer has what the key is. Behind an error it may have been put, and does not come later; see etcdcreator.
// Errors: ErrNamespaceNotFound.
func (ts *Topics) make(ctx context.Context, name topicname.Name, b base, key, value string) (*clientv3.TxnResponse, error) {
	conditions := []clientv3.Cmp{
		clientv3.Compare(clientv3.CreateRevision(ts.nameKey(name)), "=", 0),
		clientv3.Compare(clientv3.CreateRevision(ts.partitionedKey(name.Base())), "=", b.created),
	}
	otherwise := []clientv3.Op{clientv3.OpGet(key)}
	if !ts.options.unstored {
		namespace := ts.options.Keys.Namespace(name.Tenant, name.Namespace)
		conditions = append(conditions, clientv3.Compare(clientv3.CreateRevision(namespace), ">", 0))
		otherwise = append(otherwise, clientv3.OpGet(namespace, clientv3.WithCountOnly()))
	}
	result, err := ts.options.Creator.Txn(ctx, conditions, []clientv3.Op{clientv3.OpPut(key, value)}, otherwise)
	if err != nil {
		return nil, err
	}
	if !result.Succeeded && !ts.options.unstored && result.Responses[1].GetResponseRange().Count == 0 {
		return nil, ErrNamespaceNotFound
	}
	return result, nil
}

// Properties returns the properties of a topic or of a partitioned topic.
// Errors: ErrTopicNotFound.
func (ts *Topics) Properties(ctx context.Context, name topicname.Name) (map[string]string, error) {
	stored, err := ts.attributes(ctx, name)
	return stored.attributes.Properties, err
}

// Created returns when a topic or a partitioned topic was made, Unix ms; 0 if an earlier version made it.
// Errors: ErrTopicNotFound.
func (ts *Topics) Created(ctx context.Context, name topicname.Name) (int64, error) {
	stored, err := ts.attributes(ctx, name)
	return stored.attributes.Created, err
}

// UpdateProperties sets properties of a topic or of a partitioned topic, and removes those of the given names.
// Errors: ErrTopicNotFound, txn.ErrNotAllowed for too many bytes.
func (ts *Topics) UpdateProperties(ctx context.Context, name topicname.Name, set map[string]string, remove ...string) error {
	for {
		stored, err := ts.attributes(ctx, name)
		if err != nil {
			return err
		}
		properties := maps.Clone(stored.attributes.Properties)
		if properties == nil {
			properties = make(map[string]string)
		}
		maps.Copy(properties, set)
		for _, key := range remove {
			delete(properties, key)
		}
		stored.attributes.Properties = properties
		if swapped, err := ts.swap(ctx, stored); swapped || err != nil {
			return err
		}
	}
}

// storedAttributes is the key of a topic or of a partitioned topic, as it was read.
type storedAttributes struct {
	key        string
	revision   int64
	number     int
	attributes attributes
}

func (ts *Topics) attributes(ctx context.Context, name topicname.Name) (storedAttributes, error) {
	for _, key := range []string{ts.partitionedKey(name), ts.nameKey(name)} {
		got, err := ts.store.get(ctx, key)
		if err != nil {
			return storedAttributes{}, err
		}
		if len(got.Kvs) > 0 {
			number, a, err := decodeAttributes(key, got.Kvs[0].Value)
			return storedAttributes{key, got.Kvs[0].ModRevision, number, a}, err
		}
	}
	return storedAttributes{}, fmt.Errorf("%w: %s", ErrTopicNotFound, name)
}

// swap writes stored, unless somebody has written it since it was read.
func (ts *Topics) swap(ctx context.Context, stored storedAttributes) (swapped bool, err error) {
	value, err := stored.attributes.encode(stored.number)
	if err != nil {
		return false, err
	}
	same := []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(stored.key), "=", stored.revision)}
	result, err := ts.store.txn(ctx, same, []clientv3.Op{clientv3.OpPut(stored.key, value)}, nil)
	if err != nil {
		return false, fmt.Errorf("write %s: %w", stored.key, err)
	}
	return result.Succeeded, nil
}
