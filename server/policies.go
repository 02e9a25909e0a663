package server

import (
	"cmp"
	"context"
	"time"

	"github.com/pulsar-tc/pulsar-tc/resources"
	"github.com/pulsar-tc/pulsar-tc/topic"
	"github.com/pulsar-tc/pulsar-tc/topicname"
)

func (s *Server) namespaceExists(ctx context.Context, namespace string) (bool, error) {
	found, err := s.resources.FindNamespace(ctx, namespace)
	return found != nil, err
}

var noPolicies = &resources.Policies{}

// levels are the policies of a topic itself and of its namespace.
type levels struct{ topic, namespace *resources.Policies }

func (s *Server) levels(name topicname.Name) levels {
	return levels{
		topic:     cmp.Or(s.resources.Topic(name), noPolicies),
		namespace: cmp.Or(s.resources.Namespace(name.NamespaceName()), noPolicies),
	}
}

// either returns what the topic says, else the namespace, else nil.
func either[V any](l levels, field func(*resources.Policies) *V) *V {
	return cmp.Or(field(l.topic), field(l.namespace))
}

// number is either of a number, else otherwise.
func number[N int | int64](l levels, field func(*resources.Policies) *resources.Number, otherwise N) N {
	if n := either(l, field); n != nil {
		return N(*n)
	}
	return otherwise
}

// topicPolicies joins what holds for a topic: set for itself, else for its namespace, else for the broker. Pulsar's own topics
// keep what the broker has.
//
// Source: PersistentTopic.updateTopicPolicyByNamespacePolicy, HierarchyTopicPolicies.
func (s *Server) topicPolicies(name topicname.Name) topic.Policies {
	joined := s.brokerPolicies
	if name.NamespaceName() == topicname.SystemNamespace {
		return joined
	}
	l := s.levels(name)
	if enabled := either(l, func(p *resources.Policies) *bool { return p.Deduplication }); enabled != nil {
		joined.Deduplication = *enabled
	}
	joined.MessageTTL = seconds(number(l, func(p *resources.Policies) *resources.Number { return p.MessageTTLSeconds }, int64(joined.MessageTTL/time.Second)))
	if r := either(l, func(p *resources.Policies) *resources.Retention { return p.Retention }); r != nil {
		joined.RetentionTime, joined.RetentionBytes = minutes(int64(r.Minutes)), megabytes(int64(r.Megabytes))
	}
	l.backlog(&joined)
	if m := either(l, func(p *resources.Policies) *resources.Number { return p.SubscriptionExpirationMin }); m != nil {
		joined.SubscriptionExpiration = minutes(int64(*m))
	}
	if i := either(l, func(p *resources.Policies) *resources.InactiveTopics { return p.InactiveTopics }); i != nil {
		joined.DeleteInactive, joined.InactiveAfter = i.Delete, seconds(int64(i.DurationSeconds))
		joined.DeleteCaughtUp = i.Mode == deleteCaughtUp
	}
	if d := either(l, func(p *resources.Policies) *resources.DelayedDelivery { return p.DelayedDelivery }); d != nil {
		joined.DelayedDelivery = d.Active
	}
	joined.MaxProducers = number(l, func(p *resources.Policies) *resources.Number { return p.MaxProducers }, joined.MaxProducers)
	joined.MaxConsumers = number(l, func(p *resources.Policies) *resources.Number { return p.MaxConsumers }, joined.MaxConsumers)
	joined.MaxSubscriptions = number(l, func(p *resources.Policies) *resources.Number { return p.MaxSubscriptions }, joined.MaxSubscriptions)
	joined.MaxConsumersPerSubscription = number(l, func(p *resources.Policies) *resources.Number { return p.MaxConsumersPerSubscription },
		joined.MaxConsumersPerSubscription)
	joined.CompactionThreshold = number(l, func(p *resources.Policies) *resources.Number { return p.CompactionThreshold }, joined.CompactionThreshold)
	return joined
}

// backlog joins the two quotas. A topic has one policy for both here; the one for the size wins, as Pulsar checks it first.
func (l levels) backlog(joined *topic.Policies) {
	quota := func(kind string) *resources.BacklogQuota {
		for _, level := range []*resources.Policies{l.topic, l.namespace} {
			if q, set := level.BacklogQuotas[kind]; set {
				return &q
			}
		}
		return nil
	}
	if age := quota(resources.BacklogAge); age != nil && age.LimitTime != nil {
		joined.BacklogAge, joined.BacklogPolicy = seconds(int64(*age.LimitTime)), backlogPolicies[age.Policy]
	}
	if size := quota(resources.BacklogSize); size != nil {
		joined.BacklogBytes, joined.BacklogPolicy = size.Bytes(), backlogPolicies[size.Policy]
	}
}

// backlogPolicies are the words that policies are stored with.
var backlogPolicies = map[string]topic.BacklogPolicy{
	"producer_request_hold":     topic.ProducerRequestHold,
	"producer_exception":        topic.ProducerException,
	"consumer_backlog_eviction": topic.ConsumerBacklogEviction,
}

// mostUnits keeps durations and sizes of stored numbers from overflowing; it stands for a hundred years and more.
const mostUnits = 1<<31 - 1

func seconds(n int64) time.Duration { return time.Duration(min(n, mostUnits)) * time.Second }

// minutes keeps -1, which is without limit.
func minutes(n int64) time.Duration {
	if n < 0 {
		return -1
	}
	return time.Duration(min(n, mostUnits/60)) * time.Minute
}

// megabytes keeps -1, which is without limit.
func megabytes(n int64) int64 {
	if n < 0 {
		return -1
	}
	return min(n, mostUnits) << 20
}

// autoCreation joins what the first use of a name makes: subscriptions may be overridden for a topic and for a namespace, topics
// for a namespace.
//
// Source: BrokerService.isAllowAutoTopicCreationAsync, isAllowAutoSubscriptionCreationAsync.
func (s *Server) autoCreation(name topicname.Name) topic.AutoCreation {
	options := s.options.topics(s.limits)
	joined := topic.AutoCreation{
		Topics: options.AllowAutoTopicCreation, Partitions: options.AutoPartitions, Subscriptions: options.AllowAutoSubscriptionCreation,
	}
	l := s.levels(name)
	if override := l.namespace.AutoTopicCreation; override != nil {
		joined.Topics, joined.Partitions = override.Allow, 0
		if override.Type == "partitioned" && override.Partitions != nil {
			joined.Partitions = int(min(*override.Partitions, mostUnits))
		}
	}
	override := either(l, func(p *resources.Policies) *resources.AutoSubscriptionCreation { return p.AutoSubscriptionCreation })
	if override != nil {
		joined.Subscriptions = override.Allow
	}
	return joined
}

// schemaCompatibility is the strategy that holds for a topic.
//
// Source: AbstractTopic.getSchemaCompatibilityStrategy; UNDEFINED falls through to the next level.
func (s *Server) schemaCompatibility(name topicname.Name) string {
	l := s.levels(name)
	for _, strategy := range []string{l.topic.SchemaCompatibilityStrategy, l.namespace.SchemaCompatibilityStrategy} {
		if strategy != "" && strategy != undefinedStrategy {
			return strategy
		}
	}
	return s.options.Config.SchemaCompatibilityStrategy
}

const undefinedStrategy = "UNDEFINED"
