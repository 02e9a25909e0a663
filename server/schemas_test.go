package server

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"google.golang.org/protobuf/proto"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/internal/wireclient"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/schema"
	"github.com/pulsar-tc/pulsar-tc/topicname"
)

type person struct {
	Name string `json:"name"`
}

const (
	personSchema = `{"type":"record","name":"person","fields":[{"name":"name","type":"string"}]}`
	otherSchema  = `{"type":"record","name":"person","fields":[{"name":"name","type":"int"}]}`
	widerSchema  = `{"type":"record","name":"person","fields":[{"name":"name","type":"string"},{"name":"age","type":"int","default":0}]}`
)

// The stock Go client on topics of both domains: values come back by the version that their producer had, over a restart of the
// server too; a schema that does not fit is refused, and without a version nothing is decoded with a wrong one.
func TestSchemasOfClients(t *testing.T) {
	options := load(t)
	for _, topic := range []string{"typed", "non-persistent://public/default/typed-np"} {
		s, err := Start(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}
		client := officialClient(t, s)
		consumer, err := client.Subscribe(pulsar.ConsumerOptions{Topic: topic, SubscriptionName: "s", Schema: pulsar.NewJSONSchema(personSchema, nil)})
		if err != nil {
			t.Fatal(err)
		}
		producer, err := client.CreateProducer(pulsar.ProducerOptions{Topic: topic, Schema: pulsar.NewJSONSchema(widerSchema, nil)})
		if err != nil {
			t.Fatalf("%s: a compatible schema: %v", topic, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		var got person
		for { // the permits of a non-persistent consumer may come after the first messages
			if _, err := producer.Send(ctx, &pulsar.ProducerMessage{Value: &person{"a"}}); err != nil {
				t.Fatal(err)
			}
			soon, stop := context.WithTimeout(ctx, 100*time.Millisecond)
			message, err := consumer.Receive(soon)
			stop()
			if err != nil && ctx.Err() == nil {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := message.GetSchemaValue(&got); err != nil || got.Name != "a" || message.SchemaVersion()[7] != 1 {
				t.Errorf("%s: value %v of version %v, %v", topic, got, message.SchemaVersion(), err)
			}
			break
		}
		cancel()
		if _, err := client.CreateProducer(pulsar.ProducerOptions{Topic: topic, Schema: pulsar.NewJSONSchema(otherSchema, nil)}); err == nil || !strings.Contains(err.Error(), "IncompatibleSchema") {
			t.Errorf("%s: an incompatible schema: %v", topic, err)
		}
		client.Close()
		stop(t, s)
	}
	s := start(t, options)
	name, err := topicname.Parse("typed")
	if err != nil {
		t.Fatal(err)
	}
	all, err := s.schemas.All(t.Context(), name)
	if err != nil || len(all) != 2 || strings.Contains(string(all[0].Data), "age") ||
		!strings.Contains(string(all[1].Data), "age") || all[1].Type != schema.JSON {
		t.Errorf("behind a restart: %+v, %v", all, err)
	}
	connected := &schemas{s.schemas, s.topics, s.nonPersistent}
	if _, err := connected.AddSchema(t.Context(), name.WithPartition(5), cnx.Caller{}, nil); err == nil || !strings.Contains(err.Error(), "not found") {
		t.Errorf("GET_OR_CREATE_SCHEMA of a topic that does not exist: %v", err)
	}
}

func TestSchemaPolicy(t *testing.T) {
	s := start(t, load(t, "schemaCompatibilityStrategy=BACKWARD", "isAllowAutoUpdateSchemaEnabled=false", "isSchemaValidationEnforced=true"))
	parse := func(text string) topicname.Name {
		name, err := topicname.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return name
	}
	if p := s.schemaPolicy(parse("t")); p.Strategy != schema.Backward || p.AllowAutoUpdate || !p.ValidationEnforced {
		t.Errorf("of a topic: %+v", p)
	}
	for _, system := range []string{"pulsar/system/x", "public/default/__change_events", "public/default/__transaction_buffer_snapshot-partition-0"} {
		if p := s.schemaPolicy(parse(system)); p.Strategy != schema.AlwaysCompatible || !p.AllowAutoUpdate || p.ValidationEnforced {
			t.Errorf("of %s: %+v", system, p)
		}
	}
}

// A watch of a list of topics, from the wire to the store: topics that are made and deleted, one by one and with partitions.
func TestWatchTopics(t *testing.T) {
	s := start(t, load(t))
	client, err := wireclient.Dial(t.Context(), strings.TrimPrefix(s.ServiceURL(), "pulsar://"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if !client.Connected().GetFeatureFlags().GetSupportsTopicWatchers() {
		t.Error("watchers are not announced")
	}
	updates := make(chan *pulsarproto.CommandWatchTopicUpdate, 100)
	client.OnPush = func(command *pulsarproto.BaseCommand, _ []byte) {
		if command.GetType() == pulsarproto.BaseCommand_WATCH_TOPIC_UPDATE {
			updates <- proto.CloneOf(command.GetWatchTopicUpdate())
		}
	}
	answer, err := client.Call(t.Context(), &pulsarproto.BaseCommand{
		Type: pulsarproto.BaseCommand_WATCH_TOPIC_LIST.Enum(),
		WatchTopicList: &pulsarproto.CommandWatchTopicList{
			WatcherId: proto.Uint64(1), Namespace: proto.String("public/default"), TopicsPattern: proto.String("public/default/w.*"),
		},
	})
	if err != nil || len(answer.GetWatchTopicListSuccess().GetTopic()) != 0 {
		t.Fatalf("answer %v, %v", answer, err)
	}
	listed := map[string]bool{}
	await := func(want ...string) {
		t.Helper()
		deadline := time.After(20 * time.Second)
		for {
			has := len(listed) == len(want) && !slices.ContainsFunc(want, func(topic string) bool { return !listed[topic] })
			if has {
				return
			}
			select {
			case update := <-updates:
				for _, topic := range update.GetNewTopics() {
					listed[topic] = true
				}
				for _, topic := range update.GetDeletedTopics() {
					delete(listed, topic)
				}
			case <-deadline:
				t.Fatalf("topics %v, want %q", listed, want)
			}
		}
	}
	const w1, p0, p1 = "persistent://public/default/w1", "persistent://public/default/wp-partition-0", "persistent://public/default/wp-partition-1"
	producers := officialClient(t, s)
	for _, topic := range []string{"w1", "other"} {
		if _, err := producers.CreateProducer(pulsar.ProducerOptions{Topic: topic}); err != nil {
			t.Fatal(err)
		}
	}
	await(w1)
	name := topicname.Name{Domain: topicname.Persistent, Tenant: "public", Namespace: "default", Local: "wp"}
	if err := s.topics.CreatePartitioned(t.Context(), name, 2, nil); err != nil {
		t.Fatal(err)
	}
	await(w1, p0, p1)
	if err := s.topics.DeletePartitioned(t.Context(), name, true); err != nil {
		t.Fatal(err)
	}
	await(w1)
}
