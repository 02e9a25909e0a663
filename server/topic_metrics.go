package server

import (
	"context"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pulsar-tc/pulsar-tc/conf"
	"github.com/pulsar-tc/pulsar-tc/topic"
	"github.com/pulsar-tc/pulsar-tc/topicname"
)

const (
	// maxTopicsShown and maxSubscriptionsShown bound what one scrape tells of single topics and subscriptions; the first by
	// name are shown.
	maxTopicsShown        = 10_000
	maxSubscriptionsShown = 10_000
	// statsTimeout is how long a scrape waits for the topics.
	statsTimeout = 5 * time.Second
)

// watchTopics adds metrics that are read from the loaded topics at each scrape.
func (m *metrics) watchTopics(config *conf.Config, stats func(context.Context) []topic.Stats) {
	m.registry.MustRegister(newTopicCollector(config.ClusterName, config.ExposeTopicLevelMetricsInPrometheus, stats))
}

// topicMetric is one number of a topic, under Pulsar's name. Of a namespace it is the sum.
//
// Source: PrometheusMetrics of broker 4.0.7: TopicStats.printTopicStats, NamespaceStatsAggregator.
type topicMetric struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*topic.Stats) float64
}

type subscriptionMetric struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*topic.SubscriptionCounts) float64
}

// topicCollector shows topics one by one, or summed by namespace.
type topicCollector struct {
	perTopic      bool
	stats         func(context.Context) []topic.Stats
	topics        *prometheus.Desc
	hidden        *prometheus.Desc
	topic         []topicMetric
	subscriptions []subscriptionMetric
	namespaces    *namespaceSums
}

func newTopicCollector(cluster string, perTopic bool, stats func(context.Context) []topic.Stats) *topicCollector {
	c := &topicCollector{perTopic: perTopic, stats: stats, namespaces: newNamespaceSums()}
	constant := prometheus.Labels{"cluster": cluster}
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, constant)
	}
	c.topics = desc("pulsar_topics_count", "Topics in memory.", "namespace")
	c.hidden = desc("pulsar_tc_topics_hidden", "Topics and subscriptions in memory that have no metrics of their own, because there are too many.")
	labels := []string{"namespace"}
	if perTopic {
		labels = append(labels, "topic")
	}
	add := func(name, help string, kind prometheus.ValueType, value func(*topic.Stats) float64) {
		c.topic = append(c.topic, topicMetric{desc(name, help, labels...), kind, value})
	}
	since := " since the load."
	if !perTopic {
		since = " since the start, by topics that are not in memory any more as far as an earlier scrape saw it."
	}
	const gauge, counter = prometheus.GaugeValue, prometheus.CounterValue
	add("pulsar_producers_count", "Producers connected.", gauge, func(s *topic.Stats) float64 { return float64(s.Producers) })
	add("pulsar_consumers_count", "Consumers connected.", gauge, func(s *topic.Stats) float64 { return float64(s.Consumers) })
	add("pulsar_subscriptions_count", "Subscriptions.", gauge, func(s *topic.Stats) float64 { return float64(s.Subscriptions) })
	add("pulsar_in_messages_total", "Messages stored"+since, counter, func(s *topic.Stats) float64 { return float64(s.MessagesIn) })
	add("pulsar_in_bytes_total", "Bytes stored"+since, counter, func(s *topic.Stats) float64 { return float64(s.BytesIn) })
	add("pulsar_out_messages_total", "Messages delivered"+since, counter, func(s *topic.Stats) float64 { return float64(s.MessagesOut) })
	add("pulsar_out_bytes_total", "Bytes delivered"+since, counter, func(s *topic.Stats) float64 { return float64(s.BytesOut) })
	add("pulsar_storage_size", "Bytes stored, about.", gauge, func(s *topic.Stats) float64 { return float64(s.StorageSize) })
	add("pulsar_storage_backlog_size", "Bytes before the slowest subscription, about.", gauge, func(s *topic.Stats) float64 { return float64(s.BacklogSize) })
	add("pulsar_msg_backlog", "Entries that subscriptions have not acknowledged.", gauge, func(s *topic.Stats) float64 { return float64(s.Backlog) })
	add("pulsar_txn_tb_active_total", "Transactions that are open on the topic.", gauge, func(s *topic.Stats) float64 { return float64(s.TransactionsOpen) })
	add("pulsar_txn_tb_committed_total", "Transactions committed"+since, counter, func(s *topic.Stats) float64 { return float64(s.TransactionsCommitted) })
	add("pulsar_txn_tb_aborted_total", "Transactions aborted"+since, counter, func(s *topic.Stats) float64 { return float64(s.TransactionsAborted) })
	add("pulsar_tc_late_sends_total", "Sends whose transaction was not open"+since, counter, func(s *topic.Stats) float64 { return float64(s.LateSends) })
	if !perTopic {
		return c
	}
	of := func(name, help string, kind prometheus.ValueType, value func(*topic.SubscriptionCounts) float64) {
		c.subscriptions = append(c.subscriptions, subscriptionMetric{desc(name, help, "namespace", "topic", "subscription"), kind, value})
	}
	of("pulsar_subscription_back_log", "Entries that are not acknowledged.", gauge, func(s *topic.SubscriptionCounts) float64 { return float64(s.Backlog) })
	of("pulsar_subscription_consumers_count", "Consumers connected.", gauge, func(s *topic.SubscriptionCounts) float64 { return float64(s.Consumers) })
	of("pulsar_subscription_unacked_messages", "Messages delivered and not acknowledged.", gauge, func(s *topic.SubscriptionCounts) float64 { return float64(s.UnackedMessages) })
	of("pulsar_subscription_out_messages_total", "Messages delivered since the load.", counter, func(s *topic.SubscriptionCounts) float64 { return float64(s.MessagesOut) })
	of("pulsar_subscription_out_bytes_total", "Bytes delivered since the load.", counter, func(s *topic.SubscriptionCounts) float64 { return float64(s.BytesOut) })
	return c
}

