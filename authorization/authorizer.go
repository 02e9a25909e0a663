package authorization

import (
	"context"
	"slices"
	"strings"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/topicname"
)

// Options say who may do what beside the stored policies.
type Options struct {
	// SuperUserRoles may do everything.
	SuperUserRoles []string
	// Wildcards lets a role of a grant begin or end with *, which stands for any text.
	// Source: broker.conf authorizationAllowWildcardsMatching.
	Wildcards bool
}

// Authorizer answers for roles. Errors of all methods: *Denied, *Unavailable.
type Authorizer struct {
	options  Options
	policies Policies
}

// New returns an Authorizer over the stored policies.
func New(options Options, policies Policies) *Authorizer {
	return &Authorizer{options: options, policies: policies}
}

// Lookup asks for what whoever produces or consumes may do: find a topic, its partitions and its schema. Every role may look
// up the coordinators.
func (a *Authorizer) Lookup(ctx context.Context, caller cnx.Caller, topic topicname.Name) error {
	if topic.Base() == topicname.AssignTopic {
		return nil
	}
	return a.each(caller, "look up", topic.String(), func(role string) (bool, error) {
		return a.onTopic(ctx, role, topic, Produce, Consume)
	})
}

// Produce asks for sends to a topic.
func (a *Authorizer) Produce(ctx context.Context, caller cnx.Caller, topic topicname.Name) error {
	return a.each(caller, "produce to", topic.String(), func(role string) (bool, error) {
		return a.onTopic(ctx, role, topic, Produce)
	})
}

// Consume asks for everything that a consumer does on a subscription. An empty subscription is any.
func (a *Authorizer) Consume(ctx context.Context, caller cnx.Caller, topic topicname.Name, subscription string) error {
	target := topic.String()
	if subscription != "" {
		target = subscription + " of " + target
	}
	return a.each(caller, "consume from", target, func(role string) (bool, error) {
		return a.onSubscription(ctx, role, topic, subscription)
	})
}

// ListTopics asks for the names of a namespace's topics.
func (a *Authorizer) ListTopics(ctx context.Context, caller cnx.Caller, namespace string) error {
	return a.Namespace(ctx, caller, namespace, Produce, Consume)
}

// Namespace asks for one of the actions on a whole namespace; without an action only its tenant's admins have the right.
func (a *Authorizer) Namespace(ctx context.Context, caller cnx.Caller, namespace string, actions ...Action) error {
	tenant, _, _ := strings.Cut(namespace, "/")
	return a.each(caller, "use namespace", namespace, func(role string) (bool, error) {
		admin, err := a.isAdmin(ctx, role, tenant)
		if admin || err != nil || len(actions) == 0 {
			return admin, err
		}
		grants, err := a.policies.NamespaceGrants(ctx, namespace)
		return a.granted(grants, role, actions), err
	})
}

// Tenant asks for what an admin of a tenant may do.
func (a *Authorizer) Tenant(ctx context.Context, caller cnx.Caller, tenant string) error {
	return a.each(caller, "administer tenant", tenant, func(role string) (bool, error) {
		return a.isAdmin(ctx, role, tenant)
	})
}

// Super asks for what super users alone may do; what says it in words.
func (a *Authorizer) Super(caller cnx.Caller, what string) error {
	return a.each(caller, "administer", what, func(string) (bool, error) { return false, nil })
}

// each asks for the role and, if there is one, for the proxy that spoke for it.
func (a *Authorizer) each(caller cnx.Caller, action, target string, may func(role string) (bool, error)) error {
	roles := []string{caller.Role}
	if caller.Proxy != "" {
		roles = append(roles, caller.Proxy)
	}
	for _, role := range roles {
		if role != "" && slices.Contains(a.options.SuperUserRoles, role) {
			continue
		}
		allowed, err := may(role)
		if err != nil {
			return &Unavailable{err}
		}
		if !allowed || role == "" {
			return &Denied{Role: role, Action: action, Target: target}
		}
	}
	return nil
}

func (a *Authorizer) isAdmin(ctx context.Context, role, tenant string) (bool, error) {
	admins, err := a.policies.TenantAdmins(ctx, tenant)
	return slices.Contains(admins, role), err
}

// onTopic reports that role has one of the actions on topic. Nobody but super users gets at the outcomes of transactions.
func (a *Authorizer) onTopic(ctx context.Context, role string, topic topicname.Name, actions ...Action) (bool, error) {
	if topic.TransactionInternal() {
		return false, nil
	}
	if admin, err := a.isAdmin(ctx, role, topic.Tenant); admin || err != nil {
		return admin, err
	}
	grants, err := a.policies.NamespaceGrants(ctx, topic.NamespaceName())
	if err != nil || a.granted(grants, role, actions) {
		return err == nil, err
	}
	names := []topicname.Name{topic}
	if base := topic.Base(); base != topic {
		names = append(names, base)
	}
	for _, name := range names {
		grants, err := a.policies.TopicGrants(ctx, name)
		if err != nil || a.granted(grants, role, actions) {
			return err == nil, err
		}
	}
	return false, nil
}

// onSubscription is onTopic for a consumer. The roles of a subscription bind all but admins.
func (a *Authorizer) onSubscription(ctx context.Context, role string, topic topicname.Name, subscription string) (bool, error) {
	allowed, err := a.onTopic(ctx, role, topic, Consume)
	if !allowed || err != nil || subscription == "" {
		return allowed, err
	}
	only, err := a.policies.SubscriptionRoles(ctx, topic.NamespaceName(), subscription)
	if err != nil || len(only) == 0 || slices.Contains(only, role) {
		return err == nil, err
	}
	return a.isAdmin(ctx, role, topic.Tenant)
}

// granted reports that grants give role one of the actions.
func (a *Authorizer) granted(grants map[string][]string, role string, actions []Action) bool {
	has := func(given []Action) bool {
		return slices.ContainsFunc(actions, func(wanted Action) bool { return slices.Contains(given, wanted) })
	}
	if has(grants[role]) {
		return true
	}
	if !a.options.Wildcards {
		return false
	}
	for pattern, given := range grants {
		if matchesWildcard(pattern, role) && has(given) {
			return true
		}
	}
	return false
}

// matchesWildcard reports that role fits a pattern with * at its beginning or its end.
//
// Source: PulsarAuthorizationProvider.checkWildcardPermission.
func matchesWildcard(pattern, role string) bool {
	if head, ok := strings.CutSuffix(pattern, "*"); ok && strings.HasPrefix(role, head) {
		return true
	}
	tail, ok := strings.CutPrefix(pattern, "*")
	return ok && strings.HasSuffix(role, tail)
}
