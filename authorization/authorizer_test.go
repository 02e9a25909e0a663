package authorization_test

import (
	"context"
	"errors"
	"testing"

	"github.com/pulsar-tc/pulsar-tc/authorization"
	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topicname"
)

type grants = map[string][]string

// policies are fixed rights. failure, if set, is what every method returns.
type policies struct {
	admins        map[string][]string
	namespaces    map[string]grants
	topics        map[string]grants
	subscriptions map[string][]string
	failure       error
}

func (p *policies) TenantAdmins(_ context.Context, tenant string) ([]string, error) {
	return p.admins[tenant], p.failure
}

func (p *policies) NamespaceGrants(_ context.Context, namespace string) (map[string][]string, error) {
	return p.namespaces[namespace], p.failure
}

func (p *policies) TopicGrants(_ context.Context, topic topicname.Name) (map[string][]string, error) {
	return p.topics[topic.String()], p.failure
}

func (p *policies) SubscriptionRoles(_ context.Context, namespace, subscription string) ([]string, error) {
	return p.subscriptions[namespace+" "+subscription], p.failure
}

func somePolicies() *policies {
	return &policies{
		admins: map[string][]string{"t": {"boss", "proxy"}, "pulsar": {"boss"}},
		namespaces: map[string]grants{
			"t/n": {"writer": {"produce"}, "reader": {"consume"}, "app-*": {"produce"}, "*-job": {"consume"}, "idle": {"functions"}},
		},
		topics: map[string]grants{
			"persistent://t/n/one":               {"guest": {"produce", "consume"}},
			"persistent://t/n/two-partition-3":   {"guest": {"consume"}},
			"non-persistent://t/n/one":           {"other": {"produce"}},
			"persistent://t/n/three-partition-x": {"guest": {"produce"}},
		},
		subscriptions: map[string][]string{"t/n private": {"guest"}},
	}
}

func TestTopics(t *testing.T) {
	const one, far = "persistent://t/n/one", "persistent://u/n/one"
	tests := []struct {
		role, proxy, topic, subscription string
		wildcards                        bool
		want                             string // of lookup, produce, consume: their first letters where allowed
	}{
		{role: "root", topic: one, want: "lpc"},
		{role: "root", topic: far, want: "lpc"},
		{role: "boss", topic: one, want: "lpc"},
		{role: "boss", topic: far, want: ""},
		{role: "writer", topic: one, want: "lp"},
		{role: "reader", topic: one, want: "lc"},
		{role: "reader", topic: one, subscription: "private", want: "l"},
		{role: "guest", topic: one, subscription: "private", want: "lpc"},
		{role: "boss", topic: one, subscription: "private", want: "lpc"},
		{role: "idle", topic: one, want: ""},
		{role: "guest", topic: one, want: "lpc"},
		{role: "guest", topic: one + "-partition-0", want: "lpc"},
		{role: "guest", topic: "persistent://t/n/two", want: ""},
		{role: "guest", topic: "persistent://t/n/two-partition-3", want: "lc"},
		{role: "guest", topic: "persistent://t/n/two-partition-4", want: ""},
		{role: "guest", topic: "persistent://t/n/three", want: ""},
		{role: "guest", topic: "non-persistent://t/n/one", want: ""},
		{role: "other", topic: "non-persistent://t/n/one", want: "lp"},
		{role: "", topic: one, want: ""},
		{role: "app-1", topic: one, want: ""},
		{role: "app-1", topic: one, wildcards: true, want: "lp"},
		{role: "my-job", topic: one, wildcards: true, want: "lc"},
		{role: "app", topic: one, wildcards: true, want: ""},
		{role: "app-*", topic: one, want: "lp"},
		{role: "guest", proxy: "proxy", topic: one, want: "lpc"},
		{role: "guest", proxy: "reader", topic: one, want: "lc"},
		{role: "guest", proxy: "nobody", topic: one, want: ""},
		{role: "root", proxy: "nobody", topic: one, want: ""},
		{role: "boss", topic: "persistent://pulsar/system/__terminated_txn_state_0", want: ""},
		{role: "root", topic: "persistent://pulsar/system/__terminated_txn_state_0", want: "lpc"},
		{role: "idle", topic: "persistent://pulsar/system/transaction_coordinator_assign", want: "l"},
		{role: "idle", topic: "persistent://pulsar/system/transaction_coordinator_assign-partition-5", want: "l"},
		{role: "", topic: "persistent://pulsar/system/transaction_coordinator_assign", want: "l"},
	}
	for _, test := range tests {
		options := authorization.Options{SuperUserRoles: []string{"root"}, Wildcards: test.wildcards}
		a := authorization.New(options, somePolicies())
		topic, err := topicname.Parse(test.topic)
		if err != nil {
			t.Fatal(err)
		}
		caller := cnx.Caller{Role: test.role, Proxy: test.proxy, Known: true}
		got := ""
		for _, asked := range []struct {
			letter string
			err    error
		}{
			{"l", a.Lookup(t.Context(), caller, topic)},
			{"p", a.Produce(t.Context(), caller, topic)},
			{"c", a.Consume(t.Context(), caller, topic, test.subscription)},
		} {
			if asked.err == nil {
				got += asked.letter
			} else {
				checkDenied(t, asked.err)
			}
		}
		if got != test.want {
			t.Errorf("%+v: allowed %q", test, got)
		}
	}
}