func (c *topicCollector) Describe(descs chan<- *prometheus.Desc) {
	descs <- c.topics
	descs <- c.hidden
	for i := range c.topic {
		descs <- c.topic[i].desc
	}
	for i := range c.subscriptions {
		descs <- c.subscriptions[i].desc
	}
}

func (c *topicCollector) Collect(values chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), statsTimeout)
	defer cancel()
	select {
	case c.namespaces.turn <- struct{}{}:
		defer func() { <-c.namespaces.turn }()
	case <-ctx.Done():
		return
	}
	all := c.stats(ctx)
	count := make(map[string]int)
	for i := range all {
		count[namespaceOf(all[i].Topic)]++
	}
	for namespace, n := range count {
		values <- prometheus.MustNewConstMetric(c.topics, prometheus.GaugeValue, float64(n), namespace)
	}
	hidden := 0
	if c.perTopic {
		hidden = c.collectEach(all, values)
	} else {
		for namespace, sum := range c.namespaces.add(c.topic, all, ctx.Err() == nil) {
			for j := range c.topic {
				if count[namespace] > 0 || c.topic[j].kind == prometheus.CounterValue {
					values <- prometheus.MustNewConstMetric(c.topic[j].desc, c.topic[j].kind, sum[j], namespace)
				}
			}
		}
	}
	values <- prometheus.MustNewConstMetric(c.hidden, prometheus.GaugeValue, float64(hidden))
}

// collectEach shows topics one by one, as many as may be, and returns how many topics and subscriptions it did not show.
func (c *topicCollector) collectEach(all []topic.Stats, values chan<- prometheus.Metric) (hidden int) {
	subscriptions := 0
	for i := range all {
		s := &all[i]
		if i >= maxTopicsShown {
			hidden++
			continue
		}
		namespace, name := namespaceOf(s.Topic), label(s.Topic)
		for j := range c.topic {
			values <- prometheus.MustNewConstMetric(c.topic[j].desc, c.topic[j].kind, c.topic[j].value(s), namespace, name)
		}
		for k := range s.PerSubscription {
			if subscriptions++; subscriptions > maxSubscriptionsShown {
				hidden++
				continue
			}
			sub := &s.PerSubscription[k]
			for j := range c.subscriptions {
				m := &c.subscriptions[j]
				values <- prometheus.MustNewConstMetric(m.desc, m.kind, m.value(sub), namespace, name, label(sub.Name))
			}
		}
	}
	return hidden
}

func namespaceOf(fullName string) string {
	name, err := topicname.Parse(fullName)
	if err != nil {
		return ""
	}
	return name.NamespaceName()
}

// label is a name as a label: quoted if it is no UTF-8, because Prometheus takes nothing else (FC-54), and if it looks quoted, so that
// no two names have one label, for which the whole page would be refused.
func label(name string) string {
	if utf8.ValidString(name) && !strings.HasPrefix(name, `"`) {
		return name
	}
	return strconv.Quote(name)
}
