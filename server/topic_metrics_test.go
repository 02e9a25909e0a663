package server

import (
	"net/http"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/pulsar-tc/pulsar-tc/topicname"
)

// scrape reads the metrics page with a strict parser.
func scrape(t *testing.T, s *Server, accept string) map[string]*dto.MetricFamily {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.WebURL()+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", accept)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", accept, answer.Status)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return families
}

func labelled(metrics []*dto.Metric, name, value string) *dto.Metric {
	for _, m := range metrics {
		for _, l := range m.GetLabel() {
			if l.GetName() == name && l.GetValue() == value {
				return m
			}
		}
	}
	return nil
}

// TestMetricsOfTopics holds FC-54: whatever topics and subscriptions are called, a strict parser takes the page, and finds them.
func TestMetricsOfTopics(t *testing.T) {
	for _, perTopic := range []string{"true", "false"} {
		t.Run("exposeTopicLevelMetricsInPrometheus="+perTopic, func(t *testing.T) {
			s := start(t, load(t, "exposeTopicLevelMetricsInPrometheus="+perTopic))
			odd := []string{"plain", `quote"`, `back\slash`, "} 1", "ünïcode", "\xff\xfe", "{}", "a\u2028b"}
			for _, text := range odd {
				name := topicname.Name{Domain: topicname.Persistent, Tenant: "public", Namespace: "default", Local: text}
				if err := s.topics.CreateTopic(t.Context(), name, nil); err != nil {
					t.Fatal(err)
				}
				if err := s.topics.CreateSubscription(t.Context(), name, text+"\n", nil); err != nil {
					t.Fatal(err)
				}
			}
			families := scrape(t, s, "text/plain")
			topics := labelled(families["pulsar_topics_count"].GetMetric(), "namespace", "public/default")
			if got := topics.GetGauge().GetValue(); got != float64(len(odd)) {
				t.Errorf("%v topics", got)
			}
			subscriptions := families["pulsar_subscriptions_count"].GetMetric()
			backlogs := families["pulsar_subscription_back_log"].GetMetric()
			if perTopic == "false" {
				if got := labelled(subscriptions, "namespace", "public/default").GetGauge().GetValue(); got != float64(len(odd)) || len(backlogs) != 0 {
					t.Errorf("%v subscriptions, %d backlogs", got, len(backlogs))
				}
				return
			}
			if len(subscriptions) != len(odd) || len(backlogs) != len(odd) {
				t.Errorf("%d topics and %d subscriptions are shown", len(subscriptions), len(backlogs))
			}
			for _, text := range odd {
				full := label("persistent://public/default/" + text)
				if labelled(subscriptions, "topic", full) == nil || labelled(backlogs, "subscription", label(text+"\n")) == nil {
					t.Errorf("%q is not shown", text)
				}
			}
		})
	}
}

// Names that are no UTF-8 are shown quoted, so that a name may look like another one's quotation: it is told apart all the same.
func TestLabelsAreDistinct(t *testing.T) {
	names := []string{"a", "a\xff", `"a\xff"`, `"\"a\\xff\""`, "\"a\xff\""}
	of := map[string]string{}
	for _, name := range names {
		if other, taken := of[label(name)]; taken {
			t.Errorf("%q and %q are both %s", name, other, label(name))
		}
		of[label(name)] = name
	}
}
