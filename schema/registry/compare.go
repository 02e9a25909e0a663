package registry

import (
	"context"

	"github.com/pulsar-tc/pulsar-tc/schema"
	"github.com/pulsar-tc/pulsar-tc/topicname"
)

// question is what compare is asked.
type question struct {
	strategy schema.Strategy // may the schema follow by it
	all      bool            // each version, not the last alone
	same     bool            // is there a version that is the same; then nothing behind it is looked at
}

// comparison is what a schema is to those that a topic has.
type comparison struct {
	head    head
	number  uint64 // of the version that is the same
	found   bool   // there is one
	refusal error  // why it may not follow: nil or an *schema.IncompatibleError
}

// compare looks at the versions from the last on back.
func (r *Registry) compare(ctx context.Context, topic topicname.Name, s schema.Schema, q question) (comparison, error) {
	keys := r.keys(topic)
	matcher := schema.NewMatcher(s)
	before := head{revision: -1}
	for {
		h, err := r.head(ctx, keys)
		if err != nil {
			return comparison{}, err
		}
		c, first, complete := comparison{head: h}, h.live, true
		if !q.all && !q.same && h.next > h.live {
			first = h.next - 1
		}
		for number := h.next; number > first && complete && !c.found; number-- {
			v, found, err := r.version(ctx, keys, number-1)
			if err != nil {
				return comparison{}, err
			}
			complete = found
			if !found {
				continue
			}
			if err := r.parse(ctx, func() { c.look(v, matcher, s, q, number == h.next) }); err != nil {
				return comparison{}, err
			}
		}
		switch {
		case complete:
			return c, nil
		case h == before:
			return comparison{}, missing(keys)
		}
		before = h
	}
}

func (c *comparison) look(v schema.Version, matcher *schema.Matcher, s schema.Schema, q question, last bool) {
	if q.same && matcher.Same(v.Schema) {
		c.number, c.found = v.Number, true
		return
	}
	if c.refusal == nil && (q.all || last) {
		c.refusal = schema.CheckFollows(v.Schema, s, q.strategy)
	}
}
