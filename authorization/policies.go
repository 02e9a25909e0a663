package authorization

import (
	"context"

	"github.com/pulsar-tc/pulsar-tc/topicname"
)

// Action is a right that can be granted, spelled as the policies store it. It is a plain string, so that what stores the
// policies need not know this package.
//
// Source: AuthAction.java.
type Action = string

// The actions that grants name.
const (
	Produce   Action = "produce"
	Consume   Action = "consume"
	Functions Action = "functions"
	Sources   Action = "sources"
	Sinks     Action = "sinks"
	Packages  Action = "packages"
)

// Policies are the stored rights. Methods may read the store, in a goroutine of the request. What they return is shared and
// not changed. Something that does not exist has no rights and is no error.
type Policies interface {
	// TenantAdmins are the admin roles of a tenant.
	TenantAdmins(ctx context.Context, tenant string) ([]string, error)
	// NamespaceGrants are the actions of each role on every topic of namespace, tenant/namespace.
	// Source: Policies.auth_policies.namespace_auth.
	NamespaceGrants(ctx context.Context, namespace string) (map[string][]string, error)
	// TopicGrants are those of each role on one topic, by exactly this name: a partition has its own beside its topic's.
	// Source: Policies.auth_policies.destination_auth.
	TopicGrants(ctx context.Context, topic topicname.Name) (map[string][]string, error)
	// SubscriptionRoles are the only roles that may use a subscription name in namespace; none: all that may consume.
	// Source: Policies.auth_policies.subscription_auth_roles.
	SubscriptionRoles(ctx context.Context, namespace, subscription string) ([]string, error)
}
