package resources

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/topicname"
)

// Namespace returns the policies of tenant/namespace; nil if it does not exist. They must not be changed.
func (r *Resources) Namespace(namespace string) *Policies {
	_, _, name := splitNamespace(namespace)
	return r.namespaces.get(name)
}

// NamespaceExists reports whether tenant/namespace exists.
func (r *Resources) NamespaceExists(namespace string) bool { return r.Namespace(namespace) != nil }

// Namespaces lists the namespaces of a tenant, each with the tenant's name. Errors: ErrTenantNotFound.
func (r *Resources) Namespaces(tenant string) ([]string, error) {
	if r.Tenant(tenant) == nil {
		return nil, ErrTenantNotFound
	}
	return unescaped(r.namespaces.names(tenantName(tenant)+"/"), tenant+"/"), nil
}

// CreateNamespace makes tenant/namespace. Errors: ErrTenantNotFound, ErrNamespaceExists, *Error of a bad policy.
func (r *Resources) CreateNamespace(ctx context.Context, namespace string, document Document) error {
	tenant, _, name := splitNamespace(namespace)
	return create(ctx, r, r.namespaces, creation{
		name: name, document: document, taken: ErrNamespaceExists,
		needs: []clientv3.Cmp{exists(r.options.Keys.Tenant(tenant))}, missing: ErrTenantNotFound,
	})
}

// UpdateNamespace alters the policies of tenant/namespace. Errors: ErrTenantNotFound, ErrNamespaceNotFound, those of alter.
func (r *Resources) UpdateNamespace(ctx context.Context, namespace string, alter func(Document) error) error {
	tenant, _, name := splitNamespace(namespace)
	absent := ErrNamespaceNotFound
	if r.Tenant(tenant) == nil {
		absent = ErrTenantNotFound
	}
	return update(ctx, r, r.namespaces, name, absent, alter)
}

// DeleteNamespace deletes tenant/namespace, with the policies of topics that were kept for it, if it has no topics.
// Errors: ErrNamespaceNotFound, ErrNamespaceNotEmpty.
func (r *Resources) DeleteNamespace(ctx context.Context, namespace string) error {
	tenant, local, name := splitNamespace(namespace)
	keys := r.options.Keys
	key := keys.Namespace(tenant, local)
	compares, then := []clientv3.Cmp{exists(key)}, []clientv3.Op{clientv3.OpDelete(key)}
	for _, domain := range domains {
		compares = append(compares, none(keys.TopicNamePrefix(domain, tenant, local)), none(keys.PartitionedPrefix(domain, tenant, local)))
		then = append(then, clientv3.OpDelete(keys.NamespacePoliciesPrefix(domain, tenant, local), clientv3.WithPrefix()))
	}
	result, err := r.commit(ctx, "delete namespace "+namespace, compares, then, []clientv3.Op{clientv3.OpGet(key, clientv3.WithCountOnly())})
	switch {
	case err != nil:
		return err
	case result.Succeeded:
		r.namespaces.wrote(name, nil, result.Header.Revision)
		r.forgetTopics(name, result.Header.Revision)
		return nil
	case result.Responses[0].GetResponseRange().Count == 0:
		return ErrNamespaceNotFound
	}
	return ErrNamespaceNotEmpty
}

// forgetTopics forgets the policies of the topics of a namespace that was deleted.
func (r *Resources) forgetTopics(namespace string, revision int64) {
	for _, domain := range domains {
		below := domain + "/" + namespace + "/"
		for _, topic := range r.topics.names(below) {
			r.topics.wrote(below+topic, nil, revision)
		}
	}
}

var domains = []string{topicname.Persistent, topicname.NonPersistent, topicname.Segment}
