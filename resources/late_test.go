package resources

import (
	"context"
	"errors"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/internal/etcdtest"
)

// A change whose error was answered does not come any more: neither behind the deletion of what another attempt has made, nor behind an
// answer that says that nothing is there, nor to what was made anew.
func TestLateChanges(t *testing.T) {
	const tenant, namespace = "late", "late/ns"
	roles := func(role string) Document { return Document{"adminRoles": []byte(`["` + role + `"]`)} }
	ttl := func(d Document) error { return d.Set("message_ttl_in_seconds", 10) }
	noTTL := func(d Document) error { delete(d, "message_ttl_in_seconds"); return nil }
	inTopic := topicA
	inTopic.Tenant, inTopic.Namespace = tenant, "ns"
	for what, c := range map[string]struct {
		before func(context.Context, *Resources) error // nil: nothing
		looks  bool                                    // the first transaction of change reads
		change func(context.Context, *Resources) error // is answered with an error, and comes late
		then   []func(context.Context, *Resources) error
	}{
		"a tenant that was made and deleted": {
			change: func(ctx context.Context, r *Resources) error { return r.CreateTenant(ctx, tenant, roles("x")) },
			then: []func(context.Context, *Resources) error{
				func(ctx context.Context, r *Resources) error { return r.CreateTenant(ctx, tenant, roles("x")) },
				func(ctx context.Context, r *Resources) error { return r.DeleteTenant(ctx, tenant) },
			},
		},
		"a deletion of a tenant that was made anew": {
			before: func(ctx context.Context, r *Resources) error { return r.CreateTenant(ctx, tenant, roles("x")) },
			looks:  true,
			change: func(ctx context.Context, r *Resources) error { return r.DeleteTenant(ctx, tenant) },
			then: []func(context.Context, *Resources) error{
				func(ctx context.Context, r *Resources) error { return r.DeleteTenant(ctx, tenant) },
				func(ctx context.Context, r *Resources) error { return r.CreateTenant(ctx, tenant, roles("y")) },
			},
		},
		"a namespace that was made and deleted": {
			before: func(ctx context.Context, r *Resources) error { return r.CreateTenant(ctx, tenant, nil) },
			change: func(ctx context.Context, r *Resources) error { return r.CreateNamespace(ctx, namespace, nil) },
			then: []func(context.Context, *Resources) error{
				func(ctx context.Context, r *Resources) error { return r.CreateNamespace(ctx, namespace, nil) },
				func(ctx context.Context, r *Resources) error { return r.DeleteNamespace(ctx, namespace) },
			},
		},
		"a policy of a namespace, which was read since": {
			before: makeNamespace(tenant, namespace),
			change: func(ctx context.Context, r *Resources) error { return r.UpdateNamespace(ctx, namespace, ttl) },
		},
		"a policy of a topic that was removed before it came": {
			before: makeNamespace(tenant, namespace),
			change: func(ctx context.Context, r *Resources) error { return r.UpdateTopic(ctx, inTopic, ttl) },
			then: []func(context.Context, *Resources) error{
				func(ctx context.Context, r *Resources) error { return r.UpdateTopic(ctx, inTopic, noTTL) },
			},
		},
		"a policy of a topic that was set and removed": {
			before: makeNamespace(tenant, namespace),
			change: func(ctx context.Context, r *Resources) error { return r.UpdateTopic(ctx, inTopic, ttl) },
			then: []func(context.Context, *Resources) error{
				func(ctx context.Context, r *Resources) error { return r.UpdateTopic(ctx, inTopic, ttl) },
				func(ctx context.Context, r *Resources) error { return r.UpdateTopic(ctx, inTopic, noTTL) },
			},
		},
	} {
		t.Run(what, func(t *testing.T) {
			store := etcdtest.Open(t, nil)
			script := &etcdtest.Script{KV: store.Client()}
			r := openOn(t, store, script)
			if c.before != nil {
				if err := c.before(t.Context(), r); err != nil {
					t.Fatal(err)
				}
			}
			if c.looks {
				script.Pass()
			}
			late := script.Hold()
			if err := c.change(t.Context(), r); !errors.Is(err, etcdtest.ErrNoAnswer) {
				t.Fatalf("changed: %v", err)
			}
			for _, step := range c.then {
				if err := step(t.Context(), r); err != nil {
					t.Fatal(err)
				}
			}
			if applied, err := late(); err != nil || applied.Succeeded {
				t.Errorf("the late change: %v, %v", applied, err)
			}
		})
	}
}

func makeNamespace(tenant, namespace string) func(context.Context, *Resources) error {
	return func(ctx context.Context, r *Resources) error {
		return errors.Join(r.CreateTenant(ctx, tenant, nil), r.CreateNamespace(ctx, namespace, nil))
	}
}

// The schemas of a namespace go with it: those of its next owner are others.
func TestSchemasGoWithTheirNamespace(t *testing.T) {
	store := etcdtest.Open(t, nil)
	r := open(t, store)
	if err := makeNamespace("t", "t/ns")(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	head := etcdtest.Space.TopicSchemas("t", "ns", "x").Head()
	other := etcdtest.Space.TopicSchemas("t", "ns2", "x").Head()
	for _, key := range []string{head, other} {
		if _, err := store.Client().Put(t.Context(), key, "x"); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.DeleteNamespace(t.Context(), "t/ns"); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]int64{head: 0, other: 1} {
		if got, err := store.Client().Get(t.Context(), key, clientv3.WithCountOnly()); err != nil || got.Count != want {
			t.Errorf("%s: %v, %v, want %d", key, got, err, want)
		}
	}
}
