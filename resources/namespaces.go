package resources

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// Namespace returns the policies of tenant/namespace; nil if it does not exist. They must not be changed.
func (r *Resources) Namespace(namespace string) *Policies {
	_, _, name := splitNamespace(namespace)
	return r.namespaces.get(name)
}

// FindNamespace is Namespace for a store that others write to as well: what is not known here it reads, so that nobody is told
// that a namespace does not exist which was made elsewhere a moment ago.
func (r *Resources) FindNamespace(ctx context.Context, namespace string) (*Policies, error) {
	if known := r.Namespace(namespace); known != nil || !r.options.Shared {
		return known, nil
	}
	ctx, cancel := context.WithTimeout(ctx, r.options.StoreTimeout)
	defer cancel()
	tenant, local, name := splitNamespace(namespace)
	if err := refresh(ctx, r, r.tenants, tenantName(tenant)); err != nil {
		return nil, err
	}
	if err := refresh(ctx, r, r.namespaces, name); err != nil {
		return nil, fmt.Errorf("namespace %s/%s: %w", tenant, local, err)
	}
	return r.Namespace(namespace), nil
}

// refresh reads one value, unless the watch has told of it.
func refresh[V any](ctx context.Context, r *Resources, t *table[V], name string) error {
	key := t.prefix + name
	got, err := r.options.KV.Get(ctx, key)
	if err != nil {
		return fmt.Errorf("read %s: %w", key, err)
	}
	for _, pair := range got.Kvs {
		value, err := t.parse(pair.Value)
		if err != nil {
			return &txn.CorruptError{Key: key, Reason: err.Error()}
		}
		t.wrote(name, value, pair.ModRevision)
	}
	return nil
}

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
	return update(ctx, r, r.namespaces, alteration{name: name, absent: absent, alter: alter})
}

// DeleteNamespace deletes tenant/namespace, with the policies of topics that were kept for it, if it has no topics.
// Errors: ErrNamespaceNotFound, ErrNamespaceNotEmpty.
func (r *Resources) DeleteNamespace(ctx context.Context, namespace string) error {
	tenant, local, name := splitNamespace(namespace)
	keys := r.options.Keys
	d := deletion{
		key: keys.Namespace(tenant, local), absent: ErrNamespaceNotFound, needed: ErrNamespaceNotEmpty,
		with: []clientv3.Op{clientv3.OpDelete(keys.NamespaceSchemas(tenant, local), clientv3.WithPrefix())},
	}
	for _, domain := range domains {
		d.needs = append(d.needs, none(keys.TopicNamePrefix(domain, tenant, local)), none(keys.PartitionedPrefix(domain, tenant, local)))
		d.with = append(d.with, clientv3.OpDelete(keys.NamespacePoliciesPrefix(domain, tenant, local), clientv3.WithPrefix()))
	}
	revision, err := r.remove(ctx, d)
	if err == nil {
		r.namespaces.wrote(name, nil, revision)
		r.forgetTopics(name, revision)
	}
	return err
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
