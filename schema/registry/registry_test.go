package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pulsar-tc/pulsar-tc/internal/etcdtest"
	"github.com/pulsar-tc/pulsar-tc/schema"
	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var topic = topicname.Name{Domain: topicname.Persistent, Tenant: "a", Namespace: "b", Local: "t/../x"}

// record is an Avro schema with optional fields: all of them are compatible with each other.
func record(fields ...string) schema.Schema {
	for i, field := range fields {
		fields[i] = fmt.Sprintf(`{"name":%q,"type":["null","int"],"default":null}`, field)
	}
	return schema.Schema{Type: schema.Avro, Data: []byte(`{"type":"record","name":"R","fields":[` + strings.Join(fields, ",") + `]}`)}
}

// required has a field without default: it may follow record() forward, not backward.
func required() schema.Schema {
	return schema.Schema{Type: schema.Avro, Data: []byte(`{"type":"record","name":"R","fields":[{"name":"r","type":"int"}]}`)}
}

// newRegistry opens a registry on a store of its own; change, which may be nil, edits its options.
func newRegistry(t *testing.T, change func(*Options)) *Registry {
	t.Helper()
	options := Options{KV: etcdtest.Open(t, nil).Client(), Keys: etcdtest.Space, Now: func() time.Time { return time.UnixMilli(1000) }}
	if change != nil {
		change(&options)
	}
	options.Creator = etcdtest.Creator(t, options.KV)
	return New(options)
}

func (r *Registry) mustPut(t *testing.T, s schema.Schema, want uint64) {
	t.Helper()
	got, err := r.Put(t.Context(), topic, s, "u")
	if err != nil || got != want {
		t.Errorf("put: version %d, %v, want %d", got, err, want)
	}
}

