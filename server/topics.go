package server

import (
	"context"
	"errors"
	"slices"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/conn"
	"github.com/pulsar-tc/pulsar-tc/nonpersistent"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/terminatedtopic"
	"github.com/pulsar-tc/pulsar-tc/topic"
	"github.com/pulsar-tc/pulsar-tc/topicname"
)

// namedTopics finds by its name what serves a topic. Topics serves what nothing else does.
type namedTopics struct {
	conn.Topics
	terminated    *terminatedtopic.Topics
	nonPersistent *nonpersistent.Topics
	schemas       topic.Schemas
}

func (s *Server) namedTopics() *namedTopics {
	return &namedTopics{&checkedTopics{s.topics, s.group}, s.terminated, s.nonPersistent, s.schemas}
}

// TopicsOfNamespace implements conn.Topics. The list is in order, which the hash of it rests on.
func (t *namedTopics) TopicsOfNamespace(ctx context.Context, namespace string, mode pulsarproto.CommandGetTopicsOfNamespace_Mode) ([]string, error) {
	names, err := t.Topics.TopicsOfNamespace(ctx, namespace, mode)
	if err == nil && mode != pulsarproto.CommandGetTopicsOfNamespace_PERSISTENT {
		names = append(names, t.nonPersistent.List(namespace)...)
		slices.Sort(names)
	}
	return names, err
}

// PartitionCount implements conn.Topics. A non-persistent topic is made by its first use, and never with partitions.
func (t *namedTopics) PartitionCount(ctx context.Context, name topicname.Name, create bool) (int, error) {
	partitions, err := t.Topics.PartitionCount(ctx, name, create && name.Domain != topicname.NonPersistent)
	if name.Domain == topicname.NonPersistent && create && errors.Is(err, topic.ErrTopicNotFound) {
		return 0, nil
	}
	return partitions, err
}

// Produce implements conn.Topics.
func (t *namedTopics) Produce(ctx context.Context, name topicname.Name, caller cnx.Caller, cmd *pulsarproto.CommandProducer, client cnx.ProducerClient) (cnx.Producer, cnx.ProducerInfo, error) {
	switch {
	case terminatedtopic.Serves(name):
		return nil, cnx.ProducerInfo{}, t.terminated.Produce(name, caller)
	case name.Domain == topicname.NonPersistent:
		return t.produceNonPersistent(ctx, name, caller, cmd, client)
	}
	return t.Topics.Produce(ctx, name, caller, cmd, client)
}

// Subscribe implements conn.Topics.
func (t *namedTopics) Subscribe(ctx context.Context, name topicname.Name, caller cnx.Caller, cmd *pulsarproto.CommandSubscribe, client cnx.ConsumerClient) (cnx.Consumer, error) {
	switch {
	case terminatedtopic.Serves(name):
		return t.terminated.Subscribe(ctx, name, caller, cmd, client)
	case name.Domain == topicname.NonPersistent:
		return t.subscribeNonPersistent(ctx, name, caller, cmd, client)
	}
	return t.Topics.Subscribe(ctx, name, caller, cmd, client)
}

func (s *Server) nonPersistentOptions() nonpersistent.Options {
	options := nonpersistent.Options{Exists: s.namespaceExists, Limits: func(name topicname.Name) nonpersistent.Limits {
		p := s.topicPolicies(name)
		return nonpersistent.Limits{Producers: p.MaxProducers, Consumers: p.MaxConsumers, Subscriptions: p.MaxSubscriptions}
	}}
	if s.peers != nil {
		options.Serves = s.placedHere
	}
	return options
}

// maxTerminatedBytes bounds one message of a topic of outcomes: more than transactionMetaPersistCount outcomes take by default.
const maxTerminatedBytes = 256 << 10

func (o *Options) terminated(l limits) terminatedtopic.Options {
	return terminatedtopic.Options{
		MaxValueBytes: min(maxTerminatedBytes, l.messageSize-2<<10),
	}
}
