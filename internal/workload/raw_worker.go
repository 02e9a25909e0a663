package workload

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/pulsar-tc/pulsar-tc/internal/history"
	"github.com/pulsar-tc/pulsar-tc/internal/wireclient"
	"github.com/pulsar-tc/pulsar-tc/internal/wiretopic"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// rawWorker runs transactions over the raw client. It repeats nothing, so that what it did is known.
type rawWorker struct {
	*Load
	clientName string

	router    *wiretopic.Router
	producers map[string]*wiretopic.Producer
	consumers map[string]*wiretopic.Consumer
}

// session works until its connection is of no more use.
func (w *rawWorker) session(ctx context.Context) error {
	setup, cancel := w.request(ctx)
	defer cancel()
	router, closeQuietly := w.route()
	defer closeQuietly()
	w.router, w.producers, w.consumers = router, map[string]*wiretopic.Producer{}, map[string]*wiretopic.Consumer{}
	for _, topic := range w.outputs {
		var err error
		if w.producers[topic], err = router.Produce(setup, topic); err != nil {
			return err
		}
	}
	for _, topic := range w.inputs {
		var err error
		if w.consumers[topic], err = router.Subscribe(setup, topic, rawSubscription); err != nil {
			return err
		}
	}
	for ctx.Err() == nil {
		if err := w.transaction(ctx); err != nil {
			return err
		}
	}
	return nil
}

// transaction runs one transaction to one of its possible ends.
func (w *rawWorker) transaction(ctx context.Context) error {
	id, err := w.begin(ctx, w.router, w.ttl(), w.clientName)
	if err != nil {
		return err
	}
	if err := w.work(ctx, id); err != nil {
		w.unsettled <- id
		return err
	}
	switch fate := rand.IntN(100); {
	case fate < 60:
		return w.end(ctx, w.router, id, txn.Commit, w.clientName)
	case fate < 80:
		return w.end(ctx, w.router, id, txn.Abort, w.clientName)
	case fate < 90:
		return nil // its deadline ends it
	default:
		return w.loseAnswer(ctx, id, txn.Action(rand.IntN(2)))
	}
}

var errNoAnswer = errors.New("no definite answer")

// loseAnswer asks for the end and closes the connection without reading the answer; somebody else asks again.
func (w *rawWorker) loseAnswer(ctx context.Context, id txn.ID, action txn.Action) error {
	client, err := w.router.Coordinator(ctx, id.Most)
	if err != nil {
		return err
	}
	call := w.history.Now()
	client.Start(wireclient.EndTxn(id, action, w.clientName), func(*pulsarproto.BaseCommand, error) {})
	w.history.Ended(history.End{Span: history.Span{Call: call}, ID: id, Action: action})
	w.unsettled <- id
	return errors.Join(errNoAnswer, w.router.Close())
}

// work sends to some outputs and acknowledges some inputs. An error means that the connection is of no more use.
func (w *rawWorker) work(ctx context.Context, id txn.ID) error {
	for _, i := range rand.Perm(len(w.outputs))[:1+rand.IntN(len(w.outputs))] {
		topic := w.outputs[i]
		if rand.IntN(5) > 0 { // else the topic asks the coordinator by itself
			if err := w.use(ctx, id, "ADD", wireclient.AddPartitions(id, topic)); err != nil {
				return err
			}
		}
		for range 1 + rand.IntN(3) {
			if err := w.send(ctx, id, topic); err != nil {
				return err
			}
		}
	}
	if rand.IntN(3) == 0 { // a participant that is not loaded: the commit is driven
		if err := w.use(ctx, id, "ADD", wireclient.AddPartitions(id, w.outputs[0]+"-unused")); err != nil {
			return err
		}
	}
	for range rand.IntN(3) {
		if err := w.acknowledge(ctx, id, w.inputs[rand.IntN(len(w.inputs))]); err != nil {
			return err
		}
	}
	return nil
}

// use runs a request of the coordinator that needs an open transaction.
func (w *rawWorker) use(ctx context.Context, id txn.ID, name string, command *pulsarproto.BaseCommand) error {
	ctx, cancel := w.request(ctx)
	defer cancel()
	client, err := w.router.Coordinator(ctx, id.Most)
	if err != nil {
		return err
	}
	call := w.history.Now()
	_, err = client.Call(ctx, command)
	answer := answerOf(err)
	if answer == history.Unknown {
		return fmt.Errorf("%s: %w", name, err)
	}
	w.history.Used(history.Use{Span: history.Span{Call: call, Return: w.history.Now()}, ID: id, Name: name, Answer: answer})
	return nil
}

// used records that something which needs an open transaction succeeded.
func (l *Load) used(id txn.ID, name string, call time.Duration) {
	l.history.Used(history.Use{Span: history.Span{Call: call, Return: l.history.Now()}, ID: id, Name: name, Answer: history.Done})
}

func (w *rawWorker) send(ctx context.Context, id txn.ID, topic string) error {
	ctx, cancel := w.request(ctx)
	defer cancel()
	key, call := w.key(), w.history.Now()
	_, err := w.producers[topic].Send(ctx, key, &id)
	answer := refusedOr(answerOf(err))
	w.sent(call, history.Message{Topic: topic, Key: key, Txn: id, InTxn: true, Answer: answer})
	if answer == history.Done {
		w.used(id, "SEND", call)
	}
	if answer == history.Unknown {
		return fmt.Errorf("SEND: %w", err)
	}
	return nil
}

// refusedOr makes every definite refusal the same one.
func refusedOr(answer history.Answer) history.Answer {
	if answer == history.Contrary || answer == history.NotFound {
		return history.Refused
	}
	return answer
}

// acknowledge acknowledges the next message of an input, if one comes soon.
func (w *rawWorker) acknowledge(ctx context.Context, id txn.ID, topic string) error {
	soon, cancel := context.WithTimeout(ctx, messagePause)
	defer cancel()
	message, err := w.consumers[topic].Receive(soon)
	if err != nil {
		if soon.Err() != nil {
			return nil
		}
		return err
	}
	if rand.IntN(5) > 0 {
		if err := w.use(ctx, id, "ADD", wireclient.AddSubscription(id, topic, rawSubscription)); err != nil {
			return err
		}
	}
	bound, cancel := w.request(ctx)
	defer cancel()
	call := w.history.Now()
	err = w.consumers[topic].Ack(bound, message.ID, &id)
	answer := refusedOr(answerOf(err))
	w.history.Acked(history.Ack{
		Topic: topic, Subscription: rawSubscription, Key: message.Content, Txn: id, InTxn: true, Answer: answer,
	})
	if answer == history.Done {
		w.used(id, "ACK", call)
	}
	if answer == history.Unknown {
		return fmt.Errorf("ACK: %w", err)
	}
	return nil
}
