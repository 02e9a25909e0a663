package etcdstore

import (
	"context"
	"fmt"
	"strconv"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/keyspace"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// NewerSchemaError says that the store was written by a later build, whose layout this build does not know.
type NewerSchemaError struct {
	Stored, Known uint64
}

func (e *NewerSchemaError) Error() string {
	return fmt.Sprintf("the store has schema version %d, this build knows versions up to %d: run a newer build", e.Stored, e.Known)
}

// EnsureLayout checks the version of the layout and returns the number of coordinators. A store without either gets this
// build's version and the initial number; both are written once and in one transaction, so that two processes that start
// together agree.
func EnsureLayout(ctx context.Context, kv clientv3.KV, space keyspace.Space, initial uint64) (coordinators uint64, err error) {
	schema, count := space.Schema(), space.Coordinators()
	_, err = kv.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(schema), "=", 0), clientv3.Compare(clientv3.CreateRevision(count), "=", 0)).
		Then(clientv3.OpPut(schema, strconv.Itoa(keyspace.SchemaVersion)), clientv3.OpPut(count, strconv.FormatUint(initial, 10))).
		Commit()
	if err != nil {
		return 0, fmt.Errorf("create the layout of the store: %w", err)
	}
	version, err := readNumber(ctx, kv, schema)
	if err != nil {
		return 0, err
	}
	if version > keyspace.SchemaVersion {
		return 0, &NewerSchemaError{Stored: version, Known: keyspace.SchemaVersion}
	}
	return readNumber(ctx, kv, count)
}

func readNumber(ctx context.Context, kv clientv3.KV, key string) (uint64, error) {
	response, err := kv.Get(ctx, key)
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", key, err)
	}
	if len(response.Kvs) == 0 {
		return 0, &txn.CorruptError{Key: key, Reason: "absent"}
	}
	number, err := strconv.ParseUint(string(response.Kvs[0].Value), 10, 64)
	if err != nil || number == 0 {
		return 0, &txn.CorruptError{Key: key, Reason: fmt.Sprintf("want a positive decimal number, have %.32q", response.Kvs[0].Value)}
	}
	return number, nil
}
