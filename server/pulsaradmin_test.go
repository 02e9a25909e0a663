package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/apache/pulsar-client-go/pulsar"
	pulsaradmin "github.com/apache/pulsar-client-go/pulsaradmin/pkg/admin"
	"github.com/apache/pulsar-client-go/pulsaradmin/pkg/rest"
	"github.com/apache/pulsar-client-go/pulsaradmin/pkg/utils"

	"github.com/pulsar-tc/pulsar-tc/internal/wireclient"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// status wants an answer with a status of the stock admin client's.
func status(t *testing.T, what string, err error, want int) {
	t.Helper()
	var refusal rest.Error
	switch {
	case want == 0 && err != nil:
		t.Errorf("%s: %v", what, err)
	case want != 0 && (!errors.As(err, &refusal) || refusal.Code != want || refusal.Reason == ""):
		t.Errorf("%s: %v, want status %d with a reason", what, err, want)
	}
}

// The stock Go admin client manages tenants, namespaces and their policies.
func TestAdminClientNamespaces(t *testing.T) {
	s := start(t, load(t))
	client := adminClient(t, s)
	tenants, namespaces := client.Tenants(), client.Namespaces()
	status(t, "create tenant without cluster", tenants.Create(utils.TenantData{Name: "t"}), http.StatusPreconditionFailed)
	data := utils.TenantData{Name: "t", AdminRoles: []string{"boss"}, AllowedClusters: []string{"standalone"}}
	status(t, "create namespace without tenant", namespaces.CreateNamespace("t/ns"), http.StatusNotFound)
	status(t, "create tenant", tenants.Create(data), 0)
	status(t, "create tenant again", tenants.Create(data), http.StatusConflict)
	status(t, "create namespace", namespaces.CreateNamespace("t/ns"), 0)
	status(t, "create namespace again", namespaces.CreateNamespace("t/ns"), http.StatusConflict)
	status(t, "delete tenant that is in use", tenants.Delete("t"), http.StatusConflict)
	found, err := namespaces.GetNamespaces("t")
	if err != nil || !slices.Equal(found, []string{"t/ns"}) {
		t.Errorf("namespaces: %v, %v", found, err)
	}
	status(t, "retention with one zero", namespaces.SetRetention("t/ns", utils.NewRetentionPolicies(0, 5)), http.StatusPreconditionFailed)
	status(t, "retention", namespaces.SetRetention("t/ns", utils.NewRetentionPolicies(7, 5)), 0)
	status(t, "quota", namespaces.SetBacklogQuota("t/ns", utils.NewBacklogQuota(10, 0, utils.ProducerException), utils.DestinationStorage), 0)
	name, _ := utils.GetNamespaceName("t/ns")
	status(t, "permission", namespaces.GrantNamespacePermission(*name, "app", []utils.AuthAction{"produce"}), 0)
	policies, err := namespaces.GetPolicies("t/ns")
	if err != nil || policies.RetentionPolicies == nil || policies.RetentionPolicies.RetentionTimeInMinutes != 7 ||
		policies.BacklogQuotaMap[utils.DestinationStorage].Policy != utils.ProducerException || len(policies.AuthPolicies.NamespaceAuth["app"]) != 1 {
		t.Errorf("policies: %+v, %v", policies, err)
	}
	topic, _ := utils.GetTopicName("persistent://t/ns/x")
	status(t, "create topic", client.Topics().Create(*topic, 2), 0)
	status(t, "delete namespace with topics", namespaces.DeleteNamespace("t/ns"), http.StatusConflict)
	status(t, "delete topic", client.Topics().Delete(*topic, true, false), 0)
	status(t, "delete namespace", namespaces.DeleteNamespace("t/ns"), 0)
	status(t, "delete tenant", tenants.Delete("t"), 0)
	if _, err := namespaces.GetPolicies("t/ns"); err == nil {
		t.Error("a deleted namespace has policies")
	}
}

