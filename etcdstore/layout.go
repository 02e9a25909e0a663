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

// ForeignKeysError says that the prefix of our keys has keys and no layout of ours: somebody else uses it.
type ForeignKeysError struct{ Root, Key string }

func (e *ForeignKeysError) Error() string {
	return fmt.Sprintf("%s is not a store of this program: it has no layout version, but keys such as %.128q; choose another clusterName, or remove them", e.Root, e.Key)
}

// EnsureLayout checks the version of the layout and returns the number of coordinators. A space without any key gets this
// build's version and the initial number; both are written once and in one transaction, so that two processes that start
// together agree.
func EnsureLayout(ctx context.Context, kv clientv3.KV, space keyspace.Space, initial uint64) (coordinators uint64, err error) {
	schema, count := space.Schema(), space.Coordinators()
	made, err := kv.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(space.Root()), "=", 0).WithPrefix()).
		Then(clientv3.OpPut(schema, strconv.Itoa(keyspace.SchemaVersion)), clientv3.OpPut(count, strconv.FormatUint(initial, 10))).
		Else(clientv3.OpGet(schema, clientv3.WithCountOnly()), clientv3.OpGet(space.Root(), clientv3.WithPrefix(), clientv3.WithLimit(1), clientv3.WithKeysOnly())).
		Commit()
	if err != nil {
		return 0, fmt.Errorf("create the layout of the store: %w", err)
	}
	if !made.Succeeded && made.Responses[0].GetResponseRange().Count == 0 {
		return 0, &ForeignKeysError{Root: space.Root(), Key: string(made.Responses[1].GetResponseRange().Kvs[0].Key)}
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

// NotMoreError says that there are as many coordinators already: their number never shrinks.
type NotMoreError struct{ Stored, Wanted uint64 }

func (e *NotMoreError) Error() string {
	return fmt.Sprintf("there are %d coordinators, want more than that instead of %d", e.Stored, e.Wanted)
}

// CountCoordinators reads the number of coordinators linearizably. Errors: *txn.CorruptError if that or the version of the layout is
// not there any more.
func CountCoordinators(ctx context.Context, kv clientv3.KV, space keyspace.Space) (uint64, error) {
	if _, err := readNumber(ctx, kv, space.Schema()); err != nil {
		return 0, err
	}
	return readNumber(ctx, kv, space.Coordinators())
}

// GrowCoordinators makes the store have count coordinators. Errors: *NotMoreError; any other leaves open whether it does.
func GrowCoordinators(ctx context.Context, kv clientv3.KV, space keyspace.Space, count uint64) error {
	key := space.Coordinators()
	for {
		stored, err := readNumber(ctx, kv, key)
		if err != nil {
			return err
		}
		if count <= stored {
			return &NotMoreError{Stored: stored, Wanted: count}
		}
		grown, err := kv.Txn(ctx).
			If(clientv3.Compare(clientv3.Value(key), "=", strconv.FormatUint(stored, 10))).
			Then(clientv3.OpPut(key, strconv.FormatUint(count, 10))).
			Else(clientv3.OpGet(key, clientv3.WithKeysOnly())).
			Commit()
		if err != nil {
			return fmt.Errorf("store the number of coordinators: %w", err)
		}
		if grown.Succeeded {
			return nil
		}
	}
}
