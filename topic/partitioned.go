package topic

import (
	"context"
	"errors"
	"fmt"

	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// MaxPartitions is the most partitions that a topic may have: all of them are deleted in one transaction of the store.
func (ts *Topics) MaxPartitions() int { return (ts.options.MaxTxnOps - removalOps) / removalOpsEach }

// partitions returns the number of partitions of a partitioned topic, and 0 for other names.
func (ts *Topics) partitions(ctx context.Context, name topicname.Name) (int, error) {
	partitions, _, err := ts.PartitionedMetadata(ctx, name)
	return partitions, err
}

// PartitionedMetadata returns the number of partitions and the properties of a partitioned topic, and 0 for other names.
func (ts *Topics) PartitionedMetadata(ctx context.Context, name topicname.Name) (partitions int, properties map[string]string, err error) {
	key := ts.partitionedKey(name)
	got, err := ts.store.get(ctx, key)
	if err != nil || len(got.Kvs) == 0 {
		return 0, nil, err
	}
	partitions, a, err := decodeAttributes(key, got.Kvs[0].Value)
	return partitions, a.Properties, err
}

// CreatePartitioned makes a partitioned topic. Its partitions come to be with their first use.
// Errors: ErrTopicExists, ErrNamespaceNotFound, txn.ErrNotAllowed for a number that is not 1 to MaxPartitions, and for the name
// of a partition.
func (ts *Topics) CreatePartitioned(ctx context.Context, name topicname.Name, partitions int, properties map[string]string) error {
	if err := ts.check(ctx, name); err != nil {
		return err
	}
	if err := ts.checkPartitions(name, partitions); err != nil {
		return err
	}
	value, err := attributes{Created: ts.options.Now().UnixMilli(), Properties: properties}.encode(partitions)
	if err != nil {
		return fmt.Errorf("create %s: %w", name, err)
	}
	result, err := ts.make(ctx, name, base{}, ts.partitionedKey(name), value)
	if err != nil {
		return fmt.Errorf("create %s: %w", name, err)
	}
	if !result.Succeeded {
		return fmt.Errorf("%w: %s", ErrTopicExists, name)
	}
	return nil
}

func (ts *Topics) checkPartitions(name topicname.Name, partitions int) error {
	switch {
	case name.Partition() >= 0:
		return fmt.Errorf("%w: %s has the name of a partition", txn.ErrNotAllowed, name)
	case name.Domain == topicname.Segment:
		return fmt.Errorf("%w: a segment has no partitions: %s", txn.ErrNotAllowed, name)
	case partitions <= 0 || partitions > ts.MaxPartitions():
		return fmt.Errorf("%w: %d partitions of %s, want 1 to %d", txn.ErrNotAllowed, partitions, name, ts.MaxPartitions())
	}
	return nil
}

// partitioned returns what is stored of a partitioned topic. Errors: ErrTopicNotFound.
func (ts *Topics) partitioned(ctx context.Context, name topicname.Name) (storedAttributes, error) {
	stored, err := ts.attributes(ctx, name)
	if err == nil && stored.key != ts.partitionedKey(name) {
		err = fmt.Errorf("%w: %s is not partitioned", ErrTopicNotFound, name)
	}
	return stored, err
}

// UpdatePartitions gives a partitioned topic more partitions. Each begins with the durable subscriptions of the first one, so
// that no message goes past a consumer that has not heard of the new partitions yet.
// Errors: ErrTopicNotFound, txn.ErrNotAllowed for a number that is not larger than before.
//
// Source: PersistentTopicsBase.updatePartitionedTopic, createSubscriptions.
func (ts *Topics) UpdatePartitions(ctx context.Context, name topicname.Name, partitions int) error {
	if err := ts.checkPartitions(name, partitions); err != nil {
		return err
	}
	for {
		stored, err := ts.partitioned(ctx, name)
		if err != nil {
			return err
		}
		if partitions <= stored.number {
			return fmt.Errorf("%w: %d partitions of %s, want more than %d", txn.ErrNotAllowed, partitions, name, stored.number)
		}
		err = ts.copySubscriptions(ctx, name, stored.number, partitions)
		if errors.Is(err, errChanged) {
			continue
		}
		if err != nil {
			return fmt.Errorf("update %s to %d partitions: %w", name, partitions, err)
		}
		stored.number = partitions
		if swapped, err := ts.swap(ctx, stored); swapped || err != nil {
			return err
		}
	}
}

// copySubscriptions gives partitions from to to-1, which nobody uses yet, the durable subscriptions of partition 0.
func (ts *Topics) copySubscriptions(ctx context.Context, name topicname.Name, from, to int) error {
	subscriptions, err := ts.storedSubscriptions(ctx, name.WithPartition(0))
	if err != nil || len(subscriptions) == 0 {
		return err
	}
	b, err := ts.base(ctx, name)
	if err != nil {
		return err
	}
	if b.number != from {
		return errChanged
	}
	for p := from; p < to; p++ {
		partition := name.WithPartition(p)
		if _, _, err := ts.create(ctx, partition, b, attributes{}); err != nil {
			return err
		}
		for _, s := range subscriptions {
			err := ts.CreateSubscription(ctx, partition, s, nil)
			if err != nil && !errors.Is(err, ErrSubscriptionExists) {
				return err
			}
		}
	}
	return nil
}