// The stock Go admin client manages topics, subscriptions and schemas, and reads messages and stats.
func TestAdminClientTopics(t *testing.T) {
	s := start(t, load(t))
	client := adminClient(t, s)
	topics, subscriptions := client.Topics(), client.Subscriptions()
	name, _ := utils.GetTopicName("persistent://public/default/x")
	status(t, "stats of nothing", statsError(topics, name), http.StatusNotFound)
	status(t, "create", topics.Create(*name, 0), 0)
	status(t, "create again", topics.Create(*name, 0), http.StatusConflict)
	status(t, "subscribe", subscriptions.Create(*name, "a/b c", utils.Earliest), 0)
	status(t, "subscribe again", subscriptions.Create(*name, "a/b c", utils.Earliest), http.StatusConflict)
	pulsarClient := officialClient(t, s)
	producer, err := pulsarClient.CreateProducer(pulsar.ProducerOptions{Topic: name.String(), DisableBatching: true})
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	sent, err := producer.Send(ctx, &pulsar.ProducerMessage{Payload: []byte("hello"), Properties: map[string]string{"Key=1": "ä"}})
	if err != nil {
		t.Fatal(err)
	}
	status(t, "delete a topic in use", topics.Delete(*name, false, true), http.StatusPreconditionFailed)
	messages, err := subscriptions.GetMessagesByID(*name, sent.LedgerID(), sent.EntryID())
	if err != nil || len(messages) != 1 || string(messages[0].Payload) != "hello" || messages[0].Properties["Key=1"] != "ä" {
		t.Errorf("messages: %+v, %v", messages, err)
	}
	_, err = subscriptions.GetMessagesByID(*name, sent.LedgerID(), sent.EntryID()+1)
	status(t, "message that is not there", err, http.StatusNotFound)
	peeked, err := subscriptions.PeekMessages(*name, "a/b c", 1)
	if err != nil || len(peeked) != 1 || string(peeked[0].Payload) != "hello" {
		t.Errorf("peeked: %v, %v", peeked, err)
	}
	stats, err := topics.GetStats(*name)
	if err != nil || stats.MsgCounterIn != 1 || stats.Subscriptions["a/b c"].MsgBacklog != 1 || len(stats.Publishers) != 1 {
		t.Errorf("stats: %+v, %v", stats, err)
	}
	status(t, "skip all", subscriptions.ClearBacklog(*name, "a/b c"), 0)
	if stats, err := topics.GetStats(*name); err != nil || stats.Subscriptions["a/b c"].MsgBacklog != 0 {
		t.Errorf("stats after skip_all: %+v, %v", stats, err)
	}
	status(t, "unsubscribe", subscriptions.Delete(*name, "a/b c"), 0)
	status(t, "unsubscribe again", subscriptions.Delete(*name, "a/b c"), http.StatusNotFound)
	last, err := topics.Terminate(*name)
	if err != nil || last.EntryID != sent.EntryID() {
		t.Errorf("terminate: %+v, %v", last, err)
	}
	status(t, "policy", topics.SetMaxProducers(*name, 3), 0)
	status(t, "force delete", topics.Delete(*name, true, true), 0)
	status(t, "stats of a deleted topic", statsError(topics, name), http.StatusNotFound)
	status(t, "create anew", topics.Create(*name, 0), 0)
	for most := 0; most != -1 && ctx.Err() == nil; { // memory hears of it a moment later
		if most, err = topics.GetMaxProducers(*name); err != nil {
			t.Fatal(err)
		}
	}
	if ctx.Err() != nil {
		t.Error("a policy outlives its topic")
	}
}

// Non-persistent topics are listed, unloaded and deleted while somebody uses them.
func TestAdminNonPersistent(t *testing.T) {
	s := start(t, load(t))
	client := adminClient(t, s)
	name, _ := utils.GetTopicName("non-persistent://public/default/np")
	status(t, "create", client.Topics().Create(*name, 0), http.StatusPreconditionFailed)
	pulsarClient := officialClient(t, s)
	producer, err := pulsarClient.CreateProducer(pulsar.ProducerOptions{Topic: name.String()})
	if err != nil {
		t.Fatal(err)
	}
	namespace, _ := utils.GetNamespaceName("public/default")
	if _, plain, err := client.Topics().List(*namespace); err != nil || !slices.Contains(plain, name.String()) {
		t.Errorf("list: %v, %v", plain, err)
	}
	status(t, "delete while in use", client.Topics().Delete(*name, false, true), http.StatusPreconditionFailed)
	status(t, "unload", client.Topics().Unload(*name), 0)
	producer.Close()
}

func statsError(topics pulsaradmin.Topics, name *utils.TopicName) error {
	_, err := topics.GetStats(*name)
	return err
}

func getObject(t *testing.T, url string) (int, map[string]any) {
	t.Helper()
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	var body map[string]any
	if len(text) > 0 && json.Unmarshal(text, &body) != nil {
		t.Errorf("%s: no JSON object: %s", url, text)
	}
	return answer.StatusCode, body
}

