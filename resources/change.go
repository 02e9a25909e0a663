package resources

import (
	"bytes"
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// maxAttempts bounds how often a change starts again because somebody else's came first.
const maxAttempts = 20

// update alters the document of a key. Absent is the answer if there is none; nil lets the change make one. A document that
// comes out empty where absent is nil is deleted. alter gets a document of its own, and again another if it is called again.
func update[V any](ctx context.Context, r *Resources, t *table[V], name string, absent error, alter func(Document) error) error {
	ctx, cancel := context.WithTimeout(ctx, r.options.StoreTimeout)
	defer cancel()
	key := t.prefix + name
	for range maxAttempts {
		before, revision, err := read(ctx, r.options.KV, key)
		if err != nil {
			return err
		}
		if revision == 0 && absent != nil {
			return absent
		}
		after := before.clone()
		if err := alter(after); err != nil {
			return err
		}
		done, err := replace(ctx, r, t, name, change{revision: revision, document: after, optional: absent == nil})
		if err != nil || done {
			return err
		}
	}
	return ErrContended
}

func read(ctx context.Context, kv clientv3.KV, key string) (Document, int64, error) {
	got, err := kv.Get(ctx, key)
	if err != nil {
		return nil, 0, fmt.Errorf("read %s: %w", key, err)
	}
	if len(got.Kvs) == 0 {
		return nil, 0, nil
	}
	document, err := stored(got.Kvs[0].Value)
	if err != nil {
		return nil, 0, fmt.Errorf("read %s: %w", key, err)
	}
	return document, got.Kvs[0].ModRevision, nil
}

// change is what a key is to become if its mod revision still is revision.
type change struct {
	revision int64
	document Document
	optional bool // an empty document is no document
}

// replace writes a change; done is false if somebody else's came first.
func replace[V any](ctx context.Context, r *Resources, t *table[V], name string, c change) (done bool, err error) {
	text, err := c.document.encode()
	if err != nil {
		return false, err
	}
	value, err := t.parse(text)
	if err != nil {
		return false, err
	}
	key := t.prefix + name
	op := clientv3.OpPut(key, string(text))
	if c.optional && bytes.Equal(text, []byte("{}")) {
		if c.revision == 0 {
			return true, nil
		}
		op, value = clientv3.OpDelete(key), nil
	}
	same := clientv3.Compare(clientv3.ModRevision(key), "=", c.revision)
	result, err := r.options.KV.Txn(ctx).If(same).Then(op).Commit()
	if err != nil {
		return false, fmt.Errorf("write %s: %w", key, err)
	}
	if result.Succeeded {
		t.wrote(name, value, result.Header.Revision)
	}
	return result.Succeeded, nil
}

// none holds if no key has the prefix.
func none(prefix string) clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(prefix), "=", 0).WithPrefix()
}

func exists(key string) clientv3.Cmp { return clientv3.Compare(clientv3.CreateRevision(key), ">", 0) }
