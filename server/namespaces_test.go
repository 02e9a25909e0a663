package server

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsaradmin/pkg/utils"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topicname"
)

// administer sends one request to the admin REST and returns status and body of the answer.
func administer(t *testing.T, s *Server, method, path, body string) (int, string) {
	t.Helper()
	status, text, _ := exchange(t, s, method, "/admin/v2/"+path, body)
	return status, text
}

// exchange sends one request to the web port and returns the answer, a redirection as it is.
func exchange(t *testing.T, s *Server, method, path, body string) (int, string, http.Header) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, s.WebURL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text), answer.Header
}

// The hash of a list is over its names in order, so the list of both domains has to be in order, too.
func TestTopicsOfBothDomainsAreInOrder(t *testing.T) {
	s := start(t, load(t))
	client := officialClient(t, s)
	for _, name := range []string{"persistent://public/default/a", "non-persistent://public/default/b"} {
		producer, err := client.CreateProducer(pulsar.ProducerOptions{Topic: name})
		if err != nil {
			t.Fatal(err)
		}
		defer producer.Close()
	}
	names, err := s.namedTopics().TopicsOfNamespace(t.Context(), "public/default", pulsarproto.CommandGetTopicsOfNamespace_ALL)
	if err != nil || len(names) != 2 || !slices.IsSorted(names) {
		t.Errorf("%v, %v", names, err)
	}
}

// A partitioned topic that is not persistent is listed, and goes with its namespace.
func TestNonPersistentPartitionedTopic(t *testing.T) {
	s := start(t, load(t))
	client := adminClient(t, s)
	status(t, "create namespace", client.Namespaces().CreateNamespace("public/np"), 0)
	name, _ := utils.GetTopicName("non-persistent://public/np/x")
	status(t, "create", client.Topics().Create(*name, 2), 0)
	if code, text := administer(t, s, "GET", "non-persistent/public/np/partitioned", ""); code != http.StatusOK || text != `["non-persistent://public/np/x"]` {
		t.Errorf("non-persistent: %d %s", code, text)
	}
	if code, text := administer(t, s, "GET", "persistent/public/np/partitioned", ""); code != http.StatusOK || text != "[]" {
		t.Errorf("persistent: %d %s", code, text)
	}
	if code, text := administer(t, s, "DELETE", "namespaces/public/np?force=true", ""); code != http.StatusNoContent {
		t.Errorf("delete with force: %d %s", code, text)
	}
}

// A new namespace has no policy that the policy's own path refuses.
func TestNewNamespaceWithBadPolicies(t *testing.T) {
	s := start(t, load(t))
	for policies, want := range map[string]int{
		`{"retention_policies":{"retentionTimeInMinutes":5,"retentionSizeInMB":0}}`:                                    http.StatusPreconditionFailed,
		`{"message_ttl_in_seconds":-1}`:                                                                                http.StatusPreconditionFailed,
		`{"max_producers_per_topic":-1}`:                                                                               http.StatusPreconditionFailed,
		`{"schema_compatibility_strategy":"SIDEWAYS"}`:                                                                 http.StatusBadRequest,
		`{"backlog_quota_map":{"destination_storage":{"limitSize":1,"policy":"give_up"}}}`:                             http.StatusPreconditionFailed,
		`{"backlog_quota_map":{"colour":{"limitSize":1,"policy":"producer_exception"}}}`:                               http.StatusBadRequest,
		`{"retention_policies":null,"message_ttl_in_seconds":null,"backlog_quota_map":{},"max_producers_per_topic":3}`: http.StatusNoContent,
	} {
		if code, text := administer(t, s, "PUT", "namespaces/public/bad", policies); code != want {
			t.Errorf("%s: %d %s, want %d", policies, code, text, want)
		}
		administer(t, s, "DELETE", "namespaces/public/bad", "")
	}
	status(t, "the client's own policies", adminClient(t, s).Namespaces().CreateNsWithPolices("public/good", *utils.NewDefaultPolicies()), 0)
}