// TC-27 and the calls that clients' suites make: metadata of live and ended transactions, abort by an operator.
func TestAdminTransactions(t *testing.T) {
	s := start(t, load(t))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	client := dialTC(ctx, t, s)
	id, err := client.Begin(ctx, 0, 60_000, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Call(ctx, wireclient.AddPartitions(id, "persistent://public/default/x")); err != nil {
		t.Fatal(err)
	}
	base := s.WebURL() + "/admin/v3/transactions"
	metadata := func(id txn.ID) string { return fmt.Sprintf("%s/transactionMetadata/%d/%d", base, id.Most, id.Least) }
	code, body := getObject(t, metadata(id))
	produced, _ := body["producedPartitions"].(map[string]any)
	if code != http.StatusOK || body["status"] != "OPEN" || produced["persistent://public/default/x"] == nil || produced["x"] == nil {
		t.Errorf("open: %d %v", code, body)
	}
	if code, body := getObject(t, base+"/slowTransactions/1000"); code != http.StatusOK || len(body) != 1 {
		t.Errorf("slow: %d %v", code, body)
	}
	if code, body := getObject(t, base+"/coordinatorStats?coordinatorId=0"); code != http.StatusOK || body["state"] != "Ready" || body["ongoingTxnSize"] != 1.0 {
		t.Errorf("coordinator: %d %v", code, body)
	}
	abort := func(id txn.ID) int {
		answer, err := http.Post(fmt.Sprintf("%s/abortTransaction/%d/%d", base, id.Most, id.Least), "", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		return answer.StatusCode
	}
	if code := abort(id); code != http.StatusNoContent {
		t.Errorf("abort: %d", code)
	}
	if code, body := getObject(t, metadata(id)); code != http.StatusOK || body["status"] != "ABORTED" {
		t.Errorf("ended: %d %v", code, body)
	}
	if code := abort(id); code != http.StatusConflict {
		t.Errorf("abort of an ended one: %d", code)
	}
	for _, unknown := range []txn.ID{{Most: 0, Least: 1 << 40}, {Most: 77, Least: 1}} {
		if code, body := getObject(t, metadata(unknown)); code != http.StatusNotFound || body["reason"] == "" {
			t.Errorf("unknown: %d %v", code, body)
		}
		if code := abort(unknown); code != http.StatusNotFound {
			t.Errorf("abort of an unknown one: %d", code)
		}
	}
}

// Names in paths cannot leave their place, and whatever is not served is said in JSON.
// The version in the answer to a deletion is a number: the Java client never completes the call otherwise.
func TestAdminDeleteSchema(t *testing.T) {
	s := start(t, load(t))
	const path = "/admin/v2/schemas/public/default/typed/schema"
	for _, request := range []struct{ method, body, want string }{
		{http.MethodPost, `{"type":"STRING","schema":"","properties":{}}`, `{"version":"AAAAAAAAAAA="}`},
		{http.MethodDelete, "", `{"version":1}`},
	} {
		asked, err := http.NewRequestWithContext(t.Context(), request.method, s.WebURL()+path, strings.NewReader(request.body))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(asked)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || strings.TrimSpace(string(text)) != request.want {
			t.Errorf("%s: %s, %v, want %s", request.method, text, err, request.want)
		}
	}
}

func TestAdminPaths(t *testing.T) {
	s := start(t, load(t))
	for path, want := range map[string]int{
		"/admin/v2/nothing": http.StatusNotFound,
		"/admin/v2/persistent/public/default/a%2Fb/stats":                             http.StatusPreconditionFailed,
		"/admin/v2/persistent/public/default/a%00b/stats":                             http.StatusPreconditionFailed,
		"/admin/v2/persistent/public%2Fdefault/x/y/stats":                             http.StatusPreconditionFailed,
		"/admin/v2/namespaces/..%2Ftenant/x":                                          http.StatusPreconditionFailed,
		"/admin/v2/namespaces/public/%2e%2e":                                          http.StatusNotFound,
		"/admin/v2/persistent/public/default/%2e%2e/stats":                            http.StatusNotFound,
		"/admin/v2/persistent/public/nowhere/x/stats":                                 http.StatusNotFound,
		"/lookup/v2/topic/persistent/public/nowhere/x":                                http.StatusNotFound,
		"/lookup/v2/topic/elsewhere/public/default/x":                                 http.StatusNotFound,
		"/admin/v2/persistent/public/default/x/ledger/a/entry/1":                      http.StatusBadRequest,
		"/admin/v2/persistent/public/default/" + strings.Repeat("x", 7000) + "/stats": http.StatusNotFound,
	} {
		if code, body := getObject(t, s.WebURL()+path); code != want || body["reason"] == "" {
			t.Errorf("%.80s: %d %v, want %d", path, code, body, want)
		}
	}
	answer, err := http.Post(s.WebURL()+"/admin/v2/tenants", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("wrong method: %s", answer.Status)
	}
	large, err := http.NewRequestWithContext(t.Context(), http.MethodPut, s.WebURL()+"/admin/v2/namespaces/public/big",
		strings.NewReader(`{"x":"`+strings.Repeat("x", 2<<20)+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	answer, err = http.DefaultClient.Do(large)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("large body: %s", answer.Status)
	}
}
