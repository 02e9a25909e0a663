package server

import (
	"context"
	"strings"

	"github.com/pulsar-tc/pulsar-tc/cnx"
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
	topics *topic.Topics
}

// AddSchema implements conn.Schemas.
func (s *schemas) AddSchema(ctx context.Context, name topicname.Name, caller cnx.Caller, wire *pulsarproto.Schema) ([]byte, error) {
	return s.topics.AddSchema(ctx, name, caller, wire)
}

func (s *Server) schemaOptions() registry.Options {
	return registry.Options{
		KV: s.kv, Keys: s.options.space(), Policy: s.schemaPolicy, MaxBytes: s.options.Config.MaxMessageSize,
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
