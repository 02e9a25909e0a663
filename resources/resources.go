package resources

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/etcdcreator"
	"github.com/pulsar-tc/pulsar-tc/keyspace"
	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// Options say where resources are stored.
type Options struct {
	KV      clientv3.KV
	Watcher clientv3.Watcher
	Keys    keyspace.Space
	Log     zerolog.Logger
	// Creator makes what is not there yet.
	Creator *etcdcreator.Creator
	// Cluster is the name of this cluster, which exists from the start.
	Cluster string
	// Shared tells that other processes write to the store.
	Shared bool
	// Changed, if set, is called after a tenant or the policies of a namespace have changed. It must not block.
	Changed func()
	// StoreTimeout bounds one change with its repeats, and what is read after Open. Default 10 s.
	StoreTimeout time.Duration
}

// Resources is all tenants, namespaces, policies and clusters.
type Resources struct {
	options    Options
	tenants    *table[Tenant]
	namespaces *table[Policies] // by <tenant>/<namespace>
	topics     *table[Policies] // by <domain>/<tenant>/<namespace>/<topic>
	clusters   *table[Document]
	cancel     context.CancelFunc
	tasks      sync.WaitGroup
}

// Open reads everything and makes what always exists. ctx bounds the call. Close must be called.
// Errors: *txn.CorruptError for a value that cannot be read.
func Open(ctx context.Context, options Options) (*Resources, error) {
	if options.StoreTimeout == 0 {
		options.StoreTimeout = 10 * time.Second
	}
	r := &Resources{
		options:    options,
		tenants:    newTable(options.Keys.TenantPrefix(), parseTenant),
		namespaces: newTable(options.Keys.AllNamespacesPrefix(), parsePolicies),
		topics:     newTable(options.Keys.PoliciesPrefix(), parsePolicies),
		clusters:   newTable(options.Keys.ClusterPrefix(), parseCluster),
	}
	if options.Changed != nil {
		r.tenants.changed, r.namespaces.changed = options.Changed, options.Changed
	}
	if err := r.makeBuiltIn(ctx); err != nil {
		return nil, fmt.Errorf("make tenants and namespaces: %w", err)
	}
	run, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	for _, start := range []func(ctx, run context.Context) error{
		start(r, r.tenants), start(r, r.namespaces), start(r, r.topics), start(r, r.clusters),
	} {
		if err := start(ctx, run); err != nil {
			r.Close()
			return nil, fmt.Errorf("read tenants and namespaces: %w", err)
		}
	}
	return r, nil
}

// start loads a table and follows it.
func start[V any](r *Resources, t *table[V]) func(ctx, run context.Context) error {
	return func(ctx, run context.Context) error {
		revision, err := t.load(ctx, r.options.KV, func(corrupt *txn.CorruptError) error { return corrupt })
		if err != nil {
			return err
		}
		r.tasks.Go(func() {
			t.follow(run, r.options.KV, r.options.Watcher, revision, r.options.StoreTimeout, r.options.Log)
		})
		return nil
	}
}

// Close ends the watches and returns when they have ended.
func (r *Resources) Close() {
	r.cancel()
	r.tasks.Wait()
}

// makeBuiltIn puts what always exists and is missing.
func (r *Resources) makeBuiltIn(ctx context.Context) error {
	keys := r.options.Keys
	for _, key := range []string{
		keys.Cluster(r.options.Cluster),
		keys.Tenant("public"), keys.Namespace("public", "default"),
		keys.Tenant("pulsar"), keys.Namespace("pulsar", "system"),
	} {
		absent := clientv3.Compare(clientv3.CreateRevision(key), "=", 0)
		if _, err := r.options.KV.Txn(ctx).If(absent).Then(clientv3.OpPut(key, "{}")).Commit(); err != nil {
			return err
		}
	}
	return nil
}

func tenantName(tenant string) string { return url.PathEscape(tenant) }

func namespaceName(tenant, namespace string) string {
	return url.PathEscape(tenant) + "/" + url.PathEscape(namespace)
}

// splitNamespace cuts <tenant>/<namespace> and returns the name in the table.
func splitNamespace(full string) (tenant, local, name string) {
	tenant, local, _ = strings.Cut(full, "/")
	return tenant, local, namespaceName(tenant, local)
}

func topicName(name topicname.Name) string {
	return url.PathEscape(name.Domain) + "/" + namespaceName(name.Tenant, name.Namespace) + "/" + url.PathEscape(name.Local)
}

// unescaped turns names of tables into what they stand for. They were escaped here, so they can be unescaped.
func unescaped(names []string, prefix string) []string {
	for i, name := range names {
		if plain, err := url.PathUnescape(name); err == nil {
			names[i] = prefix + plain
		}
	}
	return names
}
