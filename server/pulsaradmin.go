package server

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/coordinator"
	"github.com/pulsar-tc/pulsar-tc/coordinator/fsm"
	"github.com/pulsar-tc/pulsar-tc/nonpersistent"
	"github.com/pulsar-tc/pulsar-tc/pulsaradmin"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topic"
	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// paths serves Pulsar's paths of HTTP beside those of this product.
func (s *Server) paths(own http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", own)
	pulsar := pulsaradmin.New(s.administration())
	mux.Handle("/admin/", pulsar)
	mux.Handle("/lookup/", pulsar)
	return mux
}

// administration joins what Pulsar's admin REST is about.
func (s *Server) administration() pulsaradmin.Options {
	options := pulsaradmin.Options{
		Resources: s.resources, Topics: &administeredTopics{s.topics, s.namedTopics(), s.nonPersistent}, Schemas: s.schemas, Transactions: administered{s.group, s}, Broker: s.broker(),
		BrokerPolicies: s.brokerDefaults(), Rights: s.authorization, Log: s.options.Log,
	}
	if s.peers != nil {
		options.Instances = &neighbours{s.cluster, s.peers, s.door, s}
	}
	if s.authentication != nil {
		options.Authenticate = s.authentication.Request
	}
	return options
}

func (s *Server) broker() pulsaradmin.Broker {
	address := s.WebURL()
	if address == "" {
		address = s.WebURLTLS()
	}
	_, id, _ := strings.Cut(address, "://")
	return pulsaradmin.Broker{
		ID: id, Cluster: s.options.Config.ClusterName, Version: s.options.Version,
		WebURL: s.WebURL(), WebURLTLS: s.WebURLTLS(), ServiceURL: s.ServiceURL(), ServiceURLTLS: s.ServiceURLTLS(),
		Ready: func() error {
			if !s.health().Healthy {
				return fmt.Errorf("%w: not every coordinator serves, see /health", txn.ErrNotReady)
			}
			return nil
		},
	}
}

// brokerDefaults are the settings of broker.conf as policies show them.
func (s *Server) brokerDefaults() map[string]any {
	c := s.options.Config
	return map[string]any{
		"message_ttl_in_seconds": int64(c.TTLDurationDefault / time.Second),
		"retention_policies":     map[string]int{"retentionTimeInMinutes": c.DefaultRetentionTimeInMinutes, "retentionSizeInMB": c.DefaultRetentionSizeInMB},
		"deduplicationEnabled":   c.BrokerDeduplicationEnabled,
		"inactive_topic_policies": map[string]any{
			"inactiveTopicDeleteMode": c.BrokerDeleteInactiveTopicsMode, "deleteWhileInactive": c.BrokerDeleteInactiveTopicsEnabled,
			"maxInactiveDurationSeconds": int64(s.brokerPolicies.InactiveAfter / time.Second),
		},
		"delayed_delivery_policies":        map[string]any{"active": c.DelayedDeliveryEnabled, "tickTime": c.DelayedDeliveryTick.Milliseconds()},
		"max_producers_per_topic":          c.MaxProducersPerTopic,
		"max_consumers_per_topic":          c.MaxConsumersPerTopic,
		"max_consumers_per_subscription":   c.MaxConsumersPerSubscription,
		"max_subscriptions_per_topic":      c.MaxSubscriptionsPerTopic,
		"compaction_threshold":             c.CompactionThreshold,
		"schema_compatibility_strategy":    c.SchemaCompatibilityStrategy,
		"autoSubscriptionCreationOverride": map[string]bool{"allowAutoSubscriptionCreation": c.AllowAutoSubscriptionCreationEnabled},
		"max_message_size":                 s.limits.messageSize,
		"replication_clusters":             []string{c.ClusterName},
	}
}

// administeredTopics are all topics as administrators see them.
type administeredTopics struct {
	*topic.Topics
	named         *namedTopics
	nonPersistent *nonpersistent.Topics
}

func (t *administeredTopics) TopicsOfNamespace(ctx context.Context, namespace string, mode pulsarproto.CommandGetTopicsOfNamespace_Mode) ([]string, error) {
	return t.named.TopicsOfNamespace(ctx, namespace, mode)
}

func (t *administeredTopics) PartitionCount(ctx context.Context, name topicname.Name, create bool) (int, error) {
	return t.named.PartitionCount(ctx, name, create)
}

func (t *administeredTopics) CreateTopic(ctx context.Context, name topicname.Name, properties map[string]string) error {
	if name.Domain == topicname.NonPersistent {
		return fmt.Errorf("%w: %s is made by its first use and ends with its last", txn.ErrNotAllowed, name)
	}
	return t.Topics.CreateTopic(ctx, name, properties)
}

