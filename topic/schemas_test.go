package topic

import (
	"context"
	"errors"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topicname"
)

// askedSchemas notes what it is asked, and refuses the type Avro.
type askedSchemas struct {
	unused []bool
}

var errSchema = errors.New("refused schema")

func refuseAvro(s *pulsarproto.Schema) error {
	if s.GetType() == pulsarproto.Schema_Avro {
		return errSchema
	}
	return nil
}

func (a *askedSchemas) ForProducer(_ context.Context, _ topicname.Name, s *pulsarproto.Schema, _ string) ([]byte, error) {
	if s == nil {
		return nil, nil
	}
	return []byte{byte(s.GetType())}, refuseAvro(s)
}

func (a *askedSchemas) ForConsumer(_ context.Context, _ topicname.Name, s *pulsarproto.Schema, _ string, unused func() (bool, error)) error {
	is, err := unused()
	a.unused = append(a.unused, is)
	return errors.Join(err, refuseAvro(s))
}

func withSchema(kind pulsarproto.Schema_Type) subscribeOption {
	return func(cmd *pulsarproto.CommandSubscribe) {
		cmd.Schema = &pulsarproto.Schema{Name: ptr("s"), Type: &kind, SchemaData: []byte{}}
		cmd.SubType = pulsarproto.CommandSubscribe_Shared.Enum()
	}
}

func TestProducerSchema(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Schemas = &askedSchemas{} })
	command := func(kind pulsarproto.Schema_Type) *pulsarproto.CommandProducer {
		return &pulsarproto.CommandProducer{
			Topic: ptr("t"), ProducerId: ptr(uint64(1)), Schema: &pulsarproto.Schema{Name: ptr("s"), Type: &kind, SchemaData: []byte{}},
		}
	}
	p, err := w.tryProduce("t", command(pulsarproto.Schema_Json))
	if err != nil || len(p.info.SchemaVersion) != 1 || p.info.SchemaVersion[0] != byte(pulsarproto.Schema_Json) {
		t.Fatalf("producer with a schema: %+v, %v", p, err)
	}
	if p := w.produce("t"); len(p.info.SchemaVersion) != 0 {
		t.Errorf("producer without a schema: version %v", p.info.SchemaVersion)
	}
	if _, err := w.tryProduce("t", command(pulsarproto.Schema_Avro)); !errors.Is(err, errSchema) {
		t.Errorf("refused schema: %v", err)
	}
}

// A consumer's schema may become the topic's while nobody else uses the topic and it has no message.
func TestUnusedTopic(t *testing.T) {
	schemas := &askedSchemas{}
	w := newWorld(t, func(o *Options) { o.Schemas = schemas })
	subscribe := func(name string, want bool) {
		t.Helper()
		w.subscribe(name, "s", withSchema(pulsarproto.Schema_Json))
		if got := schemas.unused[len(schemas.unused)-1]; got != want {
			t.Errorf("%s: unused %v, want %v", name, got, want)
		}
	}
	subscribe("new", true)
	subscribe("new", false) // the consumer of before
	w.subscribe("watched", "s", withSchema(pulsarproto.Schema_AutoConsume))
	subscribe("watched", true)
	p := w.produce("produced")
	subscribe("produced", false)
	p.send(message(0, "m"))
	p.Close()
	w.restart()
	subscribe("produced", false) // the message of before
	if _, err := w.trySubscribe("new", "s", withSchema(pulsarproto.Schema_Avro)); !errors.Is(err, errSchema) {
		t.Errorf("refused schema: %v", err)
	}
}

// Source: AbstractTopic.deleteSchema: the history of schemas means nothing without the topic.
func TestSchemasGoWithTheirTopic(t *testing.T) {
	w := newWorld(t)
	put := func(local string) string {
		key := w.keys.TopicSchemas("public", "default", local).Head()
		if _, err := storeClient.Put(t.Context(), key, "1"); err != nil {
			t.Fatal(err)
		}
		return key
	}
	has := func(key string) bool {
		got, err := storeClient.Get(t.Context(), key, clientv3.WithCountOnly())
		if err != nil {
			t.Fatal(err)
		}
		return got.Count > 0
	}
	w.produce("plain").Close()
	plain, other := put("plain"), put("plain2")
	if err := w.topics.DeleteTopic(t.Context(), parse(t, "plain"), true); err != nil {
		t.Fatal(err)
	}
	if has(plain) || !has(other) {
		t.Errorf("the topic's schemas are left: %v; another's: %v", has(plain), has(other))
	}
	if err := w.topics.CreatePartitioned(t.Context(), parse(t, "parts"), 2, nil); err != nil {
		t.Fatal(err)
	}
	w.produce("parts-partition-0").Close()
	parts := put("parts")
	if err := w.topics.DeleteTopic(t.Context(), parse(t, "parts-partition-0"), true); err != nil {
		t.Fatal(err)
	}
	if !has(parts) {
		t.Error("one partition took the schemas of all")
	}
	if err := w.topics.DeletePartitioned(t.Context(), parse(t, "parts"), true); err != nil {
		t.Fatal(err)
	}
	if has(parts) {
		t.Error("the partitioned topic's schemas are left")
	}
}
