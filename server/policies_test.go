package server

import (
	"context"
	"testing"
	"time"

	"github.com/pulsar-tc/pulsar-tc/resources"
	"github.com/pulsar-tc/pulsar-tc/topic"
	"github.com/pulsar-tc/pulsar-tc/topicname"
)

// What is set for a topic holds, else what is set for its namespace, else the broker's settings.
func TestTopicPolicies(t *testing.T) {
	options := load(t)
	options.Config.TTLDurationDefault, options.Config.MaxProducersPerTopic = time.Hour, 7
	s := start(t, options)
	name := topicname.Name{Domain: topicname.Persistent, Tenant: "public", Namespace: "default", Local: "joined"}
	broker := s.topicPolicies(name)
	if broker.MessageTTL != time.Hour || broker.MaxProducers != 7 || !broker.DeleteInactive || broker.InactiveAfter != time.Minute ||
		!broker.DelayedDelivery || broker.BacklogBytes != -1 || broker.RetentionTime != 0 {
		t.Errorf("of the broker: %+v", broker)
	}
	set := func(member, value string) func(resources.Document) error {
		return func(d resources.Document) error { d[member] = []byte(value); return nil }
	}
	ctx := context.Background()
	for member, value := range map[string]string{
		"message_ttl_in_seconds": "60", "max_producers_per_topic": "0", "retention_policies": `{"retentionTimeInMinutes":-1,"retentionSizeInMB":5}`,
		"backlog_quota_map":             `{"destination_storage":{"limit":"10","policy":"producer_exception"},"message_age":{"limitTime":3,"policy":"consumer_backlog_eviction"}}`,
		"inactive_topic_policies":       `{"deleteWhileInactive":false,"maxInactiveDurationSeconds":9}`,
		"schema_compatibility_strategy": `"BACKWARD"`,
	} {
		if err := s.resources.UpdateNamespace(ctx, "public/default", set(member, value)); err != nil {
			t.Fatal(err)
		}
	}
	got := s.topicPolicies(name)
	want := broker
	want.MessageTTL, want.MaxProducers, want.RetentionTime, want.RetentionBytes = time.Minute, 0, -1, 5<<20
	want.BacklogBytes, want.BacklogAge, want.BacklogPolicy = 10, 3*time.Second, topic.ProducerException
	want.DeleteInactive, want.InactiveAfter = false, 9*time.Second
	if got != want {
		t.Errorf("of the namespace:\n got %+v\nwant %+v", got, want)
	}
	if got := s.schemaCompatibility(name); got != "BACKWARD" {
		t.Errorf("schema strategy of the namespace: %s", got)
	}
	for member, value := range map[string]string{"message_ttl_in_seconds": "0", "schema_compatibility_strategy": `"UNDEFINED"`} {
		if err := s.resources.UpdateTopic(ctx, name, set(member, value)); err != nil {
			t.Fatal(err)
		}
	}
	want.MessageTTL = 0
	if got := s.topicPolicies(name.WithPartition(1)); got != want {
		t.Errorf("of the topic:\n got %+v\nwant %+v", got, want)
	}
	if got := s.schemaCompatibility(name); got != "BACKWARD" {
		t.Errorf("schema strategy below UNDEFINED: %s", got)
	}
	name.Tenant, name.Namespace = "pulsar", "system"
	if got := s.topicPolicies(name); got != broker {
		t.Errorf("of a system topic: %+v", got)
	}
}

// What the first use of a name makes can be said for a namespace and, of subscriptions, for a topic.
func TestAutoCreation(t *testing.T) {
	s := start(t, load(t))
	name := topicname.Name{Domain: topicname.Persistent, Tenant: "public", Namespace: "default", Local: "auto"}
	if got := s.autoCreation(name); got != (topic.AutoCreation{Topics: true, Subscriptions: true}) {
		t.Errorf("of the broker: %+v", got)
	}
	set := func(member, value string) func(resources.Document) error {
		return func(d resources.Document) error { d[member] = []byte(value); return nil }
	}
	namespace := func(member, value string) {
		t.Helper()
		if err := s.resources.UpdateNamespace(t.Context(), "public/default", set(member, value)); err != nil {
			t.Fatal(err)
		}
	}
	namespace("autoTopicCreationOverride", `{"allowAutoTopicCreation":true,"topicType":"partitioned","defaultNumPartitions":3}`)
	namespace("autoSubscriptionCreationOverride", `{"allowAutoSubscriptionCreation":false}`)
	if got := s.autoCreation(name); got != (topic.AutoCreation{Topics: true, Partitions: 3}) {
		t.Errorf("of the namespace: %+v", got)
	}
	if n, err := s.topics.PartitionCount(t.Context(), name, true); n != 3 || err != nil {
		t.Errorf("first use: %d partitions, %v", n, err)
	}
	namespace("autoTopicCreationOverride", `{"allowAutoTopicCreation":false}`)
	if err := s.resources.UpdateTopic(t.Context(), name, set("autoSubscriptionCreationOverride", `{"allowAutoSubscriptionCreation":true}`)); err != nil {
		t.Fatal(err)
	}
	if got := s.autoCreation(name.WithPartition(0)); got != (topic.AutoCreation{Subscriptions: true}) {
		t.Errorf("of the topic: %+v", got)
	}
}