// wantVersions checks which versions there are.
func (r *Registry) wantVersions(t *testing.T, want ...uint64) {
	t.Helper()
	all, err := r.All(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	var got []uint64
	for _, v := range all {
		got = append(got, v.Number)
		at, found, err := r.At(t.Context(), topic, v.Number)
		if err != nil || !found || string(at.Data) != string(v.Data) {
			t.Errorf("version %d: %+v, %v, %v", v.Number, at, found, err)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("versions %v, want %v", got, want)
	}
	latest, found, err := r.Latest(t.Context(), topic)
	if err != nil || found != (len(want) > 0) || found && latest.Number != want[len(want)-1] {
		t.Errorf("latest %+v, %v, %v", latest, found, err)
	}
}

func TestVersions(t *testing.T) {
	r := newRegistry(t, nil)
	r.wantVersions(t)
	r.mustPut(t, record("a"), 0)
	r.mustPut(t, record("a", "b"), 1)
	r.mustPut(t, record("a"), 0)
	r.mustPut(t, schema.Schema{Type: schema.Avro, Data: append([]byte(" "), record("a", "b").Data...)}, 1)
	r.wantVersions(t, 0, 1)
	if number, found, err := r.Find(t.Context(), topic.WithPartition(3), record("a")); number != 0 || !found || err != nil {
		t.Errorf("found %d, %v, %v: partitions share schemas", number, found, err)
	}
	if _, found, err := r.Find(t.Context(), topic, record("c")); found || err != nil {
		t.Errorf("found %v, %v", found, err)
	}
	other := topic
	other.Local = "t"
	if _, found, err := r.Latest(t.Context(), other); found || err != nil {
		t.Errorf("another topic has a schema: %v, %v", found, err)
	}
	v, _, err := r.At(t.Context(), topic, 1)
	if err != nil || v.User != "u" || v.Created.UnixMilli() != 1000 || v.Type != schema.Avro {
		t.Errorf("version %+v, %v", v, err)
	}
	// A deletion takes a number; what was before it is gone and does not bind what follows.
	if number, err := r.Delete(t.Context(), topic, false); number != 2 || err != nil {
		t.Errorf("deletion %d, %v", number, err)
	}
	r.wantVersions(t)
	if _, found, err := r.At(t.Context(), topic, 0); found || err != nil {
		t.Errorf("a deleted version: %v, %v", found, err)
	}
	r.mustPut(t, schema.Schema{Type: schema.String}, 3)
	r.wantVersions(t, 3)
	if _, err := r.Delete(t.Context(), topic, true); err != nil {
		t.Error(err)
	}
	r.wantVersions(t)
	r.mustPut(t, record("a"), 0)
}

func TestWhatMayFollow(t *testing.T) {
	strategy := schema.Undefined
	r := newRegistry(t, func(o *Options) {
		o.Policy = func(topicname.Name) Policy { return Policy{Strategy: strategy} }
		o.MaxVersions = 3
	})
	var incompatible *schema.IncompatibleError
	r.mustPut(t, required(), 0)
	if _, err := r.Put(t.Context(), topic, record("a"), ""); !errors.As(err, &incompatible) {
		t.Errorf("by default, which is FULL: %v", err)
	}
	strategy = schema.Backward
	if got, err := r.CheckCompatibility(t.Context(), topic, record("a")); got != schema.Backward || err != nil {
		t.Errorf("check: %s, %v", got, err)
	}
	r.wantVersions(t, 0)
	r.mustPut(t, record("a"), 1)
	strategy = schema.Forward
	r.mustPut(t, record(), 2) // reads nothing of version 0, which does not count
	strategy = schema.ForwardTransitive
	if _, err := r.CheckCompatibility(t.Context(), topic, record("z")); !errors.As(err, &incompatible) {
		t.Errorf("version 0 cannot read it: %v", err)
	}
	strategy = schema.AlwaysIncompatible
	r.mustPut(t, required(), 0) // there already
	strategy = schema.AlwaysCompatible
	if _, err := r.Put(t.Context(), topic, schema.Schema{Type: schema.Int8}, ""); !errors.As(err, &incompatible) || !strings.Contains(err.Error(), "has 3 schemas") {
		t.Errorf("the fourth of three: %v", err)
	}
	var invalid *schema.InvalidError
	for _, bad := range []schema.Schema{{Type: schema.Avro}, {Type: 99}, {Type: schema.Avro, Data: make([]byte, 2<<20)}} {
		if _, err := r.Put(t.Context(), topic, bad, ""); !errors.As(err, &invalid) {
			t.Errorf("bad schema: %v", err)
		}
	}
	r.wantVersions(t, 0, 1, 2)
}

// Many bring schemas at once, some the same: each gets the version that its schema has, and no number is used twice.
func TestConcurrentPuts(t *testing.T) {
	r := newRegistry(t, nil)
	const schemas, each = 8, 4
	versions := make([][each]uint64, schemas)
	var all sync.WaitGroup
	for i := range schemas {
		for j := range each {
			all.Go(func() {
				number, err := r.Put(t.Context(), topic, record(fmt.Sprint("f", i)), "")
				if err != nil {
					t.Error(err)
				}
				versions[i][j] = number
			})
		}
	}
	all.Wait()
	seen := map[uint64]bool{}
	for i := range schemas {
		for j := range each {
			if versions[i][j] != versions[i][0] {
				t.Errorf("one schema got versions %v", versions[i])
			}
		}
		v, found, err := r.At(t.Context(), topic, versions[i][0])
		if seen[versions[i][0]] || err != nil || !found || string(v.Data) != string(record(fmt.Sprint("f", i)).Data) {
			t.Errorf("version %d of schema %d: %q, %v, %v", versions[i][0], i, v.Data, found, err)
		}
		seen[versions[i][0]] = true
	}
	r.wantVersions(t, 0, 1, 2, 3, 4, 5, 6, 7)
}

// newScripted is a registry on a store that goes by a script.
func newScripted(t *testing.T) (*Registry, *etcdtest.Script) {
	t.Helper()
	script := &etcdtest.Script{}
	return newRegistry(t, func(o *Options) { script.KV, o.KV = o.KV, script }), script
}

// An answer that is lost behind the write leaves a version, which the repeat finds.
func TestLostAnswer(t *testing.T) {
	r, script := newScripted(t)
	script.Lose()
	if _, err := r.Put(t.Context(), topic, record("a"), ""); !errors.Is(err, etcdtest.ErrNoAnswer) || !errors.Is(err, txn.ErrNotReady) {
		t.Errorf("lost: %v", err)
	}
	r.mustPut(t, record("a"), 0)
	r.wantVersions(t, 0)
}

// A first version whose error was answered does not come behind the deletion of the schemas, of which it makes no difference whether there
// were any: the next owner of the name brings another schema.
func TestLateFirstVersion(t *testing.T) {
	for what, stored := range map[string]bool{"stored by another attempt": true, "never stored": false} {
		t.Run(what, func(t *testing.T) {
			r, script := newScripted(t)
			late := script.Hold()
			if _, err := r.Put(t.Context(), topic, record("a"), ""); !errors.Is(err, etcdtest.ErrNoAnswer) {
				t.Fatalf("put: %v", err)
			}
			if stored {
				r.mustPut(t, record("a"), 0)
			}
			if _, err := r.Delete(t.Context(), topic, true); err != nil {
				t.Fatal(err)
			}
			if applied, err := late(); err != nil || applied.Succeeded {
				t.Errorf("the late version: %v, %v", applied, err)
			}
			r.wantVersions(t)
		})
	}
}

func TestStoreIsShortOfSpace(t *testing.T) {
	full := true
	r := newRegistry(t, func(o *Options) {
		o.Admit = func() error {
			if full {
				return txn.ErrNotReady
			}
			return nil
		}
	})
	if _, err := r.Put(t.Context(), topic, record("a"), ""); !errors.Is(err, txn.ErrNotReady) {
		t.Errorf("without space: %v", err)
	}
	full = false
	r.mustPut(t, record("a"), 0)
	full = true
	r.mustPut(t, record("a"), 0)
}

func TestCorruptStore(t *testing.T) {
	r := newRegistry(t, nil)
	r.mustPut(t, record("a"), 0)
	keys := r.keys(topic)
	r.wantMissing(t, keys.Version(0))
	for _, key := range []string{keys.Version(0), keys.Head()} {
		if _, err := r.options.KV.Put(t.Context(), key, "\x09"); err != nil {
			t.Fatal(err)
		}
		var corrupt *txn.CorruptError
		if _, _, err := r.Latest(t.Context(), topic); !errors.As(err, &corrupt) || corrupt.Key != key {
			t.Errorf("corrupt %s: %v", key, err)
		}
		if _, err := r.Put(t.Context(), topic, record("b"), ""); !errors.As(err, &corrupt) {
			t.Errorf("put on corrupt %s: %v", key, err)
		}
	}
}

// wantMissing takes a version away that the head counts: that is told, not waited for.
func (r *Registry) wantMissing(t *testing.T, key string) {
	t.Helper()
	if _, err := r.options.KV.Delete(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var corrupt *txn.CorruptError
	if _, _, err := r.Latest(ctx, topic); !errors.As(err, &corrupt) {
		t.Errorf("a missing version: %v", err)
	}
	if _, err := r.Put(ctx, topic, record("b"), ""); !errors.As(err, &corrupt) {
		t.Errorf("put on a missing version: %v", err)
	}
}

func FuzzHead(f *testing.F) {
	f.Add([]byte(head{next: 3, live: 1}.encode()))
	f.Add([]byte(head{}.encode()))
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := decodeHead(data)
		if err != nil {
			return
		}
		if again, err := decodeHead([]byte(h.encode())); err != nil || again != h {
			t.Errorf("%+v became %+v, %v", h, again, err)
		}
	})
}
