package resources

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Policies are those of a namespace or of one topic, as far as they have an effect here. Nil: not set at this level.
//
// Source of the names: Policies.java. Units are in the names, or minutes for subscription_expiration_time_minutes.
type Policies struct {
	Auth                        AuthPolicies              `json:"auth_policies"`
	ReplicationClusters         []string                  `json:"replication_clusters"`
	BacklogQuotas               map[string]BacklogQuota   `json:"backlog_quota_map"` // by BacklogSize and BacklogAge
	Retention                   *Retention                `json:"retention_policies"`
	MessageTTLSeconds           *Number                   `json:"message_ttl_in_seconds"`
	Deduplication               *bool                     `json:"deduplicationEnabled"`
	SubscriptionExpirationMin   *Number                   `json:"subscription_expiration_time_minutes"`
	InactiveTopics              *InactiveTopics           `json:"inactive_topic_policies"`
	DelayedDelivery             *DelayedDelivery          `json:"delayed_delivery_policies"`
	MaxProducers                *Number                   `json:"max_producers_per_topic"`
	MaxConsumers                *Number                   `json:"max_consumers_per_topic"`
	MaxConsumersPerSubscription *Number                   `json:"max_consumers_per_subscription"`
	MaxSubscriptions            *Number                   `json:"max_subscriptions_per_topic"`
	CompactionThreshold         *Number                   `json:"compaction_threshold"`
	SchemaCompatibilityStrategy string                    `json:"schema_compatibility_strategy"`
	SchemaValidationEnforced    *bool                     `json:"schema_validation_enforced"`
	AllowAutoUpdateSchema       *bool                     `json:"is_allow_auto_update_schema"`
	AutoTopicCreation           *AutoTopicCreation        `json:"autoTopicCreationOverride"`
	AutoSubscriptionCreation    *AutoSubscriptionCreation `json:"autoSubscriptionCreationOverride"`
	// Document is the whole stored object.
	Document Document `json:"-"`
}

// AuthPolicies say which roles may do what. Actions are produce, consume, functions, sources, sinks and packages.
type AuthPolicies struct {
	Namespace     map[string][]string            `json:"namespace_auth"`          // by role
	Topics        map[string]map[string][]string `json:"destination_auth"`        // by topic and role
	Subscriptions map[string][]string            `json:"subscription_auth_roles"` // roles by subscription
}

// The types of backlog quotas. Source: BacklogQuota.BacklogQuotaType.
const (
	BacklogSize = "destination_storage"
	BacklogAge  = "message_age"
)

// BacklogQuota bounds a backlog. Old clients say limit for limitSize.
type BacklogQuota struct {
	Limit     *Number `json:"limit,omitempty"`
	LimitSize *Number `json:"limitSize,omitempty"` // bytes
	LimitTime *Number `json:"limitTime,omitempty"` // s
	Policy    string  `json:"policy"`
}

// Bytes is the bound on the size; -1: none.
func (q *BacklogQuota) Bytes() int64 {
	for _, limit := range []*Number{q.LimitSize, q.Limit} {
		if limit != nil && *limit != 0 {
			return int64(*limit)
		}
	}
	return -1
}

// Retention keeps acknowledged messages.
type Retention struct {
	Minutes   Number `json:"retentionTimeInMinutes"`
	Megabytes Number `json:"retentionSizeInMB"`
}

// InactiveTopics says when topics without use are deleted.
type InactiveTopics struct {
	Mode            string `json:"inactiveTopicDeleteMode,omitempty"`
	DurationSeconds Number `json:"maxInactiveDurationSeconds"`
	Delete          bool   `json:"deleteWhileInactive"`
}

// DelayedDelivery turns deliver_at_time on or off.
type DelayedDelivery struct {
	TickMillis     Number `json:"tickTime"`
	Active         bool   `json:"active"`
	MaxDelayMillis Number `json:"maxDeliveryDelayInMillis"`
}

// AutoTopicCreation overrides the broker's settings for topics made by their first use.
type AutoTopicCreation struct {
	Allow      bool    `json:"allowAutoTopicCreation"`
	Type       string  `json:"topicType,omitempty"`
	Partitions *Number `json:"defaultNumPartitions"`
}

// AutoSubscriptionCreation overrides the broker's setting for subscriptions made by their first use.
type AutoSubscriptionCreation struct {
	Allow bool `json:"allowAutoSubscriptionCreation"`
}

// Number is a whole number. Some clients send numbers as strings, others with a fraction of zero.
type Number int64

// UnmarshalJSON reads 12, "12" and 12.0.
func (n *Number) UnmarshalJSON(text []byte) error {
	word := strings.Trim(string(text), `"`)
	whole, err := strconv.ParseInt(word, 10, 64)
	if err != nil {
		var fraction float64
		if fraction, err = strconv.ParseFloat(word, 64); err == nil && fraction == float64(int64(fraction)) {
			*n = Number(fraction)
			return nil
		}
		return fmt.Errorf("%.40q: want a whole number", word)
	}
	*n = Number(whole)
	return nil
}

func parsePolicies(value []byte) (*Policies, error) {
	document, err := stored(value)
	if err != nil {
		return nil, err
	}
	return document.policies()
}

// policies interprets a document.
func (d Document) policies() (*Policies, error) {
	p := &Policies{Document: d}
	if err := d.Decode(p); err != nil {
		return nil, &Error{Invalid, "policies: " + explain(err)}
	}
	return p, nil
}

func explain(err error) string {
	if wrong, ok := err.(*json.UnmarshalTypeError); ok {
		return fmt.Sprintf("%s: want %s, got %s", wrong.Field, wrong.Type, wrong.Value)
	}
	return err.Error()
}