func checkDenied(t *testing.T, err error) {
	t.Helper()
	var denied *authorization.Denied
	if !errors.As(err, &denied) || denied.ServerError() != pulsarproto.ServerError_AuthorizationError {
		t.Errorf("refused with %v", err)
	}
}

func TestNamespacesAndTenants(t *testing.T) {
	a := authorization.New(authorization.Options{SuperUserRoles: []string{"root"}}, somePolicies())
	for role, want := range map[string][4]bool{ // list topics, packages, tenant, super
		"root":   {true, true, true, true},
		"boss":   {true, true, true, false},
		"writer": {true, false, false, false},
		"reader": {true, false, false, false},
		"guest":  {false, false, false, false},
		"":       {false, false, false, false},
	} {
		caller := cnx.Caller{Role: role, Known: true}
		got := [4]bool{
			a.ListTopics(t.Context(), caller, "t/n") == nil,
			a.Namespace(t.Context(), caller, "t/n", authorization.Packages) == nil,
			a.Tenant(t.Context(), caller, "t") == nil,
			a.Super(caller, "tenants") == nil,
		}
		if got != want {
			t.Errorf("%q: got %v, want %v", role, got, want)
		}
	}
}

// Rights that cannot be read are no rights, and a reason to ask again.
func TestUnavailable(t *testing.T) {
	broken := errors.New("store is away")
	a := authorization.New(authorization.Options{SuperUserRoles: []string{"root"}}, &policies{failure: broken})
	topic := topicname.Name{Domain: topicname.Persistent, Tenant: "t", Namespace: "n", Local: "x"}
	caller := cnx.Caller{Role: "someone", Known: true}
	for _, err := range []error{
		a.Lookup(t.Context(), caller, topic), a.Produce(t.Context(), caller, topic), a.Consume(t.Context(), caller, topic, "s"),
		a.ListTopics(t.Context(), caller, "t/n"), a.Tenant(t.Context(), caller, "t"),
	} {
		var unavailable *authorization.Unavailable
		if !errors.As(err, &unavailable) || !errors.Is(err, broken) || unavailable.ServerError() != pulsarproto.ServerError_ServiceNotReady {
			t.Errorf("got %v", err)
		}
	}
	if err := a.Produce(t.Context(), cnx.Caller{Role: "root", Known: true}, topic); err != nil {
		t.Errorf("super user: %v", err)
	}
}

// The refusal for a topic is the same whether its tenant, namespace or topic exists: the text differs by the name asked for only.
func TestRefusalHidesExistence(t *testing.T) {
	a := authorization.New(authorization.Options{}, somePolicies())
	caller := cnx.Caller{Role: "guest", Known: true}
	existing := a.Produce(t.Context(), caller, topicname.Name{Domain: topicname.Persistent, Tenant: "t", Namespace: "n", Local: "x"})
	missing := a.Produce(t.Context(), caller, topicname.Name{Domain: topicname.Persistent, Tenant: "q", Namespace: "n", Local: "x"})
	if existing.Error() != `"guest" is not authorized to produce to persistent://t/n/x` ||
		missing.Error() != `"guest" is not authorized to produce to persistent://q/n/x` {
		t.Errorf("got %v and %v", existing, missing)
	}
}
