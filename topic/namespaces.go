package topic

import (
	"context"
	"fmt"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

// builtIn are the tenants that exist without being stored, and the one namespace that each has.
var builtIn = map[string]string{"public": "default", "pulsar": "system"}

// NamespaceExists reports whether tenant/namespace exists.
func (ts *Topics) NamespaceExists(ctx context.Context, namespace string) (bool, error) {
	if exists := ts.options.NamespaceExists; exists != nil {
		return exists(ctx, namespace)
	}
	ts.mu.Lock()
	known := ts.namespaces[namespace]
	ts.mu.Unlock()
	if known {
		return true, nil
	}
	tenant, local, _ := strings.Cut(namespace, "/")
	got, err := ts.store.get(ctx, ts.options.Keys.Namespace(tenant, local), clientv3.WithCountOnly())
	if err != nil {
		return false, err
	}
	if got.Count > 0 {
		ts.remember(namespace)
	}
	return got.Count > 0, nil
}

func (ts *Topics) remember(namespace string) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.namespaces[namespace] = true
}

// CreateTenant makes a tenant; one that exists stays.
func (ts *Topics) CreateTenant(ctx context.Context, tenant string) error {
	_, err := ts.store.put(ctx, ts.options.Keys.Tenant(tenant), "1")
	return err
}

// Tenants lists the tenants.
func (ts *Topics) Tenants(ctx context.Context) ([]string, error) {
	tenants := []string{"public", "pulsar"}
	err := ts.eachName(ctx, ts.options.Keys.TenantPrefix(), func(tenant string, _ []byte) error {
		tenants = append(tenants, tenant)
		return nil
	})
	slices.Sort(tenants)
	return slices.Compact(tenants), err
}

// CreateNamespace makes tenant/namespace, and its tenant; what exists stays.
func (ts *Topics) CreateNamespace(ctx context.Context, namespace string) error {
	tenant, local, found := strings.Cut(namespace, "/")
	if !found || tenant == "" || local == "" {
		return fmt.Errorf("%w: namespace %q, want <tenant>/<namespace>", txn.ErrNotAllowed, namespace)
	}
	if _, err := ts.store.put(ctx, ts.options.Keys.Namespace(tenant, local), "1"); err != nil {
		return err
	}
	ts.remember(namespace)
	return ts.CreateTenant(ctx, tenant)
}

// Namespaces lists the namespaces of a tenant, each with the tenant's name.
func (ts *Topics) Namespaces(ctx context.Context, tenant string) ([]string, error) {
	var namespaces []string
	if local := builtIn[tenant]; local != "" {
		namespaces = append(namespaces, tenant+"/"+local)
	}
	err := ts.eachName(ctx, ts.options.Keys.NamespacePrefix(tenant), func(local string, _ []byte) error {
		namespaces = append(namespaces, tenant+"/"+local)
		return nil
	})
	slices.Sort(namespaces)
	return slices.Compact(namespaces), err
}
