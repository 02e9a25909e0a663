package workload

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/pulsar-tc/pulsar-tc/internal/history"
	"github.com/pulsar-tc/pulsar-tc/internal/wiretopic"
)

// feedPause is between two messages to the inputs: fast enough for everybody who consumes them.
const feedPause = 2 * time.Millisecond

// plainWorker knows no transactions: it feeds the inputs, sends to outputs between the transactions of others, and acknowledges.
type plainWorker struct{ *Load }

func (w *plainWorker) session(ctx context.Context) error {
	setup, cancel := w.request(ctx)
	defer cancel()
	router, closeQuietly := w.route()
	defer closeQuietly()
	topics := append(append([]string(nil), w.inputs...), w.outputs[0])
	producers := map[string]*wiretopic.Producer{}
	for _, topic := range topics {
		var err error
		if producers[topic], err = router.Produce(setup, topic); err != nil {
			return err
		}
	}
	consumers := map[string]*wiretopic.Consumer{}
	for _, topic := range w.inputs {
		var err error
		if consumers[topic], err = router.Subscribe(setup, topic, plainSubscription); err != nil {
			return err
		}
	}
	for ctx.Err() == nil {
		topic := topics[rand.IntN(len(topics))]
		if err := w.send(ctx, topic, producers[topic]); err != nil {
			return err
		}
		if consumer := consumers[topic]; consumer != nil && rand.IntN(2) == 0 {
			if err := w.acknowledge(ctx, topic, consumer); err != nil {
				return err
			}
		}
		Pause(ctx, feedPause)
	}
	return nil
}

func (w *plainWorker) send(ctx context.Context, topic string, producer *wiretopic.Producer) error {
	ctx, cancel := w.request(ctx)
	defer cancel()
	key, call := w.key(), w.history.Now()
	_, err := producer.Send(ctx, key, nil)
	w.sent(call, history.Message{Topic: topic, Key: key, Answer: refusedOr(answerOf(err))})
	return err
}

func (w *plainWorker) acknowledge(ctx context.Context, topic string, consumer *wiretopic.Consumer) error {
	soon, cancel := context.WithTimeout(ctx, messagePause)
	defer cancel()
	message, err := consumer.Receive(soon)
	if err != nil {
		if soon.Err() != nil {
			return nil
		}
		return err
	}
	bound, cancel := w.request(ctx)
	defer cancel()
	err = consumer.Ack(bound, message.ID, nil)
	w.history.Acked(history.Ack{Topic: topic, Subscription: plainSubscription, Key: message.Content, Answer: refusedOr(answerOf(err))})
	return err
}
