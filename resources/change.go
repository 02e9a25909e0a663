package resources

import (
	"bytes"
	"context"
	"fmt"
	"slices"

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
	if err := r.options.Creator.Settled(ctx); err != nil {
		return fmt.Errorf("change %s: %w", a.name, err)
	}
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
	op, commit := clientv3.OpPut(key, string(text)), r.put
	if c.optional && bytes.Equal(text, []byte("{}")) {
		if c.revision == 0 {
			return true, nil
		}
		op, commit, value = clientv3.OpDelete(key), r.commit, nil
	}
	compares, otherwise := []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(key), "=", c.revision)}, []clientv3.Op(nil)
	if c.within != "" {
		compares, otherwise = append(compares, exists(c.within)), []clientv3.Op{clientv3.OpGet(c.within, clientv3.WithCountOnly())}
	}
	result, err := commit(ctx, "write "+key, compares, []clientv3.Op{op}, otherwise)
	switch {
	case err != nil:
		return false, err
	case result.Succeeded:
		t.wrote(name, value, result.Header.Revision)
	case c.within != "" && result.Responses[0].GetResponseRange().Count == 0:
		return false, ErrNamespaceNotFound
	}
	return result.Succeeded, nil
}

// deletion is a key that is to be deleted, and what must hold for that.
type deletion struct {
	key    string
	absent error          // the answer if there is none
	needs  []clientv3.Cmp // what else must hold
	needed error          // the answer if that does not
	with   []clientv3.Op  // what else is done
}

// remove deletes a key as it was found, so that a deletion that comes late deletes nothing that was written since. It returns the
// revision of the deletion.
func (r *Resources) remove(ctx context.Context, d deletion) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, r.options.StoreTimeout)
	defer cancel()
	if err := r.options.Creator.Settled(ctx); err != nil {
		return 0, fmt.Errorf("delete %s: %w", d.key, err)
	}
	found := int64(-1) // of no key: the first attempt looks
	for range maxAttempts {
		result, err := r.commit(ctx, "delete "+d.key,
			append(slices.Clip(d.needs), clientv3.Compare(clientv3.ModRevision(d.key), "=", found)),
			append(slices.Clip(d.with), clientv3.OpDelete(d.key)),
			[]clientv3.Op{clientv3.OpGet(d.key, clientv3.WithKeysOnly())})
		if err != nil {
			return 0, err
		}
		if result.Succeeded {
			return result.Header.Revision, nil
		}
		kvs := result.Responses[0].GetResponseRange().Kvs
		switch {
		case len(kvs) == 0:
			return 0, d.absent
		case kvs[0].ModRevision == found:
			return 0, d.needed
		}
		found = kvs[0].ModRevision
	}
	return 0, ErrContended
}

// put commits a transaction that puts a document. Behind an error the document is stored, or is not and will not be.
func (r *Resources) put(ctx context.Context, what string, compares []clientv3.Cmp, then, otherwise []clientv3.Op) (*clientv3.TxnResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, r.options.StoreTimeout)
	defer cancel()
	result, err := r.options.Creator.Txn(ctx, compares, then, otherwise)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return result, nil
}

// commit commits a transaction that does no harm if it comes late.
func (r *Resources) commit(ctx context.Context, what string, compares []clientv3.Cmp, then, otherwise []clientv3.Op) (*clientv3.TxnResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, r.options.StoreTimeout)
	defer cancel()
	result, err := r.options.KV.Txn(ctx).If(compares...).Then(then...).Else(otherwise...).Commit()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return result, nil
}

// none holds if no key has the prefix.
func none(prefix string) clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(prefix), "=", 0).WithPrefix()
}

func exists(key string) clientv3.Cmp { return clientv3.Compare(clientv3.CreateRevision(key), ">", 0) }
