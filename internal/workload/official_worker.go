package workload

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/log"

	"github.com/pulsar-tc/pulsar-tc/internal/history"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// officialWorker consumes, transforms and produces in transactions with the official Go client. That client repeats what it
// got no answer to, so only its successes are definite.
type officialWorker struct {
	*Load

	restarts  int64 // when the session began
	client    pulsar.Client
	consumer  pulsar.Consumer
	producers []pulsar.Producer // of the outputs
}

// session works until something fails: the client does not get its transactions back after a restart (FC-12).
func (w *officialWorker) session(ctx context.Context) error {
	client, err := NewOfficialClient(w.officials[rand.IntN(len(w.officials))].Addr())
	if err != nil {
		return err
	}
	w.restarts, w.client, w.producers = w.Load.restarts.Load(), client, nil
	defer client.Close()
	if err := Bounded(ctx, w.options.RequestTime, w.attach); err != nil {
		return err
	}
	for ctx.Err() == nil {
		if err := w.transaction(ctx); err != nil {
			if errors.Is(err, context.DeadlineExceeded) {
				w.t.Logf("the official client waits in vain: %v", err)
			}
			return err
		}
	}
	return nil
}

// OfficialTime bounds one operation of the official client; its Close waits for those under way.
const OfficialTime = 5 * time.Second

// NewOfficialClient connects the official client to addr, host:port.
func NewOfficialClient(addr string) (pulsar.Client, error) {
	return pulsar.NewClient(pulsar.ClientOptions{
		URL: "pulsar://" + addr, EnableTransaction: true, OperationTimeout: OfficialTime, ConnectionTimeout: OfficialTime,
		Logger: log.NewLoggerWithSlog(slog.New(slog.DiscardHandler)),
	})
}

func (w *officialWorker) attach() (err error) {
	w.consumer, err = w.client.Subscribe(pulsar.ConsumerOptions{
		Topics: slices.Clone(w.inputs), SubscriptionName: officialSubscription, Type: pulsar.Shared,
		SubscriptionInitialPosition: pulsar.SubscriptionPositionEarliest, ReceiverQueueSize: 20,
	})
	if err != nil {
		return err
	}
	for _, topic := range w.outputs {
		producer, err := w.client.CreateProducer(pulsar.ProducerOptions{Topic: topic, DisableBatching: true})
		if err != nil {
			return err
		}
		w.producers = append(w.producers, producer)
	}
	return nil
}

// Bounded runs f, which knows no context, for a time at most. After that f goes on alone and ends with the client.
func Bounded(ctx context.Context, limit time.Duration, f func() error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (w *officialWorker) transaction(ctx context.Context) error {
	soon, cancel := context.WithTimeout(ctx, messagePause)
	defer cancel()
	message, err := w.consumer.Receive(soon)
	if err != nil && soon.Err() == nil {
		return err
	}
	t, id, err := w.open(ctx)
	if err != nil {
		return err
	}
	if err := w.work(ctx, t, id, message); err != nil {
		w.unsettled <- id
		return err
	}
	switch fate := rand.IntN(10); {
	case fate < 6:
		return w.finish(ctx, id, txn.Commit, t.Commit)
	case fate < 9:
		return w.finish(ctx, id, txn.Abort, t.Abort)
	}
	return nil // its deadline ends it
}

func (w *officialWorker) open(ctx context.Context) (t pulsar.Transaction, id txn.ID, err error) {
	ttl := w.ttl()
	call := w.history.Now()
	opened := make(chan pulsar.Transaction, 1)
	err = Bounded(ctx, w.options.RequestTime, func() error {
		t, err := w.client.NewTransaction(ttl)
		opened <- t
		return err
	})
	if err != nil {
		return nil, id, err
	}
	t = <-opened
	id = txn.ID{Most: t.GetTxnID().MostSigBits, Least: t.GetTxnID().LeastSigBits}
	w.opened(call, id, ttl, "")
	return t, id, nil
}

// work sends to some outputs and acknowledges what was consumed; nil: nothing was.
func (w *officialWorker) work(ctx context.Context, t pulsar.Transaction, id txn.ID, message pulsar.Message) error {
	for _, i := range rand.Perm(len(w.outputs))[:1+rand.IntN(len(w.outputs))] {
		if err := w.send(ctx, t, id, i); err != nil {
			return err
		}
	}
	if message == nil {
		return nil
	}
	call := w.history.Now()
	err := Bounded(ctx, w.options.RequestTime, func() error { return w.consumer.AckWithTxn(message, t) })
	answer := successOnly(err)
	w.history.Acked(history.Ack{
		Topic: message.Topic(), Subscription: officialSubscription, Key: string(message.Payload()), Txn: id, InTxn: true, Answer: answer,
	})
	if answer == history.Done {
		w.used(id, "ACK", call)
	}
	return err
}

func (w *officialWorker) send(ctx context.Context, t pulsar.Transaction, id txn.ID, output int) error {
	ctx, cancel := w.request(ctx)
	defer cancel()
	key, call := w.key(), w.history.Now()
	_, err := w.producers[output].Send(ctx, &pulsar.ProducerMessage{Payload: []byte(key), Transaction: t})
	answer := successOnly(err)
	w.sent(call, history.Message{
		Topic: w.outputs[output], Key: key, Txn: id, InTxn: true, Answer: answer,
		// A client that reconnects may send twice what it is given meanwhile.
		Repeatable: err != nil || w.options.Disturbed || w.restarts != w.Load.restarts.Load(),
	})
	if answer == history.Done {
		w.used(id, "SEND", call)
	}
	return err
}

func (w *officialWorker) finish(ctx context.Context, id txn.ID, action txn.Action, end func(context.Context) error) error {
	call := w.history.Now()
	err := Bounded(ctx, w.options.RequestTime, func() error { return end(ctx) })
	answer := successOnly(err)
	w.history.Ended(history.End{Span: history.Span{Call: call, Return: w.history.Now()}, ID: id, Action: action, Answer: answer})
	if answer == history.Unknown {
		w.unsettled <- id
		return errors.Join(errNoAnswer, err)
	}
	w.settle(id)
	return nil
}

// successOnly is the answer of an operation whose errors the client may have made up.
func successOnly(err error) history.Answer {
	if err == nil {
		return history.Done
	}
	return history.Unknown
}
