package server

import (
	"context"
	"fmt"
	"strings"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/nonpersistent"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/resources"
	"github.com/pulsar-tc/pulsar-tc/schema"
	"github.com/pulsar-tc/pulsar-tc/schema/registry"
	"github.com/pulsar-tc/pulsar-tc/topic"
	"github.com/pulsar-tc/pulsar-tc/topicname"
)

// schemas shows the registry to connections.
type schemas struct {
	*registry.Registry
	topics        *topic.Topics
	nonPersistent *nonpersistent.Topics
}

// AddSchema implements conn.Schemas. Type None is no schema here. Errors: topic.ErrTopicNotFound, and those of ForProducer.
//
// Source: ServerCnx.handleGetOrCreateSchema.
func (s *schemas) AddSchema(ctx context.Context, name topicname.Name, caller cnx.Caller, wire *pulsarproto.Schema) ([]byte, error) {
	exists, err := s.exists(ctx, name)
	if err != nil {
		return nil, err
	}
	if !exists {
		return nil, fmt.Errorf("%w: %s", topic.ErrTopicNotFound, name)
	}
	if wire.GetType() == pulsarproto.Schema_None {
		wire = nil
	}
	return s.ForProducer(ctx, name, wire, caller.Role)
}

func (s *schemas) exists(ctx context.Context, name topicname.Name) (bool, error) {
	if name.Domain == topicname.NonPersistent {
		return s.nonPersistent.Exists(name), nil
	}
	return s.topics.TopicExists(ctx, name)
}

// produceNonPersistent attaches a producer whose schema the topic takes.
func (t *namedTopics) produceNonPersistent(ctx context.Context, name topicname.Name, caller cnx.Caller, cmd *pulsarproto.CommandProducer, client cnx.ProducerClient) (cnx.Producer, cnx.ProducerInfo, error) {
	producer, info, err := t.nonPersistent.Produce(ctx, name, cmd, client)
	if err != nil {
		return nil, info, err
	}
	info.SchemaVersion, err = t.schemas.ForProducer(ctx, name, cmd.GetSchema(), caller.Role)
	if err != nil {
		producer.Close()
		return nil, cnx.ProducerInfo{}, err
	}
	return producer, info, nil
}

// subscribeNonPersistent attaches a consumer whose schema the topic takes.
func (t *namedTopics) subscribeNonPersistent(ctx context.Context, name topicname.Name, caller cnx.Caller, cmd *pulsarproto.CommandSubscribe, client cnx.ConsumerClient) (cnx.Consumer, error) {
	unused := !t.nonPersistent.Exists(name)
	consumer, err := t.nonPersistent.Subscribe(ctx, name, cmd, client)
	if err != nil {
		return nil, err
	}
	err = t.schemas.ForConsumer(ctx, name, cmd.GetSchema(), caller.Role, func() (bool, error) { return unused, nil })
	if err != nil {
		consumer.Close()
		return nil, err
	}
	return consumer, nil
}

func (s *Server) schemaOptions() registry.Options {
	return registry.Options{
		KV: s.kv, Keys: s.options.space(), Creator: s.creator, Policy: s.schemaPolicy, MaxBytes: s.limits.messageSize,
		Admit: s.admitMessage, Wrote: s.store.Wrote,
	}
}

// schemaPolicy joins what holds for the schemas of a topic.
//
// Source: AbstractTopic.getSchemaCompatibilityStrategy, allowAutoUpdateSchema, getSchemaValidationEnforced.
func (s *Server) schemaPolicy(name topicname.Name) registry.Policy {
	config := s.options.Config
	if systemTopic(name) {
		return registry.Policy{Strategy: schema.Strategy(config.SystemTopicSchemaStrategy), AllowAutoUpdate: true}
	}
	policy := registry.Policy{
		Strategy:        schema.Strategy(s.schemaCompatibility(name)),
		AllowAutoUpdate: config.IsAllowAutoUpdateSchemaEnabled,
	}
	l := s.levels(name.Base())
	if allow := either(l, func(p *resources.Policies) *bool { return p.AllowAutoUpdateSchema }); allow != nil {
		policy.AllowAutoUpdate = *allow
	}
	enforced := either(l, func(p *resources.Policies) *bool { return p.SchemaValidationEnforced })
	policy.ValidationEnforced = config.IsSchemaValidationEnforced || enforced != nil && *enforced
	return policy
}

// systemTopic reports whether name is one of Pulsar's own topics.
//
// Source: BrokerService.isSystemTopic, SystemTopicNames.isEventSystemTopic.
func systemTopic(name topicname.Name) bool {
	local := name.Base().Local
	return name.NamespaceName() == topicname.SystemNamespace || local == "__change_events" ||
		strings.HasPrefix(local, "__transaction_buffer_snapshot")
}
