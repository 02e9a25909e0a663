package registry

import (
	"bytes"
	"context"
	"fmt"

	"github.com/pulsar-tc/pulsar-tc/keyspace"
	"github.com/pulsar-tc/pulsar-tc/schema"
	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// Registry is the schemas of all topics. A topic may be named by one of its partitions. Errors of its methods beside those
// of ctx and of package schema: txn.ErrNotReady where the store did not answer, *txn.CorruptError.
type Registry struct {
	options Options
	checks  chan struct{} // a token for each schema that is being parsed, or compared with one other
	turns   turns
	reads   chan struct{} // a token for each Latest
}

// maxChecks bounds the schemas that are parsed at once: a definition takes many times its size then.
const maxChecks = 2

// maxReads bounds the calls of Latest that read at once: many clients may ask for one large schema.
const maxReads = 8

// New returns the registry of what is stored under options.Keys.
func New(options Options) *Registry {
	return &Registry{
		options: options.withDefaults(), checks: make(chan struct{}, maxChecks), turns: turns{byTopic: make(map[keyspace.Schemas]*turn)},
		reads: make(chan struct{}, maxReads),
	}
}

func (r *Registry) keys(topic topicname.Name) keyspace.Schemas {
	return r.options.Keys.TopicSchemas(topic.Tenant, topic.Namespace, topic.Base().Local)
}

// Latest returns the last version; found is false if the topic has none.
func (r *Registry) Latest(ctx context.Context, topic topicname.Name) (v schema.Version, found bool, err error) {
	select {
	case r.reads <- struct{}{}:
		defer func() { <-r.reads }()
	case <-ctx.Done():
		return v, false, fmt.Errorf("read a schema: %w", context.Cause(ctx))
	}
	keys := r.keys(topic)
	before := head{revision: -1}
	for {
		h, err := r.head(ctx, keys)
		if err != nil || h.live == h.next {
			return v, false, err
		}
		if v, found, err = r.version(ctx, keys, h.next-1); err != nil || found {
			return v, found, err
		}
		if h == before {
			return v, false, missing(keys)
		}
		before = h
	}
}

// At returns a version; found is false if it never was or is deleted.
func (r *Registry) At(ctx context.Context, topic topicname.Name, number uint64) (v schema.Version, found bool, err error) {
	return r.version(ctx, r.keys(topic), number)
}

// maxAllBytes bounds what All returns.
const maxAllBytes = 16 << 20

// All returns the versions in order. Errors: txn.ErrTooManyRequests if they have more than 16 MiB with their
// properties.
func (r *Registry) All(ctx context.Context, topic topicname.Name) ([]schema.Version, error) {
	var all []schema.Version
	keys, bytes := r.keys(topic), 0
	h, err := r.head(ctx, keys)
	if err != nil {
		return nil, err
	}
	for number := h.live; number < h.next; number++ {
		v, found, err := r.version(ctx, keys, number)
		if err != nil {
			return nil, err
		}
		if !found {
			continue
		}
		if bytes += len(schema.Encode(v)); bytes > maxAllBytes {
			return nil, fmt.Errorf("%w: the schemas of %s have more than %d bytes", txn.ErrTooManyRequests, topic, maxAllBytes)
		}
		all = append(all, v)
	}
	return all, nil
}

// Find returns the number of the version that is the same as s. Errors: *schema.InvalidError.
func (r *Registry) Find(ctx context.Context, topic topicname.Name, s schema.Schema) (number uint64, found bool, err error) {
	if v, found, err := r.Latest(ctx, topic); err != nil || found && identical(v.Schema, s) {
		return v.Number, err == nil, err
	}
	endCheck, err := r.beginCheck(ctx, topic, s)
	if err != nil {
		return 0, false, err
	}
	defer endCheck()
	c, err := r.compare(ctx, topic, s, question{strategy: schema.AlwaysCompatible, same: true})
	return c.number, c.found, err
}

// CheckCompatibility reports whether Put would store s, and by which strategy. Errors: *schema.InvalidError,
// *schema.IncompatibleError.
func (r *Registry) CheckCompatibility(ctx context.Context, topic topicname.Name, s schema.Schema) (schema.Strategy, error) {
	strategy := r.policy(topic).Strategy
	endCheck, err := r.beginCheck(ctx, topic, s)
	if err != nil {
		return strategy, err
	}
	defer endCheck()
	c, err := r.compare(ctx, topic, s, question{strategy: strategy, all: strategy.Transitive(), same: true})
	if err != nil || c.found {
		return strategy, err
	}
	return strategy, c.refusal
}

func (r *Registry) policy(topic topicname.Name) Policy {
	p := r.options.Policy(topic)
	if p.Strategy == schema.Undefined || p.Strategy == "" {
		p.Strategy = schema.Full
	}
	return p
}

// identical reports whether the bytes of a schema that a topic has and of one that is brought are the same. Nothing is parsed.
func identical(a, b schema.Schema) bool { return a.Type == b.Type && bytes.Equal(a.Data, b.Data) }

// beginCheck validates s and gives the caller the topic's turn to compare, until endCheck. Errors: *schema.InvalidError.
func (r *Registry) beginCheck(ctx context.Context, topic topicname.Name, s schema.Schema) (endCheck func(), err error) {
	if size := len(schema.Encode(schema.Version{Schema: s})); size > r.options.MaxBytes {
		return nil, &schema.InvalidError{Reason: fmt.Sprintf("the schema has %d bytes with its properties, more than %d", size, r.options.MaxBytes)}
	}
	giveBack, err := r.turns.take(ctx, r.keys(topic))
	if err != nil {
		return nil, err
	}
	var invalid error
	if err = r.parse(ctx, func() { invalid = schema.Validate(s) }); err == nil {
		err = invalid
	}
	if err != nil {
		giveBack()
		return nil, err
	}
	return giveBack, nil
}

// parse runs check with one of the tokens of all topics.
func (r *Registry) parse(ctx context.Context, check func()) error {
	select {
	case r.checks <- struct{}{}:
		defer func() { <-r.checks }()
		check()
		return nil
	case <-ctx.Done():
		return fmt.Errorf("check a schema: %w", context.Cause(ctx))
	}
}