func (t *administeredTopics) Unload(ctx context.Context, name topicname.Name) error {
	if name.Domain != topicname.NonPersistent {
		return t.Topics.Unload(ctx, name)
	}
	if !t.nonPersistent.Unload(name) {
		return fmt.Errorf("%w: %s", topic.ErrTopicNotFound, name)
	}
	return nil
}

// UnloadUnused refuses a non-persistent topic, which has clients as long as it exists.
func (t *administeredTopics) UnloadUnused(ctx context.Context, name topicname.Name) error {
	switch {
	case name.Domain != topicname.NonPersistent:
		return t.Topics.UnloadUnused(ctx, name)
	case t.nonPersistent.Exists(name):
		return fmt.Errorf("%w: %s", topic.ErrTopicBusy, name)
	}
	return fmt.Errorf("%w: %s", topic.ErrTopicNotFound, name)
}

// DeleteTopic disconnects, with force, everybody from a non-persistent topic, which ends with that.
func (t *administeredTopics) DeleteTopic(ctx context.Context, name topicname.Name, force bool) error {
	switch {
	case name.Domain != topicname.NonPersistent:
		return t.Topics.DeleteTopic(ctx, name, force)
	case !force && t.nonPersistent.Exists(name):
		return fmt.Errorf("%w: %s", topic.ErrTopicBusy, name)
	}
	return t.Unload(ctx, name)
}

// administered shows a coordinator.Group to Pulsar's admin REST.
type administered struct {
	*coordinator.Group
	server *Server
}

// LedHere implements pulsaradmin.Transactions.
func (a administered) LedHere(ctx context.Context, tc uint64) error { return a.server.ledHere(ctx, tc) }

func (a administered) Coordinator(tc uint64) pulsaradmin.Coordinator {
	s := a.Statuses()[tc]
	return pulsaradmin.Coordinator{
		ID: s.TC, Serving: s.Serving, LastIssued: s.LastIssued, LowWaterMark: s.LowWaterMark, Live: s.Live,
		RecoverEnd: s.Recovered.UnixMilli(), RecoverStart: s.Recovered.Add(-s.LoadTook).UnixMilli(),
	}
}

func (a administered) Describe(ctx context.Context, id txn.ID) (pulsaradmin.Transaction, error) {
	if err := a.LedHere(ctx, id.Most); err != nil {
		return pulsaradmin.Transaction{}, err
	}
	found, err := a.Group.Describe(ctx, id)
	if err != nil {
		return pulsaradmin.Transaction{}, err
	}
	return administeredTransaction(&found), nil
}

func (a administered) Slow(ctx context.Context, timeout time.Duration, tc uint64, limit int) ([]pulsaradmin.Transaction, error) {
	found, err := a.ListOf(ctx, tc, func(d *fsm.Description) bool { return d.TTLMillis > uint64(timeout.Milliseconds()) }, limit)
	if err != nil {
		return nil, err
	}
	all := make([]pulsaradmin.Transaction, len(found))
	for i := range found {
		all[i] = administeredTransaction(&found[i])
	}
	return all, nil
}

// Abort ends a transaction that is open. One that is decided is refused, also if it is aborted already.
func (a administered) Abort(ctx context.Context, id txn.ID, caller cnx.Caller) error {
	if err := a.LedHere(ctx, id.Most); err != nil {
		return err
	}
	found, err := a.Group.Describe(ctx, id)
	if err != nil {
		return err
	}
	if found.Status != txn.Open {
		return &txn.StatusError{ID: id, Want: txn.Aborting, Got: found.Status}
	}
	ended := make(chan error, 1)
	a.EndTxn(ctx, id, fsm.Caller{Owner: ownerOf(caller), Super: true}, txn.Abort, false, func(err error) { ended <- err })
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return fmt.Errorf("%w: the abort of %s is decided or under way", txn.ErrNotReady, id)
	}
}

func administeredTransaction(d *fsm.Description) pulsaradmin.Transaction {
	t := pulsaradmin.Transaction{ID: d.ID, Status: d.Status, OpenedAt: d.Opened, TTLMillis: d.TTLMillis, Owner: d.Owner.Role}
	for i := range d.Participants {
		if p := d.Participants[i].Participant; p.Kind == txn.AckedSubscription {
			t.Subscribed = append(t.Subscribed, p)
		} else {
			t.Topics = append(t.Topics, p.Topic)
		}
	}
	return t
}
