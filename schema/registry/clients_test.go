package registry

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/pulsar-tc/pulsar-tc/internal/etcdtest"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/schema"
	"github.com/pulsar-tc/pulsar-tc/topicname"
)

func wire(kind pulsarproto.Schema_Type, s schema.Schema) *Wire {
	key, value := "k", "v"
	return &Wire{Name: &key, Type: &kind, SchemaData: s.Data, Properties: []*pulsarproto.KeyValue{{Key: &key, Value: &value}}}
}

func avro(s schema.Schema) *Wire { return wire(pulsarproto.Schema_Avro, s) }

func TestProducers(t *testing.T) {
	policy := Policy{AllowAutoUpdate: true}
	r := newRegistry(t, func(o *Options) { o.Policy = func(topicname.Name) Policy { return policy } })
	produce := func(s *Wire) ([]byte, error) { return r.ForProducer(t.Context(), topic.WithPartition(1), s, "u") }
	if version, err := produce(nil); len(version) != 0 || err != nil {
		t.Errorf("no schema: version %v, %v", version, err)
	}
	r.wantVersions(t)
	for want, s := range []*Wire{avro(record("a")), avro(record("b"))} {
		if version, err := produce(s); !bytes.Equal(version, []byte{0, 0, 0, 0, 0, 0, 0, byte(want)}) || err != nil {
			t.Errorf("version %v, %v, want %d", version, err, want)
		}
	}
	refused := func(about string, s *Wire, text string) {
		t.Helper()
		_, err := produce(s)
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v, want %q", about, err, text)
		}
	}
	refused("another type", wire(pulsarproto.Schema_String, schema.Schema{}), "exists schema type AVRO, new schema type STRING")
	refused("no type of producers", wire(pulsarproto.Schema_AutoConsume, schema.Schema{}), "client-side schema type")
	refused("an unknown type", wire(77, schema.Schema{}), "Unknown schema type : 77")
	if _, err := produce(nil); err != nil {
		t.Errorf("without a schema, not enforced: %v", err)
	}
	policy = Policy{ValidationEnforced: true}
	refused("without a schema, enforced", nil, "Producers cannot connect or send message without a schema")
	refused("a new one that may not be added", avro(record("c")), "schema auto updating is disabled")
	if version, err := produce(avro(record("a"))); err != nil || version[7] != 0 {
		t.Errorf("one that is there: %v, %v", version, err)
	}
	r.wantVersions(t, 0, 1)
}

