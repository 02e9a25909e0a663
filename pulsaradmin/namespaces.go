package pulsaradmin

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/resources"
	"github.com/pulsar-tc/pulsar-tc/topic"
	"github.com/pulsar-tc/pulsar-tc/topicname"
)

const namespacePath = " /admin/v2/namespaces/{tenant}/{namespace}"

func (h *handler) routeNamespaces() {
	h.route("GET /admin/v2/namespaces/{tenant}", h.listNamespaces)
	h.route("GET"+namespacePath, h.getNamespace)
	h.route("PUT"+namespacePath, h.createNamespace)
	h.route("DELETE"+namespacePath, h.deleteNamespace)
	h.route("GET"+namespacePath+"/topics", h.topicsOfNamespace)
	h.route("PUT"+namespacePath+"/unload", h.unloadNamespace)
	h.route("GET"+namespacePath+"/bundles", h.getBundles)
	h.route("PUT"+namespacePath+"/properties", h.setNamespaceProperties)
	h.route("GET"+namespacePath+"/properties", h.getNamespaceProperties)
	h.route("DELETE"+namespacePath+"/properties", h.deleteNamespaceProperties)
	for _, p := range h.namespacePolicies() {
		h.routeNamespacePolicy(p)
	}
	h.routeNamespacePolicy(policy{path: "replication", member: replicationMember, kind: h.clusterNames, unset: []string{h.Broker.Cluster}})
	h.route("DELETE"+namespacePath+"/removeOffloadPolicies", h.deleteNamespacePolicy(offloadPolicies))
}

func (h *handler) listNamespaces(c *call) (any, error) {
	tenant, err := c.tenantOf()
	if err != nil {
		return nil, err
	}
	return h.Resources.Namespaces(tenant)
}

// policiesOf returns the policies of the namespace in the path, for an admin.
func (c *call) policiesOf() (*resources.Policies, error) {
	namespace, err := c.namespaceOf()
	if err != nil {
		return nil, err
	}
	return c.h.namespace(c.Context(), namespace)
}

// namespace returns policies, or what does not exist of tenant and namespace.
func (h *handler) namespace(ctx context.Context, namespace string) (*resources.Policies, error) {
	if found, err := h.Resources.FindNamespace(ctx, namespace); found != nil || err != nil {
		return found, err
	}
	tenant, _, _ := strings.Cut(namespace, "/")
	if h.Resources.Tenant(tenant) == nil {
		return nil, resources.ErrTenantNotFound
	}
	return nil, resources.ErrNamespaceNotFound
}

// oneBundle is the whole hash range of a namespace: nothing here is split.
func oneBundle() map[string]any {
	return map[string]any{"boundaries": []string{"0x00000000", "0xffffffff"}, "numBundles": 1}
}

func (h *handler) getNamespace(c *call) (any, error) {
	found, err := c.policiesOf()
	if err != nil {
		return nil, err
	}
	answer := map[string]any{
		"auth_policies":        authPolicies(found.Auth),
		"replication_clusters": h.replicationClusters(found),
		"bundles":              oneBundle(),
		"backlog_quota_map":    map[string]any{},
	}
	for member, value := range found.Document {
		if member != "auth_policies" && member != "bundles" {
			answer[member] = value
		}
	}
	return answer, nil
}

func (h *handler) replicationClusters(p *resources.Policies) []string {
	if len(p.ReplicationClusters) > 0 {
		return p.ReplicationClusters
	}
	return []string{h.Broker.Cluster}
}

// createNamespace takes policies as its body, of which the bundles mean nothing here.
func (h *handler) createNamespace(c *call) (any, error) {
	namespace, err := c.namespaceOf()
	if err != nil {
		return nil, err
	}
	document := resources.Document{}
	if _, err := c.read(&document); err != nil {
		return nil, err
	}
	delete(document, "bundles")
	delete(document, "deleted")
	var given resources.Policies
	if err := document.Decode(&given); err != nil {
		return nil, badBody(err)
	}
	if err := h.checkClusters(given.ReplicationClusters); err != nil {
		return nil, err
	}
	if err := h.checkPolicies(document, &given); err != nil {
		return nil, err
	}
	return nil, h.Resources.CreateNamespace(c.Context(), namespace, document)
}

func (h *handler) namespacePolicies() []policy {
	return namespacePolicies(func() int { return h.Topics.MaxPartitions() })
}

// checkPolicies refuses for a new namespace what the paths of its policies refuse.
//
// Source: NamespacesBase.validatePolicies.
func (h *handler) checkPolicies(document resources.Document, given *resources.Policies) error {
	for _, p := range h.namespacePolicies() {
		value := bytes.TrimSpace(document[p.member])
		if !p.effect || len(value) == 0 || bytes.Equal(value, []byte("null")) {
			continue
		}
		if _, err := p.kind(value); err != nil {
			return fmt.Errorf("%s: %w", p.member, err)
		}
	}
	for kind, quota := range given.BacklogQuotas {
		if err := cmp.Or(checkQuotaType(kind), checkQuota(quota)); err != nil {
			return err
		}
	}
	return nil
}

// clusterNames is a list of clusters that exist.
func (h *handler) clusterNames(text []byte) (any, error) {
	var clusters []string
	if err := json.Unmarshal(text, &clusters); err != nil {
		return nil, badBody(err)
	}
	return clusters, h.checkClusters(clusters)
}

