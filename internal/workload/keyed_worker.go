package workload

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/pulsar-tc/pulsar-tc/internal/history"
	"github.com/pulsar-tc/pulsar-tc/internal/wireclient"
	"github.com/pulsar-tc/pulsar-tc/internal/wiretopic"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// keyedSubscription is the Key_Shared subscription of the ordered topic.
const keyedSubscription = "keyed"

// sessionTransactions is after how many transactions a consumer goes, so that keys change hands.
const sessionTransactions = 8

// keyedConsumers share the keys of the ordered topic and acknowledge in transactions. Whatever is given back, each message of a
// key is seen for the first time behind the one before it.
type keyedConsumers struct {
	*Load

	mu   sync.Mutex        // guards the following
	next map[string]uint64 // sequence id that a key shows next for the first time
}

func newKeyedConsumers(l *Load) *keyedConsumers {
	k := &keyedConsumers{Load: l, next: map[string]uint64{}}
	for i := range uint64(orderedKeys) {
		k.next[fmt.Sprintf("key-%d", i)] = i
	}
	return k
}

// observe notes a message that came to a consumer.
func (k *keyedConsumers) observe(m wiretopic.Message) {
	var sequence uint64
	key := m.Metadata.GetPartitionKey()
	if _, err := fmt.Sscanf(m.Content, "ordered-%d", &sequence); err != nil {
		k.t.Errorf("message %q: %v", m.Content, err)
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	switch due := k.next[key]; {
	case sequence > due:
		k.t.Errorf("%s: %d comes before %d", key, sequence, due)
		k.next[key] = sequence + orderedKeys
	case sequence == due:
		k.next[key] = sequence + orderedKeys
	}
}

func (k *keyedConsumers) session(ctx context.Context) error {
	setup, cancel := k.request(ctx)
	defer cancel()
	router, closeQuietly := k.route()
	defer closeQuietly()
	consumer, err := subscribeKeyed(setup, router, k.ordered)
	if err != nil {
		return err
	}
	for range sessionTransactions {
		if ctx.Err() != nil {
			return nil
		}
		if err := k.transaction(ctx, router, consumer); err != nil {
			return err
		}
	}
	return nil
}

// subscribeKeyed asks for few messages at a time, so that keys become free.
func subscribeKeyed(ctx context.Context, router *wiretopic.Router, topic string) (*wiretopic.Consumer, error) {
	client, err := router.Topic(ctx, topic)
	if err != nil {
		return nil, err
	}
	subscription := keyedSubscription
	return client.SubscribeWith(ctx, &pulsarproto.CommandSubscribe{
		Topic: &topic, Subscription: &subscription, SubType: pulsarproto.CommandSubscribe_Key_Shared.Enum(),
		InitialPosition: pulsarproto.CommandSubscribe_Earliest.Enum(),
	}, 2*burst)
}

// transaction acknowledges some messages in one transaction, which commits, aborts or is left to its deadline.
func (k *keyedConsumers) transaction(ctx context.Context, router *wiretopic.Router, consumer *wiretopic.Consumer) error {
	id, err := k.begin(ctx, router, k.ttl(), "")
	if err != nil {
		return err
	}
	for range 1 + rand.IntN(burst) {
		if err := k.acknowledge(ctx, router, consumer, id); err != nil {
			k.unsettled <- id
			return err
		}
	}
	switch fate := rand.IntN(10); {
	case fate < 7:
		return k.end(ctx, router, id, txn.Commit, "")
	case fate < 9:
		return k.end(ctx, router, id, txn.Abort, "")
	}
	return nil
}

func (k *keyedConsumers) acknowledge(ctx context.Context, router *wiretopic.Router, consumer *wiretopic.Consumer, id txn.ID) error {
	soon, cancel := context.WithTimeout(ctx, messagePause)
	defer cancel()
	message, err := consumer.Receive(soon)
	if err != nil {
		if soon.Err() != nil {
			return nil
		}
		return err
	}
	k.observe(message)
	if err := consumer.Flow(1); err != nil {
		return err
	}
	bound, cancel := k.request(ctx)
	defer cancel()
	if rand.IntN(2) == 0 { // else the subscription asks the coordinator by itself
		coordinator, err := router.Coordinator(bound, id.Most)
		if err != nil {
			return err
		}
		if _, err := coordinator.Call(bound, wireclient.AddSubscription(id, k.ordered, keyedSubscription)); answerOf(err) == history.Unknown {
			return err
		}
	}
	err = consumer.Ack(bound, message.ID, &id)
	answer := refusedOr(answerOf(err))
	k.history.Acked(history.Ack{
		Topic: k.ordered, Subscription: keyedSubscription, Key: message.Content, Txn: id, InTxn: true, Answer: answer,
	})
	if answer == history.Unknown {
		return err
	}
	return nil
}