func TestConsumers(t *testing.T) {
	policy := Policy{AllowAutoUpdate: true, Strategy: schema.Forward}
	r := newRegistry(t, func(o *Options) { o.Policy = func(topicname.Name) Policy { return policy } })
	used := func(used bool, err error) func() (bool, error) { return func() (bool, error) { return !used, err } }
	subscribe := func(s *Wire, unused func() (bool, error)) error {
		return r.ForConsumer(t.Context(), topic, s, "u", unused)
	}
	var incompatible *schema.IncompatibleError
	if err := subscribe(avro(record("a")), used(true, nil)); !errors.As(err, &incompatible) || !strings.Contains(err.Error(), "empty(BYTES) schema: new schema type AVRO") {
		t.Errorf("topic in use without a schema: %v", err)
	}
	if err := subscribe(avro(record("a")), used(false, etcdtest.ErrNoAnswer)); !errors.Is(err, etcdtest.ErrNoAnswer) {
		t.Errorf("not known whether it is in use: %v", err)
	}
	for _, s := range []*Wire{nil, wire(pulsarproto.Schema_AutoConsume, schema.Schema{})} {
		if err := subscribe(s, used(true, nil)); err != nil {
			t.Errorf("type %s: %v", s.GetType(), err)
		}
	}
	r.wantVersions(t)
	if err := subscribe(avro(required()), used(false, nil)); err != nil {
		t.Errorf("unused topic: %v", err)
	}
	r.wantVersions(t, 0)
	r.mustPut(t, schema.Schema{Type: schema.Avro, Data: []byte(strings.Replace(string(required().Data), `"r"`, `"r","default":1`, 1))}, 1)
	// A consumer reads what the last schema wrote, whatever the strategy for producers; it adds nothing.
	if err := subscribe(avro(record("z")), used(false, nil)); err != nil {
		t.Errorf("one that can read: %v", err)
	}
	policy.Strategy = schema.AlwaysIncompatible
	last, _, err := r.Latest(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []schema.Schema{required(), last.Schema} {
		if err := subscribe(avro(s), used(false, nil)); !errors.As(err, &incompatible) {
			t.Errorf("ALWAYS_INCOMPATIBLE: %v", err)
		}
	}
	policy.Strategy = schema.AlwaysCompatible
	if err := subscribe(wire(pulsarproto.Schema_Int8, schema.Schema{}), used(false, nil)); err != nil {
		t.Errorf("ALWAYS_COMPATIBLE: %v", err)
	}
	var invalid *schema.InvalidError
	if err := subscribe(wire(77, schema.Schema{}), used(false, nil)); !errors.As(err, &invalid) {
		t.Errorf("unknown type: %v", err)
	}
	r.wantVersions(t, 0, 1)
}

func TestWireSchema(t *testing.T) {
	r := newRegistry(t, nil)
	if _, err := r.ForProducer(t.Context(), topic, avro(record("a")), "u"); err != nil {
		t.Fatal(err)
	}
	r.mustPut(t, record("b"), 1)
	for _, c := range []struct {
		version []byte
		want    int // -1: not found
	}{
		{nil, 1}, {versionBytes(0), 0}, {versionBytes(1), 1}, {versionBytes(2), -1}, {bytes.Repeat([]byte{0xff}, 8), -1},
	} {
		s, number, found, err := r.Schema(t.Context(), topic.WithPartition(0), c.version)
		if err != nil || found != (c.want >= 0) {
			t.Errorf("version %v: found %v, %v", c.version, found, err)
		}
		if found && (number[7] != byte(c.want) || s.GetType() != pulsarproto.Schema_Avro || s.GetName() != "a/b/t/../x") {
			t.Errorf("version %v: %v %v", c.version, number, s)
		}
		if c.want == 0 && (len(s.GetProperties()) != 1 || s.GetProperties()[0].GetValue() != "v" || !bytes.Equal(s.GetSchemaData(), record("a").Data)) {
			t.Errorf("version 0: %v", s)
		}
	}
	var incompatible *schema.IncompatibleError
	for _, version := range [][]byte{{}, {0}, make([]byte, 9)} {
		if _, _, _, err := r.Schema(t.Context(), topic, version); !errors.As(err, &incompatible) {
			t.Errorf("version %v: %v", version, err)
		}
	}
	r.mustPut(t, record("c"), 2)
	if _, err := r.Delete(t.Context(), topic, true); err != nil {
		t.Fatal(err)
	}
	r.mustPut(t, schema.Schema{Type: schema.Int8}, 0)
	if s, _, _, err := r.Schema(t.Context(), topic, nil); err != nil || s.SchemaData == nil {
		t.Errorf("schema_data is required, even if empty: %v, %v", s, err)
	}
}

// The Go client sends type None for bytes, and asks for the version of each message: it must get one.
func TestBytesOfGo(t *testing.T) {
	r := newRegistry(t, nil)
	for _, kind := range []pulsarproto.Schema_Type{pulsarproto.Schema_None, -1} {
		if version, err := r.ForProducer(t.Context(), topic, wire(kind, schema.Schema{}), ""); !bytes.Equal(version, versionBytes(0)) || err != nil {
			t.Errorf("producer of type %d: %v, %v", kind, version, err)
		}
		err := r.ForConsumer(t.Context(), topic, wire(kind, schema.Schema{}), "", func() (bool, error) { return false, nil })
		if err != nil {
			t.Errorf("consumer of type %d: %v", kind, err)
		}
	}
	if s, _, found, err := r.Schema(t.Context(), topic, versionBytes(0)); s.GetType() != pulsarproto.Schema_None || !found || err != nil {
		t.Errorf("read back: %v, %v, %v", s, found, err)
	}
	var incompatible *schema.IncompatibleError
	if _, err := r.ForProducer(t.Context(), topic, avro(record("a")), ""); !errors.As(err, &incompatible) {
		t.Errorf("another type behind it: %v", err)
	}
}
