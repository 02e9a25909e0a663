package resources

import (
	"context"

	"github.com/pulsar-tc/pulsar-tc/topicname"
)

// TenantAdmins returns the admin roles of a tenant. It implements authorization.Policies, as the rest of this file; what does
// not exist has no rights, and nothing here waits.
func (r *Resources) TenantAdmins(_ context.Context, tenant string) ([]string, error) {
	if t := r.Tenant(tenant); t != nil {
		return t.AdminRoles, nil
	}
	return nil, nil
}

// NamespaceGrants returns the actions of each role on all topics of tenant/namespace.
func (r *Resources) NamespaceGrants(_ context.Context, namespace string) (map[string][]string, error) {
	return r.auth(namespace).Namespace, nil
}

// TopicGrants returns the actions of each role on the topic of exactly this name.
func (r *Resources) TopicGrants(_ context.Context, topic topicname.Name) (map[string][]string, error) {
	return r.auth(topic.NamespaceName()).Topics[topic.String()], nil
}

// SubscriptionRoles returns the only roles that may use a subscription name; none: all that may consume.
func (r *Resources) SubscriptionRoles(_ context.Context, namespace, subscription string) ([]string, error) {
	return r.auth(namespace).Subscriptions[subscription], nil
}

func (r *Resources) auth(namespace string) AuthPolicies {
	if p := r.Namespace(namespace); p != nil {
		return p.Auth
	}
	return AuthPolicies{}
}