// Who makes a topic anew does not let in whom its predecessor let in.
func TestGrantsGoWithTheirTopic(t *testing.T) {
	s := start(t, load(t))
	for _, topic := range []struct{ make, remove, body string }{
		{"persistent/public/default/g", "persistent/public/default/g", ""},
		{"persistent/public/default/p/partitions", "persistent/public/default/p/partitions", "2"},
	} {
		permissions := strings.TrimSuffix(topic.make, "/partitions") + "/permissions"
		administer(t, s, "PUT", topic.make, topic.body)
		if topic.body != "" {
			administer(t, s, "POST", "persistent/public/default/p-partition-1/permissions/alice", `["consume"]`)
		}
		if code, text := administer(t, s, "POST", permissions+"/alice", `["consume"]`); code != http.StatusNoContent {
			t.Fatalf("grant: %d %s", code, text)
		}
		if code, text := administer(t, s, "DELETE", topic.remove, ""); code != http.StatusNoContent {
			t.Fatalf("delete: %d %s", code, text)
		}
		administer(t, s, "PUT", topic.make, topic.body)
		if code, text := administer(t, s, "GET", permissions, ""); code != http.StatusOK || text != "{}" {
			t.Errorf("%s: %d %s", topic.make, code, text)
		}
	}
	if code, text := administer(t, s, "GET", "namespaces/public/default", ""); code != http.StatusOK || strings.Contains(text, "alice") {
		t.Errorf("namespace: %d %s", code, text)
	}
}

// What holds for a topic without policies is what broker.conf says.
func TestAppliedPoliciesAreTheSettings(t *testing.T) {
	s := start(t, load(t, "brokerDeleteInactiveTopicsMode=delete_when_subscriptions_caught_up", "delayedDeliveryTickTimeMillis=250"))
	for path, want := range map[string]string{
		"inactiveTopicPolicies": `"inactiveTopicDeleteMode":"delete_when_subscriptions_caught_up"`,
		"delayedDelivery":       `"tickTime":250`,
	} {
		if code, text := administer(t, s, "GET", "persistent/public/default/x/"+path+"?applied=true", ""); code != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
}

// Who means a partitioned topic does not terminate a plain one, which no call takes back.
func TestTerminatePartitionsOfNone(t *testing.T) {
	s := start(t, load(t))
	administer(t, s, "PUT", "persistent/public/default/x", "")
	if code, text := administer(t, s, "POST", "persistent/public/default/x/terminate/partitions", ""); code != http.StatusMethodNotAllowed {
		t.Errorf("terminate: %d %s", code, text)
	}
	producer, err := officialClient(t, s).CreateProducer(pulsar.ProducerOptions{Topic: "x"})
	if err != nil {
		t.Fatalf("it is terminated all the same: %v", err)
	}
	producer.Close()
}

// A policy that would have every first use of a topic refused is refused itself, however it is set, and says what is wrong with it.
func TestTooManyPartitionsByPolicy(t *testing.T) {
	s := start(t, load(t))
	most := s.topics.MaxPartitions()
	policy := func(partitions int) string {
		return fmt.Sprintf(`{"allowAutoTopicCreation":true,"topicType":"partitioned","defaultNumPartitions":%d}`, partitions)
	}
	for _, request := range []struct{ method, path, body string }{
		{"POST", "namespaces/public/default/autoTopicCreation", "%s"},
		{"PUT", "namespaces/public/new", `{"autoTopicCreationOverride":%s}`},
	} {
		code, text := administer(t, s, request.method, request.path, fmt.Sprintf(request.body, policy(most+1)))
		value, rule := fmt.Sprint("defaultNumPartitions=", most+1), fmt.Sprint("less than or equal to ", most)
		if code != http.StatusNotAcceptable || !strings.Contains(text, value) || !strings.Contains(text, rule) {
			t.Errorf("%s %s: %d %s, want 406 with %q and %q", request.method, request.path, code, text, value, rule)
		}
		if code, text := administer(t, s, request.method, request.path, fmt.Sprintf(request.body, policy(most))); code != http.StatusNoContent {
			t.Errorf("%s %s with %d: %d %s", request.method, request.path, most, code, text)
		}
	}
}

// A namespace goes with the segments of its scalable topics, which no list shows.
func TestNamespaceGoesWithSegments(t *testing.T) {
	s := start(t, load(t))
	client := adminClient(t, s)
	status(t, "create namespace", client.Namespaces().CreateNamespace("public/scaled"), 0)
	segment, err := topicname.Parse("segment://public/scaled/orders/0000-7fff-1")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.topics.CreateTopic(t.Context(), segment, nil); err != nil {
		t.Fatal(err)
	}
	status(t, "delete with a segment", client.Namespaces().DeleteNamespace("public/scaled"), http.StatusConflict)
	if code, text := administer(t, s, "DELETE", "namespaces/public/scaled?force=true", ""); code != http.StatusNoContent {
		t.Errorf("delete with all topics: %d %s", code, text)
	}
	if exists, err := s.topics.TopicExists(t.Context(), segment); err == nil && exists {
		t.Error("the segment is still there")
	}
}
