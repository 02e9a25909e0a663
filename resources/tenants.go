package resources

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Tenant returns a tenant; nil if it does not exist. It must not be changed.
func (r *Resources) Tenant(tenant string) *Tenant { return r.tenants.get(tenantName(tenant)) }

// Tenants lists the tenants.
func (r *Resources) Tenants() []string { return unescaped(r.tenants.names(""), "") }

// CreateTenant makes a tenant. Errors: ErrTenantExists.
func (r *Resources) CreateTenant(ctx context.Context, tenant string, document Document) error {
	return create(ctx, r, r.tenants, creation{name: tenantName(tenant), document: document, taken: ErrTenantExists})
}

// UpdateTenant alters a tenant. Errors: ErrTenantNotFound, those of alter.
func (r *Resources) UpdateTenant(ctx context.Context, tenant string, alter func(Document) error) error {
	return update(ctx, r, r.tenants, alteration{name: tenantName(tenant), absent: ErrTenantNotFound, alter: alter})
}

// DeleteTenant deletes a tenant without namespaces. Errors: ErrTenantNotFound, ErrTenantNotEmpty.
func (r *Resources) DeleteTenant(ctx context.Context, tenant string) error {
	revision, err := r.remove(ctx, deletion{
		key: r.options.Keys.Tenant(tenant), absent: ErrTenantNotFound,
		needs: []clientv3.Cmp{none(r.options.Keys.NamespacePrefix(tenant))}, needed: ErrTenantNotEmpty,
	})
	if err == nil {
		r.tenants.wrote(tenantName(tenant), nil, revision)
	}
	return err
}

// creation is a new document, and what must hold for it.
type creation struct {
	name     string
	document Document
	taken    error          // the answer if it exists
	needs    []clientv3.Cmp // what else must hold
	missing  error          // the answer if that does not
}

func create[V any](ctx context.Context, r *Resources, t *table[V], c creation) error {
	text, err := c.document.clone().encode()
	if err != nil {
		return err
	}
	value, err := t.parse(text)
	if err != nil {
		return err
	}
	key := t.prefix + c.name
	absent := clientv3.Compare(clientv3.CreateRevision(key), "=", 0)
	result, err := r.put(ctx, "create "+c.name, append(c.needs, absent),
		[]clientv3.Op{clientv3.OpPut(key, string(text))}, []clientv3.Op{clientv3.OpGet(key, clientv3.WithCountOnly())})
	switch {
	case err != nil:
		return err
	case result.Succeeded:
		t.wrote(c.name, value, result.Header.Revision)
		return nil
	case result.Responses[0].GetResponseRange().Count > 0:
		return c.taken
	}
	return c.missing
}
