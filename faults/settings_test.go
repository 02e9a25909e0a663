package faults

import (
	"testing"

	"github.com/pulsar-tc/pulsar-tc/internal/wireclient"
	"github.com/pulsar-tc/pulsar-tc/internal/wiretopic"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// partitions asks for the number of partitions of a topic.
func partitions(f *fixture, client *wiretopic.Client, topic string) (uint32, error) {
	answer, err := client.Call(f.ctx, &pulsarproto.BaseCommand{
		Type:              pulsarproto.BaseCommand_PARTITIONED_METADATA.Enum(),
		PartitionMetadata: &pulsarproto.CommandPartitionedTopicMetadata{Topic: &topic},
	})
	return answer.GetPartitionMetadataResponse().GetPartitions(), err
}

// FC-11, 1 and 2: allowAutoTopicCreation governs topics of users, not the coordinator.
func TestFC11WithoutAutoCreation(t *testing.T) {
	f := newFixture(t)
	f.send(f.produce(f.dial(), topic("made")), "before", nil)
	f.Stop()
	f.Options.Set = append(f.Options.Set, "allowAutoTopicCreation=false")
	f.Start()

	found, err := wireclient.DialTC(f.ctx, f.Server.ServiceURL, 0)
	if err != nil {
		t.Fatalf("the coordinator is not found: %v", err)
	}
	if err := found.Close(); err != nil {
		t.Fatal(err)
	}
	client := f.dial()
	if n, err := partitions(f, client, topicname.AssignTopic.String()); n != 1 || err != nil {
		t.Errorf("%d coordinators, %v", n, err)
	}
	id := f.begin(client, longTTL, "")
	_, err = client.Call(f.ctx, wireclient.AddPartitions(id, topic("made")))
	f.want("ADD_PARTITION", err, success)
	f.send(f.produce(client, topic("made")), "in the transaction", &id)
	consumer := f.subscribe(client, topic("made"), "s")
	f.want("ACK", consumer.Ack(f.ctx, f.receive(consumer, "before").ID, &id), success)
	_, err = client.Produce(f.ctx, topic("missing"))
	f.want("PRODUCER of a missing topic", err, pulsarproto.ServerError_TopicNotFound)
	f.end(client, id, txn.Commit, success)
	f.receive(consumer, "in the transaction")
}

// FC-11, 3: without a coordinator every transaction command is refused for good on a connection that goes on.
func TestFC11WithoutCoordinator(t *testing.T) {
	f := newFixture(t, "transactionCoordinatorEnabled=false")
	client, err := wiretopic.Dial(f.ctx, f.addr())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	}()
	refused := pulsarproto.ServerError_NotAllowedError
	id := txn.ID{Least: 1}
	f.want("TC_CLIENT_CONNECT", client.ConnectTC(f.ctx, 0), refused)
	_, err = client.Begin(f.ctx, 0, 1000, "")
	f.want("NEW_TXN", err, refused)
	_, err = client.Call(f.ctx, wireclient.AddPartitions(id, topic("t1")))
	f.want("ADD_PARTITION", err, refused)
	_, err = client.Call(f.ctx, wireclient.AddSubscription(id, topic("t1"), "s"))
	f.want("ADD_SUBSCRIPTION", err, refused)
	f.end(client, id, txn.Commit, refused)
	if n, err := partitions(f, client, topicname.AssignTopic.String()); n != 0 || err != nil {
		t.Errorf("%d coordinators, %v", n, err)
	}
	f.send(f.produce(client, topic("t1")), "plain", nil)
	f.receive(f.subscribe(client, topic("t1"), "s"), "plain")
}
