package pulsaradmin

import (
	"net/http"

	"github.com/pulsar-tc/pulsar-tc/resources"
	"github.com/pulsar-tc/pulsar-tc/topicname"
)

// topicPolicies are those of one topic. They are stored under the names that they have for a namespace.
// Source: admin/v2/PersistentTopics.java.
var topicPolicies = []policy{
	{path: "messageTTL", member: "message_ttl_in_seconds", kind: whole(0, "Invalid value for message TTL"), query: "messageTTL", effect: true},
	{path: "retention", member: "retention_policies", kind: object(checkRetention), effect: true},
	{path: "deduplicationEnabled", member: "deduplicationEnabled", kind: truth, effect: true},
	{path: "deduplicationSnapshotInterval", member: "deduplicationSnapshotIntervalSeconds", kind: whole(0, "")},
	{path: "inactiveTopicPolicies", member: "inactive_topic_policies", kind: object(checkInactiveTopics), effect: true},
	{path: "delayedDelivery", member: "delayed_delivery_policies", kind: object(checkDelayedDelivery), effect: true},
	{path: "maxProducers", member: "max_producers_per_topic", kind: whole(0, "maxProducers must be 0 or more"), effect: true},
	{path: "maxConsumers", member: "max_consumers_per_topic", kind: whole(0, "maxConsumers must be 0 or more"), effect: true},
	{path: "maxConsumersPerSubscription", member: "max_consumers_per_subscription", kind: whole(0, "Invalid value for maxConsumersPerSubscription"), effect: true},
	{path: "maxSubscriptionsPerTopic", member: "max_subscriptions_per_topic", kind: whole(0, "maxSubscriptionsPerTopic must be 0 or more"), effect: true},
	{path: "compactionThreshold", member: "compaction_threshold", kind: whole(0, "Invalid value for compactionThreshold"), effect: true},
	{path: "schemaCompatibilityStrategy", member: compatibilityMember, kind: word(strategies...), method: http.MethodPut, effect: true},
	{path: "schemaValidationEnforced", member: "schema_validation_enforced", kind: truth, effect: true},
	{path: "autoSubscriptionCreation", member: "autoSubscriptionCreationOverride", kind: object(anyOf[resources.AutoSubscriptionCreation]), effect: true},
	{path: "maxUnackedMessagesOnConsumer", member: "max_unacked_messages_per_consumer", kind: whole(0, "maxUnackedNum must be 0 or more")},
	{path: "maxUnackedMessagesOnSubscription", member: "max_unacked_messages_per_subscription", kind: whole(0, "maxUnackedNum must be 0 or more")},
	{path: "maxMessageSize", member: "max_message_size", kind: whole(0, "maxMessageSize must be 0 or more")},
	{path: "persistence", member: "persistence", kind: free},
	offloadPolicies,
	{path: "replicatorDispatchRate", member: "replicatorDispatchRate", kind: free},
	{path: "subscriptionDispatchRate", member: "subscriptionDispatchRate", kind: free},
	{path: "subscribeRate", member: "clusterSubscribeRate", kind: free},
	{path: "dispatchRate", member: "topicDispatchRate", kind: free},
	{path: "publishRate", member: "publishMaxMessageRate", kind: free},
}

func (h *handler) routeTopicPolicies(domain string) {
	replication := policy{path: "replication", member: replicationMember, kind: h.clusterNames}
	for _, p := range append(topicPolicies[:len(topicPolicies):len(topicPolicies)], replication) {
		path := topicPath(domain) + "/" + p.path
		h.route("GET "+path, inTopic(domain, administer, h.getTopicPolicy(p)))
		h.route(p.setMethod()+" "+path, inTopic(domain, administer, h.setTopicPolicy(p)))
		h.route("DELETE "+path, inTopic(domain, administer, h.deleteTopicPolicy(p)))
	}
	h.routeTopicBacklogQuotas(domain)
}

// getTopicPolicy answers what is set for the topic; with applied=true what holds: else for its namespace, else for the broker.
func (h *handler) getTopicPolicy(p policy) func(*call, topicname.Name) (any, error) {
	return func(c *call, name topicname.Name) (any, error) {
		namespace, err := h.namespace(c.Context(), name.NamespaceName())
		if err != nil {
			return nil, err
		}
		own := h.Resources.Topic(name)
		if !c.flag("applied") {
			if own == nil {
				return nil, nil
			}
			return p.answer(own.Document), nil
		}
		for _, level := range []*resources.Policies{own, namespace} {
			if level == nil {
				continue
			}
			if value, set := level.Document[p.member]; set && string(value) != undefined {
				return value, nil
			}
		}
		return h.BrokerPolicies[p.member], nil
	}
}

// undefined is a stored schema compatibility strategy that says nothing.
const undefined = `"UNDEFINED"`

func (h *handler) setTopicPolicy(p policy) func(*call, topicname.Name) (any, error) {
	return func(c *call, name topicname.Name) (any, error) {
		value, err := p.parse(c)
		if err != nil {
			return nil, err
		}
		return nil, h.Resources.UpdateTopic(c.Context(), name, func(d resources.Document) error { return d.Set(p.member, value) })
	}
}

func (h *handler) deleteTopicPolicy(p policy) func(*call, topicname.Name) (any, error) {
	return func(c *call, name topicname.Name) (any, error) {
		return nil, h.Resources.UpdateTopic(c.Context(), name, func(d resources.Document) error { delete(d, p.member); return nil })
	}
}