func (h *handler) checkClusters(clusters []string) error {
	known := h.Resources.Clusters()
	for _, cluster := range clusters {
		if !slices.Contains(known, cluster) {
			return &refusal{http.StatusForbidden, "Invalid cluster id: " + cluster}
		}
	}
	return nil
}

func (h *handler) deleteNamespace(c *call) (any, error) {
	namespace, err := c.namespaceOf()
	if err != nil {
		return nil, err
	}
	if c.flag("force") {
		return nil, h.emptyAndDelete(c, namespace)
	}
	return nil, h.Resources.DeleteNamespace(c.Context(), namespace)
}

// maxRounds bounds how often topics of a namespace are deleted again because clients have made new ones.
const maxRounds = 5

// emptyAndDelete deletes a namespace with its topics. A call that was cut off, or that clients with new topics have outrun, can
// be repeated.
func (h *handler) emptyAndDelete(c *call, namespace string) error {
	ctx, cancel := c.within()
	defer cancel()
	for range maxRounds {
		if err := h.empty(ctx, namespace); err != nil {
			return err
		}
		if err := h.Resources.DeleteNamespace(ctx, namespace); !errors.Is(err, resources.ErrNamespaceNotEmpty) {
			return err
		}
	}
	return resources.ErrNamespaceNotEmpty
}

func (h *handler) empty(ctx context.Context, namespace string) error {
	if _, err := h.namespace(ctx, namespace); err != nil {
		return err
	}
	partitioned, err := h.Topics.PartitionedTopics(ctx, namespace)
	if err != nil {
		return err
	}
	err = eachTopic(partitioned, func(name topicname.Name) error { return h.Topics.DeletePartitioned(ctx, name, true) })
	if err != nil {
		return err
	}
	plain, err := h.Topics.TopicsOfNamespace(ctx, namespace, pulsarproto.CommandGetTopicsOfNamespace_ALL)
	if err != nil {
		return err
	}
	segments, err := h.Topics.Segments(ctx, namespace)
	if err != nil {
		return err
	}
	return eachTopic(append(plain, segments...), func(name topicname.Name) error { return h.Topics.DeleteTopic(ctx, name, true) })
}

// eachTopic does something with each topic; one that is gone by then is done.
func eachTopic(names []string, do func(topicname.Name) error) error {
	for _, text := range names {
		name, err := topicname.Parse(text)
		if err != nil {
			return err
		}
		if err := do(name); err != nil && !errors.Is(err, topic.ErrTopicNotFound) {
			return err
		}
	}
	return nil
}

// topicsOfNamespace lists topics, partitions one by one. Who does not say which mode means persistent ones; the client's
// lookup over HTTP relies on it.
func (h *handler) topicsOfNamespace(c *call) (any, error) {
	namespace, err := c.topicsOf()
	if err != nil {
		return nil, err
	}
	mode := pulsarproto.CommandGetTopicsOfNamespace_PERSISTENT
	if word := c.URL.Query().Get("mode"); word != "" {
		number, known := pulsarproto.CommandGetTopicsOfNamespace_Mode_value[strings.ToUpper(word)]
		if !known {
			return nil, &refusal{http.StatusBadRequest, "mode=" + word + ": want PERSISTENT, NON_PERSISTENT or ALL"}
		}
		mode = pulsarproto.CommandGetTopicsOfNamespace_Mode(number)
	}
	return h.listTopics(c.Context(), namespace, mode)
}

func (h *handler) listTopics(ctx context.Context, namespace string, mode pulsarproto.CommandGetTopicsOfNamespace_Mode) ([]string, error) {
	names, err := h.Topics.TopicsOfNamespace(ctx, namespace, mode)
	return orEmpty(names), err
}

func (h *handler) unloadNamespace(c *call) (any, error) {
	namespace, err := c.namespaceOf()
	if err != nil {
		return nil, err
	}
	if _, err := h.namespace(c.Context(), namespace); err != nil {
		return nil, err
	}
	ctx, cancel := c.within()
	defer cancel()
	names, err := h.listTopics(ctx, namespace, pulsarproto.CommandGetTopicsOfNamespace_ALL)
	if err != nil {
		return nil, err
	}
	return nil, eachTopic(names, func(name topicname.Name) error {
		return c.orThere(ctx, name, h.Topics.Unload(ctx, name), "/unload", nil)
	})
}

func (h *handler) getBundles(c *call) (any, error) {
	if _, err := c.policiesOf(); err != nil {
		return nil, err
	}
	return oneBundle(), nil
}

const propertiesMember = "properties"

func (h *handler) setNamespaceProperties(c *call) (any, error) {
	namespace, err := c.namespaceOf()
	if err != nil {
		return nil, err
	}
	var given map[string]string
	if err := c.need(&given); err != nil {
		return nil, err
	}
	return nil, h.Resources.UpdateNamespace(c.Context(), namespace, func(d resources.Document) error {
		properties, err := d.Strings(propertiesMember)
		if err != nil {
			return err
		}
		for name, value := range given {
			properties[name] = value
		}
		return d.Set(propertiesMember, properties)
	})
}

func (h *handler) getNamespaceProperties(c *call) (any, error) {
	found, err := c.policiesOf()
	if err != nil {
		return nil, err
	}
	return found.Document.Strings(propertiesMember)
}

func (h *handler) deleteNamespaceProperties(c *call) (any, error) {
	namespace, err := c.namespaceOf()
	if err != nil {
		return nil, err
	}
	return nil, h.Resources.UpdateNamespace(c.Context(), namespace, func(d resources.Document) error {
		delete(d, propertiesMember)
		return nil
	})
}
