package pulsaradmin

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/pulsar-tc/pulsar-tc/authorization"
	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/internal/etcdtest"
	"github.com/pulsar-tc/pulsar-tc/resources"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// unreachable are topics, schemas and transactions that nobody gets at: a call panics.
type unreachable struct {
	Topics
	Schemas
	Transactions
}

func (unreachable) Count() uint64 { return 0 }

// guarded is a handler whose callers are who they say in the header Role.
func guarded(t *testing.T) *handler {
	t.Helper()
	store := etcdtest.Open(t, nil)
	r, err := resources.Open(t.Context(), resources.Options{
		KV: store.Client(), Watcher: store.Client(), Keys: etcdtest.Space, Creator: etcdtest.Creator(t, store.Client()), Cluster: "here", Log: zerolog.Nop(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return newHandler(Options{
		Resources: r, Topics: unreachable{}.Topics, Schemas: unreachable{}.Schemas, Transactions: unreachable{},
		Broker: Broker{Cluster: "here", Ready: func() error { return nil }},
		Authenticate: func(request *http.Request) (cnx.Caller, error) {
			role := request.Header.Get("Role")
			if role == "" {
				return cnx.Caller{}, errors.New("who are you?")
			}
			return cnx.Caller{Role: role, Known: true}, nil
		},
		Rights: authorization.New(authorization.Options{SuperUserRoles: []string{"root"}}, r),
		Log:    zerolog.Nop(),
	})
}

func (h *handler) try(method, path, role, body string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(method, path, strings.NewReader(body))
	if role != "" {
		request.Header.Set("Role", role)
	}
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, request)
	return answer
}

var wildcard = regexp.MustCompile(`\{(\w+)\}`)

// forEverybody are the paths that need no right: they tell nothing of what is stored, or are Pulsar's so (see audience).
var forEverybody = []string{
	"GET /admin/v2/clusters", "GET /admin/v2/brokers/health", "GET /admin/v2/brokers/ready", "GET /admin/v2/brokers/version",
	"GET /admin/v3/transactions/transactionMetadata/{most}/{least}",
}

// Who has no rights is refused on every path before anything is looked at, with one answer for what exists and what does not.
func TestRefusals(t *testing.T) {
	h := guarded(t)
	if err := h.Resources.CreateTenant(t.Context(), "t", nil); err != nil {
		t.Fatal(err)
	}
	if err := h.Resources.CreateNamespace(t.Context(), "t/n", nil); err != nil {
		t.Fatal(err)
	}
	for _, pattern := range h.patterns {
		if slices.Contains(forEverybody, pattern) {
			continue
		}
		method, path, _ := strings.Cut(pattern, " ")
		at := func(tenant string) string {
			return wildcard.ReplaceAllStringFunc(path, func(part string) string {
				switch part {
				case "{tenant}":
					return tenant
				case "{namespace}":
					return "n"
				case "{domain}":
					return "persistent"
				}
				return "1"
			})
		}
		existing, missing := h.try(method, at("t"), "nobody", ""), h.try(method, at("q"), "nobody", "")
		if existing.Code != http.StatusUnauthorized || missing.Code != http.StatusUnauthorized {
			t.Errorf("%s: %d %s, %d %s", pattern, existing.Code, existing.Body, missing.Code, missing.Body)
			continue
		}
		hide := func(text, tenant string) string {
			return strings.NewReplacer("tenant "+tenant, "", "//"+tenant+"/n", "", tenant+"/n", "").Replace(text)
		}
		if hide(existing.Body.String(), "t") != hide(missing.Body.String(), "q") {
			t.Errorf("%s tells what exists: %s, %s", pattern, existing.Body, missing.Body)
		}
		if answer := h.try(method, at("t"), "", ""); answer.Code != http.StatusUnauthorized {
			t.Errorf("%s without credentials: %d", pattern, answer.Code)
		}
	}
}

// Rights are what the stored policies say at that moment.
func TestRights(t *testing.T) {
	h := guarded(t)
	for _, step := range []struct {
		method, path, role, body string
		want                     int
	}{
		{"PUT", "/admin/v2/tenants/t", "boss", `{"adminRoles":["boss"],"allowedClusters":["here"]}`, http.StatusUnauthorized},
		{"PUT", "/admin/v2/tenants/t", "root", `{"adminRoles":["boss"],"allowedClusters":["here"]}`, http.StatusNoContent},
		{"GET", "/admin/v2/tenants/t", "boss", "", http.StatusUnauthorized},
		{"PUT", "/admin/v2/namespaces/t/n", "app", "", http.StatusUnauthorized},
		{"PUT", "/admin/v2/namespaces/t/n", "boss", "", http.StatusNoContent},
		{"POST", "/admin/v2/namespaces/t/n/messageTTL", "app", "5", http.StatusUnauthorized},
		{"POST", "/admin/v2/namespaces/t/n/messageTTL", "boss", "5", http.StatusNoContent},
		{"GET", "/lookup/v2/topic/persistent/t/n/x", "app", "", http.StatusUnauthorized},
		{"POST", "/admin/v2/namespaces/t/n/permissions/app", "app", `["produce"]`, http.StatusUnauthorized},
		{"POST", "/admin/v2/namespaces/t/n/permissions/app", "boss", `["fly"]`, http.StatusBadRequest},
		{"POST", "/admin/v2/namespaces/t/n/permissions/app", "boss", `["produce"]`, http.StatusNoContent},
		{"GET", "/lookup/v2/topic/persistent/t/n/x", "app", "", http.StatusOK},
		{"GET", "/admin/v2/persistent/t/n/x/ledger/1/entry/1", "app", "", http.StatusUnauthorized}, // to produce is not to read
		{"DELETE", "/admin/v2/namespaces/t/n/permissions/app", "boss", "", http.StatusNoContent},
		{"GET", "/lookup/v2/topic/persistent/t/n/x", "app", "", http.StatusUnauthorized},
		{"POST", "/admin/v2/persistent/t/n/x/permissions/app", "boss", `["produce"]`, http.StatusNoContent},
		{"GET", "/lookup/v2/topic/persistent/t/n/x", "app", "", http.StatusOK},
		{"GET", "/lookup/v2/topic/persistent/t/n/y", "app", "", http.StatusUnauthorized},
		{"DELETE", "/admin/v2/persistent/t/n/x/permissions/app", "boss", "", http.StatusNoContent},
		{"DELETE", "/admin/v2/persistent/t/n/x/permissions/app", "boss", "", http.StatusPreconditionFailed},
	} {
		if answer := h.try(step.method, step.path, step.role, step.body); answer.Code != step.want {
			t.Errorf("%s %s as %s: %d %s, want %d", step.method, step.path, step.role, answer.Code, answer.Body, step.want)
		}
	}
}

// Messages and schemas are read by a few callers at once; others wait as long as they like to. Strangers are refused at once, and a
// panic gives its place back.
func TestLargeAnswers(t *testing.T) {
	h := guarded(t)
	const path = "/admin/v2/schemas/public/default/x/schemas"
	for range maxLarge {
		h.large <- struct{}{}
	}
	if answer := h.try("GET", path, "stranger", ""); answer.Code != http.StatusUnauthorized {
		t.Errorf("a stranger: %d", answer.Code)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	request := httptest.NewRequestWithContext(ctx, "GET", path, nil)
	request.Header.Set("Role", "root")
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, request)
	if answer.Code != http.StatusServiceUnavailable || len(h.large) != maxLarge {
		t.Errorf("one too many: %d, %d places are taken", answer.Code, len(h.large))
	}
	<-h.large
	if answer := h.try("GET", path, "root", ""); answer.Code != http.StatusInternalServerError { // that of a panic
		t.Errorf("with a place: %d", answer.Code)
	}
	if len(h.large) != maxLarge-1 {
		t.Errorf("%d places are taken, want %d", len(h.large), maxLarge-1)
	}
}

// A panic ends one request with an answer, and the next is served.
func TestPanic(t *testing.T) {
	h := guarded(t)
	if answer := h.try("GET", "/admin/v2/persistent/public/default/x/stats", "root", ""); answer.Code != http.StatusInternalServerError ||
		!strings.Contains(answer.Body.String(), `{"reason":"internal error"}`) {
		t.Errorf("panic: %d %s", answer.Code, answer.Body)
	}
	if answer := h.try("GET", "/admin/v2/tenants", "root", ""); answer.Code != http.StatusOK {
		t.Errorf("afterwards: %d %s", answer.Code, answer.Body)
	}
}

func TestTransactionsOff(t *testing.T) {
	h := guarded(t)
	if answer := h.try("GET", "/admin/v3/transactions/coordinators", "root", ""); answer.Code != http.StatusServiceUnavailable {
		t.Errorf("transactions are off: %d %s", answer.Code, answer.Body)
	}
	if statusOf(&txn.NotFoundError{}) != http.StatusNotFound {
		t.Error("a transaction that is not found")
	}
}
