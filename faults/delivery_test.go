package faults

import (
	"fmt"
	"testing"

	"github.com/pulsar-tc/pulsar-tc/internal/wireclient"
	"github.com/pulsar-tc/pulsar-tc/internal/wiretopic"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// subscribeOnce subscribes with permits that are all that the consumer ever asks for.
func (f *fixture) subscribeOnce(client *wiretopic.Client, topic string, permits uint32) *wiretopic.Consumer {
	f.Helper()
	subscription := "s"
	consumer, err := client.SubscribeWith(f.ctx, &pulsarproto.CommandSubscribe{
		Topic: &topic, Subscription: &subscription, SubType: pulsarproto.CommandSubscribe_Shared.Enum(),
		InitialPosition: pulsarproto.CommandSubscribe_Earliest.Enum(),
	}, permits)
	if err != nil {
		f.Fatal(err)
	}
	return consumer
}

// FC-23: aborted messages cost no permits: what lies behind 200 of them comes with the permits of ten.
func TestFC23AbortedMessagesCostNoPermits(t *testing.T) {
	f := newFixture(t)
	client := f.dial()
	producer := f.produce(client, topic("t"))
	transaction := func(action txn.Action, prefix string, messages int) {
		id := f.begin(client, longTTL, "")
		for i := range messages {
			f.send(producer, fmt.Sprint(prefix, i), &id)
		}
		f.end(client, id, action, success)
	}
	transaction(txn.Commit, "before ", 3)
	for range 10 {
		transaction(txn.Abort, "aborted ", 20)
	}
	transaction(txn.Commit, "behind ", 3)
	for restart := range 2 {
		if restart == 1 {
			f.Kill()
			f.Start()
			client = f.dial()
		}
		consumer := f.subscribeOnce(client, topic("t"), 10)
		for _, prefix := range []string{"before ", "behind "} {
			for i := range 3 {
				f.receive(consumer, fmt.Sprint(prefix, i))
			}
		}
	}
}

// FC-23: messages that an open transaction has acknowledged cost no permits of the consumer that comes next.
func TestFC23PendingMessagesCostNoPermits(t *testing.T) {
	f := newFixture(t)
	client := f.dial()
	producer := f.produce(client, topic("t"))
	consumer := f.subscribe(client, topic("t"), "s")
	id := f.begin(client, longTTL, "")
	_, err := client.Call(f.ctx, wireclient.AddSubscription(id, topic("t"), "s"))
	f.want("ADD", err, success)
	for i := range 200 {
		content := fmt.Sprint("held ", i)
		f.send(producer, content, nil)
		f.want("ACK", consumer.Ack(f.ctx, f.receive(consumer, content).ID, &id), success)
	}
	f.want("CLOSE_CONSUMER", consumer.Close(f.ctx), success)
	for i := range 5 {
		f.send(producer, fmt.Sprint("fresh ", i), nil)
	}
	for restart := range 2 {
		if restart == 1 {
			f.Kill()
			f.Start()
			client = f.dial()
		}
		consumer = f.subscribeOnce(client, topic("t"), 10)
		for i := range 5 {
			f.receive(consumer, fmt.Sprint("fresh ", i))
		}
		f.want("CLOSE_CONSUMER", consumer.Close(f.ctx), success)
	}
}

// batchOfFive sends five messages in one batch and receives them.
func (f *fixture) batchOfFive(producer *wiretopic.Producer, sequence uint64, consumer *wiretopic.Consumer) *pulsarproto.MessageIdData {
	f.Helper()
	f.sendBatch(producer, sequence, keyed{"", "0"}, keyed{"", "1"}, keyed{"", "2"}, keyed{"", "3"}, keyed{"", "4"})
	return f.receiveIndexes(consumer, 0).ID
}

// receiveIndexes receives a batch of which exactly the messages of indexes are for the consumer; 0: all are.
func (f *fixture) receiveIndexes(consumer *wiretopic.Consumer, indexes int64) wiretopic.Message {
	f.Helper()
	message, err := consumer.Receive(f.ctx)
	if err != nil {
		f.Fatal(err)
	}
	if message.Metadata.GetNumMessagesInBatch() != 5 {
		f.Fatalf("received %q, want the batch", message.Content)
	}
	var got int64
	if len(message.AckSet) > 0 {
		got = message.AckSet[0]
	}
	if got != indexes {
		f.Fatalf("received with ack set %05b, want %05b", got, indexes)
	}
	return message
}

// FC-25: what is delivered again is what the aborted transaction held, not what another one still holds, also behind a restart.
func TestFC25RedeliveryLeavesPendingAlone(t *testing.T) {
	const all, first, rest, last = 0b11111, 0b00011, 0b11100, 0b11000
	f := newFixture(t)
	client := f.dial()
	producer := f.produce(client, topic("t"))
	consumer := f.subscribe(client, topic("t"), "s")
	nothingElse := func(fresh string) {
		t.Helper()
		f.send(producer, fresh, nil)
		f.want("ACK", consumer.Ack(f.ctx, f.receive(consumer, fresh).ID, nil), success)
	}

	batch := f.batchOfFive(producer, 10, consumer)
	a, b := f.begin(client, longTTL, ""), f.begin(client, longTTL, "")
	f.want("ACK of 0, 1 in A", f.ackIndexes(consumer, batch, rest, &a), success)
	f.want("ACK of 2, 3, 4 in B", f.ackIndexes(consumer, batch, first, &b), success)
	f.end(client, b, txn.Abort, success)
	f.receiveIndexes(consumer, rest)
	f.want("ACK of 2, 3, 4", f.ackIndexes(consumer, batch, first, nil), success)
	f.end(client, a, txn.Commit, success)
	nothingElse("fresh 1")

	producer = f.produce(client, topic("t"))
	batch = f.batchOfFive(producer, 20, consumer)
	a = f.begin(client, longTTL, "")
	f.want("ACK of 0, 1, 2", f.ackIndexes(consumer, batch, last, nil), success)
	f.want("ACK of 3, 4 in A", f.ackIndexes(consumer, batch, all&^last, &a), success)
	f.want("CLOSE_CONSUMER", consumer.Close(f.ctx), success)
	client = f.dial()
	consumer = f.subscribe(client, topic("t"), "s")
	nothingElse("fresh 2")
	f.Kill()
	f.Start()
	client = f.dial()
	consumer, producer = f.subscribe(client, topic("t"), "s"), f.produce(client, topic("t"))
	nothingElse("fresh 3")
	f.end(client, a, txn.Abort, success)
	f.receiveIndexes(consumer, last)
	nothingElse("fresh 4")
}

// FC-26: who may acknowledge cumulatively in a transaction beside whom, over a restart. An abort gives all back at once, in order
// (O-8); a client that asks for redelivery has all in order.
func TestFC26CumulativeAcks(t *testing.T) {
	f := newFixture(t)
	client := f.dial()
	producer := f.produce(client, topic("t"))
	exclusive := func() *wiretopic.Consumer {
		t.Helper()
		return f.subscribeAs(client, topic("t"), "s", pulsarproto.CommandSubscribe_Exclusive)
	}
	consumer := exclusive()
	all := []string{"m1", "m2", "m3", "m4", "m5"}
	var at []*pulsarproto.MessageIdData
	for _, content := range all {
		f.send(producer, content, nil)
		at = append(at, f.receive(consumer, content).ID)
	}
	conflict := pulsarproto.ServerError_TransactionConflict
	a, b := f.begin(client, longTTL, ""), f.begin(client, longTTL, "")
	f.want("A up to m3", f.ackCumulatively(consumer, &a, at[2]), success)
	f.want("A up to m4", f.ackCumulatively(consumer, &a, at[3]), success)
	for restart := range 2 {
		if restart == 1 {
			f.Kill()
			f.Start()
			client = f.dial()
			consumer = exclusive()
			f.receive(consumer, "m5") // all that A does not hold
		}
		f.want("B up to m5", f.ackCumulatively(consumer, &b, at[4]), conflict)
		f.want("A up to m4 again", f.ackCumulatively(consumer, &a, at[3]), conflict)
		f.want("A up to m2", f.ackCumulatively(consumer, &a, at[1]), conflict)
		// Two ids are answered like in Pulsar, and change nothing.
		f.want("A up to two messages", f.ackCumulatively(consumer, &a, at[3], at[4]), success)
		if restart == 0 {
			f.want("m2 in B, which A holds cumulatively", consumer.Ack(f.ctx, at[1], &b), success)
		} else {
			f.want("m2 in B again", consumer.Ack(f.ctx, at[1], &b), conflict)
		}
	}
	f.end(client, b, txn.Abort, success)
	f.end(client, a, txn.Abort, success)
	for _, content := range all[:4] {
		f.receive(consumer, content)
	}
	if err := consumer.Redeliver(); err != nil {
		t.Fatal(err)
	}
	for _, content := range all {
		f.receive(consumer, content)
	}
	f.want("all", f.ackCumulatively(consumer, nil, at[4]), success)

	shared := f.subscribe(client, topic("t"), "shared")
	f.receive(shared, "m1")
	c := f.begin(client, longTTL, "")
	f.want("cumulative on Shared", f.ackCumulatively(shared, &c, at[4]), success)
	f.end(client, c, txn.Commit, success)
	f.want("CLOSE_CONSUMER", shared.Close(f.ctx), success)
	shared = f.subscribe(client, topic("t"), "shared")
	for _, content := range all { // nothing was acknowledged
		f.receive(shared, content)
	}
}
