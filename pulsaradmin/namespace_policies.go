package pulsaradmin

import (
	"net/http"

	"github.com/pulsar-tc/pulsar-tc/resources"
)

// Members that several tables name.
const (
	compatibilityMember = "schema_compatibility_strategy"
	replicationMember   = "replication_clusters"
)

var offloadPolicies = policy{path: "offloadPolicies", member: "offload_policies", kind: free}

// namespacePolicies are those with a path of their own, as Pulsar answers them. Source: admin/v2/Namespaces.java.
// mostPartitions tells how many a topic may have.
func namespacePolicies(mostPartitions func() int) []policy {
	return []policy{
		{path: "messageTTL", member: "message_ttl_in_seconds", kind: whole(0, "Invalid value for message TTL"), effect: true},
		{path: "retention", member: "retention_policies", kind: object(checkRetention), effect: true},
		{path: "deduplication", member: "deduplicationEnabled", kind: truth, effect: true},
		{path: "deduplicationSnapshotInterval", member: "deduplicationSnapshotIntervalSeconds", kind: whole(0, "")},
		{path: "autoTopicCreation", member: "autoTopicCreationOverride", kind: object(checkAutoTopicCreation(mostPartitions)), effect: true},
		{path: "autoSubscriptionCreation", member: "autoSubscriptionCreationOverride", kind: object(anyOf[resources.AutoSubscriptionCreation]), effect: true},
		{path: "schemaCompatibilityStrategy", member: compatibilityMember, kind: word(strategies...), method: http.MethodPut, unset: "UNDEFINED", effect: true},
		{path: "schemaAutoUpdateCompatibilityStrategy", member: "schema_auto_update_compatibility_strategy", method: http.MethodPut, unset: "Full",
			kind: word("AutoUpdateDisabled", "Backward", "Forward", "Full", "AlwaysCompatible", "BackwardTransitive", "ForwardTransitive", "FullTransitive")},
		{path: "schemaValidationEnforced", member: "schema_validation_enforced", kind: truth, unset: false, effect: true},
		{path: "isAllowAutoUpdateSchema", member: "is_allow_auto_update_schema", kind: truth, unset: true, effect: true},
		{path: "inactiveTopicPolicies", member: "inactive_topic_policies", kind: object(checkInactiveTopics), effect: true},
		{path: "subscriptionExpirationTime", member: "subscription_expiration_time_minutes", kind: whole(0, "Invalid value for subscription expiration time"), effect: true},
		{path: "delayedDelivery", member: "delayed_delivery_policies", kind: object(checkDelayedDelivery), effect: true},
		{path: "maxProducersPerTopic", member: "max_producers_per_topic", kind: whole(0, "maxProducersPerTopic must be 0 or more"), effect: true},
		{path: "maxConsumersPerTopic", member: "max_consumers_per_topic", kind: whole(0, "maxConsumersPerTopic must be 0 or more"), effect: true},
		{path: "maxConsumersPerSubscription", member: "max_consumers_per_subscription", kind: whole(0, "maxConsumersPerSubscription must be 0 or more"), effect: true},
		{path: "maxSubscriptionsPerTopic", member: "max_subscriptions_per_topic", kind: whole(0, "maxSubscriptionsPerTopic must be 0 or more"), effect: true},
		{path: "maxTopicsPerNamespace", member: "max_topics_per_namespace", kind: whole(0, "maxTopicsPerNamespace must be 0 or more"), unset: 0},
		{path: "maxUnackedMessagesPerConsumer", member: "max_unacked_messages_per_consumer", kind: whole(0, "maxUnackedMessagesPerConsumer must be 0 or more")},
		{path: "maxUnackedMessagesPerSubscription", member: "max_unacked_messages_per_subscription", kind: whole(0, "maxUnackedMessagesPerSubscription must be 0 or more")},
		{path: "compactionThreshold", member: "compaction_threshold", kind: whole(0, "compactionThreshold must be 0 or more"), method: http.MethodPut, effect: true},
		{path: "offloadThreshold", member: "offload_threshold", kind: whole(-1, ""), method: http.MethodPut, unset: -1},
		{path: "offloadThresholdInSeconds", member: "offload_threshold_in_seconds", kind: whole(-1, "Invalid value for offloadThresholdInSecond"), method: http.MethodPut, unset: -1},
		{path: "offloadDeletionLagMs", member: "offload_deletion_lag_ms", kind: whole(0, ""), method: http.MethodPut},
		offloadPolicies,
		{path: "persistence", member: "persistence", kind: free},
		{path: "persistence/bookieAffinity", member: "bookie_affinity_group", kind: free},
		{path: "antiAffinity", member: "antiAffinityGroup", kind: quotedWord},
		{path: "encryptionRequired", member: "encryption_required", kind: truth, unset: false},
		{path: "subscriptionAuthMode", member: "subscription_auth_mode", kind: word("None", "Prefix"), unset: "None"},
		{path: "replicatorDispatchRate", member: "replicatorDispatchRate", kind: free},
		{path: "subscriptionDispatchRate", member: "subscriptionDispatchRate", kind: free},
		{path: "subscribeRate", member: "clusterSubscribeRate", kind: free},
		{path: "dispatchRate", member: "topicDispatchRate", kind: free},
		{path: "publishRate", member: "publishMaxMessageRate", kind: free},
	}
}

// quotedWord is a name in quotes or without them.
func quotedWord(text []byte) (any, error) { return unquoted(text), nil }

func (h *handler) routeNamespacePolicy(p policy) {
	h.route("GET"+namespacePath+"/"+p.path, h.getNamespacePolicy(p))
	h.route(p.setMethod()+namespacePath+"/"+p.path, h.setNamespacePolicy(p))
	h.route("DELETE"+namespacePath+"/"+p.path, h.deleteNamespacePolicy(p))
}

// answer is what GET says of a policy of a document.
func (p *policy) answer(d resources.Document) any {
	if value, set := d[p.member]; set {
		return value
	}
	return p.unset
}

func (h *handler) getNamespacePolicy(p policy) func(*call) (any, error) {
	return func(c *call) (any, error) {
		found, err := c.policiesOf()
		if err != nil {
			return nil, err
		}
		return p.answer(found.Document), nil
	}
}

func (h *handler) setNamespacePolicy(p policy) func(*call) (any, error) {
	return func(c *call) (any, error) {
		if _, err := c.policiesOf(); err != nil {
			return nil, err
		}
		value, err := p.parse(c)
		if err != nil {
			return nil, err
		}
		return nil, h.changeNamespace(c, func(d resources.Document) error { return d.Set(p.member, value) })
	}
}

func (h *handler) deleteNamespacePolicy(p policy) func(*call) (any, error) {
	return func(c *call) (any, error) {
		if _, err := c.policiesOf(); err != nil {
			return nil, err
		}
		return nil, h.changeNamespace(c, func(d resources.Document) error { delete(d, p.member); return nil })
	}
}

// changeNamespace alters the policies of the namespace in the path, which has been checked.
func (h *handler) changeNamespace(c *call, alter func(resources.Document) error) error {
	return h.Resources.UpdateNamespace(c.Context(), c.PathValue("tenant")+"/"+c.PathValue("namespace"), alter)
}
