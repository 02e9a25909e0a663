package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/pulsar-tc/pulsar-tc/topic"
)

// namespaceSums adds up the metrics of topics by namespace. The counters of a topic begin anew with each load of it; those of its
// namespace keep what was counted before, because a counter that falls is taken for one that began at 0.
type namespaceSums struct {
	turn chan struct{}        // is in it during a scrape, which guards the rest
	last map[string][]float64 // counters by topic, as the last scrape saw them
	past map[string][]float64 // counters by namespace, of loads that have ended
}

func newNamespaceSums() *namespaceSums {
	return &namespaceSums{turn: make(chan struct{}, 1), last: make(map[string][]float64), past: make(map[string][]float64)}
}

// add takes over what the loaded topics tell and returns the sums by namespace, in the order of metrics. A topic that is not among all
// has ended; unless all is not complete: then it counts as before.
func (n *namespaceSums) add(metrics []topicMetric, all []topic.Stats, complete bool) map[string][]float64 {
	current, gauges := make(map[string][]float64, len(all)), make(map[string][]float64)
	for i := range all {
		counters, namespace := make([]float64, len(metrics)), namespaceOf(all[i].Topic)
		for j := range metrics {
			value := metrics[j].value(&all[i])
			if metrics[j].kind == prometheus.CounterValue {
				counters[j] = value
				continue
			}
			sumOf(gauges, namespace, len(metrics))[j] += value
		}
		current[all[i].Topic] = counters
	}
	for name, before := range n.last {
		now, loaded := current[name]
		switch {
		case !loaded && !complete:
			current[name] = before
		case !loaded || fell(before, now):
			addTo(sumOf(n.past, namespaceOf(name), len(metrics)), before)
		}
	}
	n.last = current
	sums := gauges
	for name, counters := range current {
		addTo(sumOf(sums, namespaceOf(name), len(metrics)), counters)
	}
	for namespace, counters := range n.past {
		addTo(sumOf(sums, namespace, len(metrics)), counters)
	}
	return sums
}

// fell reports whether a counter is lower than before.
func fell(before, now []float64) bool {
	for j := range before {
		if now[j] < before[j] {
			return true
		}
	}
	return false
}

func sumOf(sums map[string][]float64, namespace string, size int) []float64 {
	if sums[namespace] == nil {
		sums[namespace] = make([]float64, size)
	}
	return sums[namespace]
}

func addTo(sum, values []float64) {
	for j := range values {
		sum[j] += values[j]
	}
}
