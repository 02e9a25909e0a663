package server

import (
	"context"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

// The stock Go client on a non-persistent topic: plain messages go to whoever is there. A send in a transaction is refused, and
// the producer's connection stays: the coordinator's handler on it answers the next transaction.
func TestNonPersistentTopic(t *testing.T) {
	s := start(t, load(t))
	const name = "non-persistent://public/default/events"
	client, err := pulsar.NewClient(pulsar.ClientOptions{URL: s.ServiceURL(), EnableTransaction: true})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	consumer, err := client.Subscribe(pulsar.ConsumerOptions{Topic: name, SubscriptionName: "s", Type: pulsar.KeyShared})
	if err != nil {
		t.Fatal(err)
	}
	producer, err := client.CreateProducer(pulsar.ProducerOptions{Topic: name, DisableBatching: true})
	if err != nil {
		t.Fatal(err)
	}
	// A send that is refused may end with its timeout only.
	refused, err := client.CreateProducer(pulsar.ProducerOptions{Topic: name, DisableBatching: true, SendTimeout: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	received := receiveOne(ctx, t, producer, consumer)
	if err := consumer.Ack(received); err != nil {
		t.Error(err)
	}
	transaction, err := client.NewTransaction(time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := refused.Send(ctx, &pulsar.ProducerMessage{Payload: []byte("in a transaction"), Transaction: transaction}); err == nil {
		t.Error("a send in a transaction got a receipt")
	}
	again, err := client.NewTransaction(time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Commit(ctx); err != nil {
		t.Error(err)
	}
	names, err := client.TopicPartitions(name)
	if err != nil || len(names) != 1 || names[0] != name {
		t.Errorf("partitions %v, %v", names, err)
	}
}

// receiveOne sends until a message arrives: the consumer's permits may not have arrived yet.
func receiveOne(ctx context.Context, t *testing.T, producer pulsar.Producer, consumer pulsar.Consumer) pulsar.Message {
	t.Helper()
	for {
		if _, err := producer.Send(ctx, &pulsar.ProducerMessage{Payload: []byte("plain"), Key: "k"}); err != nil {
			t.Fatal(err)
		}
		soon, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		message, err := consumer.Receive(soon)
		cancel()
		if err == nil {
			return message
		}
		if ctx.Err() != nil {
			t.Fatal("nothing arrives")
		}
	}
}
