package topic

import (
	"context"
	"errors"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topicname"
)

// Schemas keeps the schemas of topics. Its refusals are package schema's errors.
type Schemas interface {
	// ForProducer returns the version under which a producer's messages are sent, and stores s if it is new. s is nil for a
	// producer without a schema. user is its role.
	ForProducer(ctx context.Context, topic topicname.Name, s *pulsarproto.Schema, user string) (version []byte, err error)
	// ForConsumer admits a consumer's schema. unused reports that the topic has no producers, consumers and messages.
	ForConsumer(ctx context.Context, topic topicname.Name, s *pulsarproto.Schema, user string, unused func() (bool, error)) error
}

// producerSchema returns the version of a producer's schema.
func (ts *Topics) producerSchema(ctx context.Context, name topicname.Name, caller cnx.Caller, s *pulsarproto.Schema) ([]byte, error) {
	if ts.options.Schemas == nil {
		return nil, nil
	}
	if s != nil { // a topic that cannot be made gets no schema either
		if _, err := ts.load(ctx, name, true); err != nil {
			return nil, err
		}
	}
	return ts.options.Schemas.ForProducer(ctx, name, s, caller.Role)
}

// consumerSchema admits a consumer's schema.
func (ts *Topics) consumerSchema(ctx context.Context, name topicname.Name, caller cnx.Caller, cmd *pulsarproto.CommandSubscribe) error {
	if ts.options.Schemas == nil || cmd.GetSchema() == nil {
		return nil
	}
	if _, err := ts.load(ctx, name, cmd.GetForceTopicCreation()); err != nil {
		return err
	}
	return ts.options.Schemas.ForConsumer(ctx, name, cmd.GetSchema(), caller.Role, func() (bool, error) {
		return ts.unused(ctx, name)
	})
}

// unused reports that a topic has no producers, no consumers but those that take the topic's schema, and no messages.
//
// Source: PersistentTopic.addSchemaIfIdleOrCheckCompatible.
func (ts *Topics) unused(ctx context.Context, name topicname.Name) (bool, error) {
	for try := 1; ; try++ {
		t, err := ts.load(ctx, name, false)
		if err != nil {
			return false, err
		}
		unused, err := t.isUnused(ctx)
		if !errors.Is(err, errClosing) || try == attachTries {
			return unused, err
		}
	}
}

func (t *Topic) isUnused(ctx context.Context) (unused bool, err error) {
	done := make(chan struct{})
	t.ask(func(alive bool) {
		defer close(done)
		if !alive {
			err = errClosing
			return
		}
		unused = len(t.producers) == 0 && !t.first.Before(t.behindLast()) && !t.hasTypedConsumers()
	})
	select {
	case <-done:
		return unused, err
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}

func (t *Topic) hasTypedConsumers() bool {
	for _, s := range t.subscriptions {
		for _, c := range s.consumers {
			if !c.autoConsume {
				return true
			}
		}
	}
	return false
}
