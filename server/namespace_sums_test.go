package server

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/pulsar-tc/pulsar-tc/topic"
)

// The counters of a namespace never fall: not when a topic is unloaded, deleted or loaded again, and not when it does not answer in time.
// Its gauges tell of the topics that answer.
func TestCountersOfNamespacesDoNotFall(t *testing.T) {
	const a, b, other = "persistent://public/default/a", "persistent://public/default/b", "persistent://public/other/c"
	metrics := newTopicCollector("here", false, nil).topic
	index := func(name string) int {
		return slices.IndexFunc(metrics, func(m topicMetric) bool { return strings.Contains(m.desc.String(), `"`+name+`"`) })
	}
	sums, in, producers := newNamespaceSums(), index("pulsar_in_messages_total"), index("pulsar_producers_count")
	for _, step := range []struct {
		what          string
		loaded        []topic.Stats
		complete      bool
		in, producers float64
	}{
		{"two topics", []topic.Stats{{Topic: a, MessagesIn: 5, Producers: 1}, {Topic: b, MessagesIn: 3, Producers: 2}}, true, 8, 3},
		{"one is unloaded", []topic.Stats{{Topic: b, MessagesIn: 4, Producers: 2}}, true, 9, 2},
		{"it is loaded again", []topic.Stats{{Topic: a, MessagesIn: 1}, {Topic: b, MessagesIn: 4, Producers: 2}}, true, 10, 2},
		{"one does not answer", []topic.Stats{{Topic: a, MessagesIn: 2}}, false, 11, 0},
		{"it does", []topic.Stats{{Topic: a, MessagesIn: 2}, {Topic: b, MessagesIn: 6, Producers: 2}}, true, 13, 2},
		{"reloaded between two scrapes", []topic.Stats{{Topic: a, MessagesIn: 2}, {Topic: b, MessagesIn: 1, Producers: 2}}, true, 14, 2},
		{"another namespace", []topic.Stats{{Topic: other, MessagesIn: 7}}, true, 14, 0},
	} {
		got := sums.add(metrics, step.loaded, step.complete)["public/default"]
		if got[in] != step.in || got[producers] != step.producers {
			t.Errorf("%s: %v messages, %v producers, want %v and %v", step.what, got[in], got[producers], step.in, step.producers)
		}
	}
}

// A namespace without topics in memory shows its counters, and no gauges.
func TestNamespaceWithoutTopics(t *testing.T) {
	loaded := []topic.Stats{{Topic: "persistent://public/default/a", MessagesIn: 5, Producers: 1}}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(newTopicCollector("here", false, func(context.Context) []topic.Stats { return loaded }))
	scraped := func() map[string]*dto.MetricFamily {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		named := map[string]*dto.MetricFamily{}
		for _, family := range families {
			named[family.GetName()] = family
		}
		return named
	}
	of := func(name string) *dto.Metric {
		return labelled(scraped()[name].GetMetric(), "namespace", "public/default")
	}
	if of("pulsar_in_messages_total").GetCounter().GetValue() != 5 || of("pulsar_producers_count").GetGauge().GetValue() != 1 {
		t.Error("the topic is not counted")
	}
	loaded = nil
	if of("pulsar_in_messages_total").GetCounter().GetValue() != 5 || of("pulsar_producers_count") != nil {
		t.Error("the counter fell, or a gauge of nothing is shown")
	}
}
