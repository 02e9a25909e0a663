package registry

import (
	"context"
	"fmt"

	"github.com/pulsar-tc/pulsar-tc/schema"
	"github.com/pulsar-tc/pulsar-tc/topicname"
)

// ForProducer returns the version, as the wire has it, under which a producer's messages are sent. s is nil for a producer
// that has no schema: its version is empty. A schema of type None, as the Go client sends for bytes, is one.
// Errors: *schema.InvalidError, *schema.IncompatibleError.
//
// Source: ServerCnx.tryAddSchema; AbstractTopic.addSchema.
func (r *Registry) ForProducer(ctx context.Context, topic topicname.Name, s *Wire, user string) ([]byte, error) {
	policy := r.policy(topic)
	if s == nil {
		return nil, r.admitBare(ctx, topic, policy)
	}
	brought := fromWire(s)
	if !policy.AllowAutoUpdate {
		number, found, err := r.Find(ctx, topic, brought)
		if err == nil && !found {
			err = &schema.IncompatibleError{Reason: "Schema not found and schema auto updating is disabled."}
		}
		return versionBytes(number), err
	}
	number, err := r.Put(ctx, topic, brought, user)
	if err != nil {
		return nil, err
	}
	return versionBytes(number), nil
}

// admitBare admits a producer without a schema.
func (r *Registry) admitBare(ctx context.Context, topic topicname.Name, policy Policy) error {
	if !policy.ValidationEnforced {
		return nil
	}
	_, found, err := r.Latest(ctx, topic)
	if err == nil && found {
		err = &schema.IncompatibleError{Reason: "Producers cannot connect or send message without a schema to topics with a schema" +
			" when SchemaValidationEnforced is enabled"}
	}
	return err
}

// ForConsumer admits a consumer's schema: it is stored if the topic has none and unused reports that the topic has neither
// producers nor consumers nor messages; else it must be able to read what the topic has. Consumers without a schema, and
// those that take the topic's, are always admitted. Errors: *schema.InvalidError, *schema.IncompatibleError.
//
// Source: PersistentTopic.addSchemaIfIdleOrCheckCompatible; SchemaRegistryServiceImpl.checkConsumerCompatibility.
func (r *Registry) ForConsumer(ctx context.Context, topic topicname.Name, s *Wire, user string, unused func() (bool, error)) error {
	brought := fromWire(s)
	if s == nil || brought.Type == schema.AutoConsume {
		return nil
	}
	_, has, err := r.Latest(ctx, topic)
	if err != nil {
		return err
	}
	if has {
		return r.checkConsumer(ctx, topic, brought)
	}
	free, err := unused()
	if err != nil {
		return err
	}
	if free {
		_, err := r.ForProducer(ctx, topic, s, user)
		return err
	}
	return r.checkConsumer(ctx, topic, brought)
}

// checkConsumer compares a consumer's schema with those of the topic.
func (r *Registry) checkConsumer(ctx context.Context, topic topicname.Name, brought schema.Schema) error {
	endCheck, err := r.beginCheck(ctx, topic, brought)
	if err != nil {
		return err
	}
	defer endCheck()
	strategy, all := r.policy(topic).Strategy.ForConsumer()
	if strategy == schema.AlwaysCompatible {
		return nil
	}
	c, err := r.compare(ctx, topic, brought, question{strategy: strategy, all: all})
	switch {
	case err != nil:
		return err
	case c.head.live == c.head.next:
		return &schema.IncompatibleError{Reason: fmt.Sprintf(
			"Failed to add schema to an active topic with empty(BYTES) schema: new schema type %s", brought.Type)}
	}
	return c.refusal
}
