package resources

import (
	"bytes"
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// maxAttempts bounds how often a change starts again because somebody else's came first.
const maxAttempts = 20

// alteration is what is to become of a document, and what must hold for it.
type alteration struct {
	name   string
	absent error // the answer if there is none; nil: one may be made, and one that comes out empty is deleted
	// within is the key of a namespace that must exist; empty: none.
	within string
	// alter gets a document of its own, and again another if it is called again.
	alter func(Document) error
}

// update alters the document of a key.
func update[V any](ctx context.Context, r *Resources, t *table[V], a alteration) error {
	ctx, cancel := context.WithTimeout(ctx, r.options.StoreTimeout)
	defer cancel()
	key := t.prefix + a.name
	for range maxAttempts {
		before, revision, err := read(ctx, r.options.KV, key)
		if err != nil {
			return err
		}
		if revision == 0 && a.absent != nil {
			return a.absent
		}
		after := before.clone()
		if err := a.alter(after); err != nil {
			return err
		}
		done, err := replace(ctx, r, t, a.name, change{revision: revision, document: after, optional: a.absent == nil, within: a.within})
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
	optional bool   // an empty document is no document
	within   string // see alteration
}

// replace writes a change; done is false if somebody else's came first. Errors: ErrNamespaceNotFound.
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
	compares, otherwise := []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(key), "=", c.revision)}, []clientv3.Op(nil)
	if c.within != "" {
		compares, otherwise = append(compares, exists(c.within)), []clientv3.Op{clientv3.OpGet(c.within, clientv3.WithCountOnly())}
	}
	result, err := r.options.KV.Txn(ctx).If(compares...).Then(op).Else(otherwise...).Commit()
	switch {
	case err != nil:
		return false, fmt.Errorf("write %s: %w", key, err)
	case result.Succeeded:
		t.wrote(name, value, result.Header.Revision)
	case c.within != "" && result.Responses[0].GetResponseRange().Count == 0:
		return false, ErrNamespaceNotFound
	}
	return result.Succeeded, nil
}

// none holds if no key has the prefix.
func none(prefix string) clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(prefix), "=", 0).WithPrefix()
}

func exists(key string) clientv3.Cmp { return clientv3.Compare(clientv3.CreateRevision(key), ">", 0) }
