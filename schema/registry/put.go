package registry

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/schema"
	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// Put returns the version of s, which it stores if the topic does not have it and the topic's strategy admits it. The user is
// the role that brings it. Errors: *schema.InvalidError, *schema.IncompatibleError.
//
// Source: SchemaRegistryServiceImpl.putSchemaIfAbsent.
func (r *Registry) Put(ctx context.Context, topic topicname.Name, s schema.Schema, user string) (uint64, error) {
	if v, found, err := r.Latest(ctx, topic); err != nil || found && identical(v.Schema, s) {
		return v.Number, err
	}
	endCheck, err := r.beginCheck(ctx, topic, s)
	if err != nil {
		return 0, err
	}
	defer endCheck()
	strategy := r.policy(topic).Strategy
	for {
		c, err := r.compare(ctx, topic, s, question{strategy: strategy, all: strategy.Transitive(), same: true})
		if err != nil || c.found {
			return c.number, err
		}
		if c.refusal != nil {
			return 0, c.refusal
		}
		if stored, err := r.append(ctx, topic, s, user, c.head); err != nil || stored {
			return c.head.next, err
		}
	}
}

// append stores s as the next version, if h is still the head.
func (r *Registry) append(ctx context.Context, topic topicname.Name, s schema.Schema, user string, h head) (stored bool, err error) {
	if h.next-h.live >= r.options.MaxVersions {
		return false, &schema.IncompatibleError{Reason: fmt.Sprintf("the topic has %d schemas, and no more are stored", h.next-h.live)}
	}
	if err := r.options.Admit(); err != nil {
		return false, err
	}
	keys, after := r.keys(topic), head{next: h.next + 1, live: h.live}
	value := schema.Encode(schema.Version{Schema: s, Created: r.options.Now(), User: user})
	stored, err = r.change(ctx, keys, h,
		clientv3.OpPut(keys.Version(h.next), string(value)), clientv3.OpPut(keys.Head(), after.encode()))
	r.options.Wrote(len(value) + 2*len(keys.Head()))
	return stored, err
}

// Delete removes the schemas of a topic and returns the number that stands for the deletion; later versions have higher ones.
// With force numbers start again from 0, and the answer says nothing.
//
// Source: SchemaRegistryServiceImpl.deleteSchema.
func (r *Registry) Delete(ctx context.Context, topic topicname.Name, force bool) (uint64, error) {
	keys := r.keys(topic)
	if err := r.options.Creator.Settled(ctx); err != nil {
		return 0, fmt.Errorf("%w: delete %s: %w", txn.ErrNotReady, keys.Head(), err)
	}
	for {
		h, err := r.head(ctx, keys)
		if err != nil {
			return 0, err
		}
		after := head{next: h.next + 1, live: h.next + 1}
		ops := []clientv3.Op{
			clientv3.OpDelete(keys.Version(0), clientv3.WithRange(keys.Version(after.next))), clientv3.OpPut(keys.Head(), after.encode()),
		}
		if force {
			ops = []clientv3.Op{clientv3.OpDelete(keys.Prefix(), clientv3.WithPrefix())}
		}
		if deleted, err := r.change(ctx, keys, h, ops...); err != nil || deleted {
			return h.next, err
		}
	}
}
