package pulsaradmin

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/pulsar-tc/pulsar-tc/authorization"
	"github.com/pulsar-tc/pulsar-tc/resources"
	"github.com/pulsar-tc/pulsar-tc/topicname"
)

func (h *handler) routePermissions() {
	h.route("GET"+namespacePath+"/permissions", h.getNamespacePermissions)
	h.route("POST"+namespacePath+"/permissions/{role}", h.grantNamespace)
	h.route("DELETE"+namespacePath+"/permissions/{role}", h.revokeNamespace)
	h.route("GET"+namespacePath+"/permissions/subscription", h.getSubscriptionPermissions)
	h.route("POST"+namespacePath+"/permissions/subscription/{subscription}", h.grantSubscription)
	h.route("DELETE"+namespacePath+"/permissions/{subscription}/{role}", h.revokeSubscription)
}

func (h *handler) routeTopicPermissions(domain string) {
	path := topicPath(domain) + "/permissions"
	h.route("GET "+path, inTopic(domain, administer, h.getTopicPermissions))
	h.route("POST "+path+"/{role}", inTopic(domain, administer, h.grantTopic))
	h.route("DELETE "+path+"/{role}", inTopic(domain, administer, h.revokeTopic))
}

const authMember = "auth_policies"

// authPolicies shows members that are empty, too: clients read them as maps.
func authPolicies(auth resources.AuthPolicies) resources.AuthPolicies {
	if auth.Namespace == nil {
		auth.Namespace = map[string][]string{}
	}
	if auth.Topics == nil {
		auth.Topics = map[string]map[string][]string{}
	}
	if auth.Subscriptions == nil {
		auth.Subscriptions = map[string][]string{}
	}
	return auth
}

// changeAuth alters the permissions of a namespace, and writes nothing if alter changes nothing.
func (h *handler) changeAuth(ctx context.Context, namespace string, alter func(*resources.AuthPolicies)) error {
	err := h.Resources.UpdateNamespace(ctx, namespace, func(d resources.Document) error {
		var before, stored resources.Policies
		if err := errors.Join(d.Decode(&before), d.Decode(&stored)); err != nil {
			return err
		}
		auth := authPolicies(stored.Auth)
		if alter(&auth); reflect.DeepEqual(auth, authPolicies(before.Auth)) {
			return errUnchanged
		}
		return d.Set(authMember, auth)
	})
	if errors.Is(err, errUnchanged) {
		return nil
	}
	return err
}

var errUnchanged = errors.New("the permissions are as they were")

var actions = []string{
	authorization.Produce, authorization.Consume, authorization.Functions, authorization.Sources, authorization.Sinks, authorization.Packages,
}

// grant reads a role and the actions that it is given.
func (c *call) grant() (role string, given []string, err error) {
	if err := c.need(&given); err != nil {
		return "", nil, err
	}
	for _, action := range given {
		if !slices.Contains(actions, action) {
			return "", nil, badBody(fmt.Errorf("action %.60q: want some of %v", action, actions))
		}
	}
	return c.PathValue("role"), given, nil
}

func (h *handler) getNamespacePermissions(c *call) (any, error) {
	found, err := c.policiesOf()
	if err != nil {
		return nil, err
	}
	return authPolicies(found.Auth).Namespace, nil
}

func (h *handler) grantNamespace(c *call) (any, error) {
	namespace, err := c.namespaceOf()
	if err != nil {
		return nil, err
	}
	role, given, err := c.grant()
	if err != nil {
		return nil, err
	}
	return nil, h.changeAuth(c.Context(), namespace, func(auth *resources.AuthPolicies) { auth.Namespace[role] = given })
}

func (h *handler) revokeNamespace(c *call) (any, error) {
	namespace, err := c.namespaceOf()
	if err != nil {
		return nil, err
	}
	return nil, h.changeAuth(c.Context(), namespace, func(auth *resources.AuthPolicies) { delete(auth.Namespace, c.PathValue("role")) })
}

func (h *handler) getSubscriptionPermissions(c *call) (any, error) {
	found, err := c.policiesOf()
	if err != nil {
		return nil, err
	}
	return authPolicies(found.Auth).Subscriptions, nil
}

func (h *handler) grantSubscription(c *call) (any, error) {
	namespace, err := c.namespaceOf()
	if err != nil {
		return nil, err
	}
	var roles []string
	if err := c.need(&roles); err != nil {
		return nil, err
	}
	subscription, err := c.subscription()
	if err != nil {
		return nil, err
	}
	return nil, h.changeAuth(c.Context(), namespace, func(auth *resources.AuthPolicies) { auth.Subscriptions[subscription] = roles })
}

// revokeSubscription takes one role away. A subscription without roles binds nobody any more.
func (h *handler) revokeSubscription(c *call) (any, error) {
	namespace, err := c.namespaceOf()
	if err != nil {
		return nil, err
	}
	subscription, err := c.subscription()
	if err != nil {
		return nil, err
	}
	return nil, h.changeAuth(c.Context(), namespace, func(auth *resources.AuthPolicies) {
		left := slices.DeleteFunc(slices.Clone(auth.Subscriptions[subscription]), func(role string) bool { return role == c.PathValue("role") })
		auth.Subscriptions[subscription] = left
		if len(left) == 0 {
			delete(auth.Subscriptions, subscription)
		}
	})
}

// getTopicPermissions answers what holds for a topic: its own grants and those of its namespace.
func (h *handler) getTopicPermissions(c *call, name topicname.Name) (any, error) {
	found, err := h.namespace(c.Context(), name.NamespaceName())
	if err != nil {
		return nil, err
	}
	joined := map[string][]string{}
	for _, grants := range []map[string][]string{found.Auth.Namespace, found.Auth.Topics[name.String()]} {
		for role, given := range grants {
			for _, action := range given {
				if !slices.Contains(joined[role], action) {
					joined[role] = append(joined[role], action)
				}
			}
		}
	}
	return joined, nil
}

func (h *handler) grantTopic(c *call, name topicname.Name) (any, error) {
	role, given, err := c.grant()
	if err != nil {
		return nil, err
	}
	return nil, h.changeAuth(c.Context(), name.NamespaceName(), func(auth *resources.AuthPolicies) {
		if auth.Topics[name.String()] == nil {
			auth.Topics[name.String()] = map[string][]string{}
		}
		auth.Topics[name.String()][role] = given
	})
}

// revokeTopic takes away what a role was given on the topic itself. Errors: 412 if that is nothing, as in Pulsar.
func (h *handler) revokeTopic(c *call, name topicname.Name) (any, error) {
	role, found := c.PathValue("role"), false
	err := h.changeAuth(c.Context(), name.NamespaceName(), func(auth *resources.AuthPolicies) {
		_, found = auth.Topics[name.String()][role]
		delete(auth.Topics[name.String()], role)
		if len(auth.Topics[name.String()]) == 0 {
			delete(auth.Topics, name.String())
		}
	})
	if err == nil && !found {
		err = badValue("Permissions are not set at the topic level")
	}
	return nil, err
}
