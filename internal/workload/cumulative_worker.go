package workload

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/pulsar-tc/pulsar-tc/internal/history"
	"github.com/pulsar-tc/pulsar-tc/internal/wiretopic"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// cumulativeSubscription is that of the first input whose messages are acknowledged cumulatively.
const cumulativeSubscription = "cumulative"

// mostCovered is up to how many messages one cumulative acknowledgement is for.
const mostCovered = 100

// cumulativeWorker has a subscription to itself and acknowledges cumulatively in transactions.
type cumulativeWorker struct {
	*Load

	topic string
	// held are the messages that came, in their order, without those that a commit has taken: what an acknowledgement may cover.
	held []wiretopic.Message
}

// session works until its connection is of no more use.
func (w *cumulativeWorker) session(ctx context.Context) error {
	setup, cancel := w.request(ctx)
	defer cancel()
	router, closeQuietly := w.route()
	defer closeQuietly()
	client, err := router.Topic(setup, w.topic)
	if err != nil {
		return err
	}
	name := cumulativeSubscription
	consumer, err := client.SubscribeAs(setup, &pulsarproto.CommandSubscribe{
		Topic: &w.topic, Subscription: &name, SubType: pulsarproto.CommandSubscribe_Failover.Enum(),
		InitialPosition: pulsarproto.CommandSubscribe_Earliest.Enum(),
	})
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		if err := w.transaction(ctx, router, consumer); err != nil {
			return err
		}
	}
	return nil
}

// transaction acknowledges once or twice, the second time further, and commits, aborts or is left to its deadline.
func (w *cumulativeWorker) transaction(ctx context.Context, router *wiretopic.Router, consumer *wiretopic.Consumer) error {
	id, err := w.begin(ctx, router, w.ttl(), "")
	if err != nil {
		return err
	}
	var last *pulsarproto.MessageIdData
	for range 1 + rand.IntN(2) {
		acked, err := w.acknowledge(ctx, consumer, id)
		if err != nil {
			w.unsettled <- id
			return err
		}
		if acked != nil {
			last = acked
		}
	}
	switch fate := rand.IntN(10); {
	case fate < 7:
		answer, err := w.askEnd(ctx, router, id, txn.Commit, "")
		if answer == history.Done && last != nil {
			w.held = w.held[w.covered(last):]
		}
		return err
	case fate < 9:
		return w.end(ctx, router, id, txn.Abort, "")
	}
	return nil
}

// acknowledge acknowledges up to the last of some messages, if any come soon. It returns what was acknowledged for certain.
func (w *cumulativeWorker) acknowledge(ctx context.Context, consumer *wiretopic.Consumer, id txn.ID) (*pulsarproto.MessageIdData, error) {
	last, err := w.receive(ctx, consumer)
	if last == nil {
		return nil, err
	}
	bound, cancel := w.request(ctx)
	defer cancel()
	call := w.history.Now()
	ack := &pulsarproto.CommandAck{AckType: pulsarproto.CommandAck_Cumulative.Enum(), MessageId: []*pulsarproto.MessageIdData{last}}
	err = consumer.AckAs(bound, ack, &id)
	answer := refusedOr(answerOf(err))
	for _, m := range w.held[:w.covered(last)] {
		w.history.Acked(history.Ack{
			Topic: w.topic, Subscription: cumulativeSubscription, Key: m.Content, Txn: id, InTxn: true, Cumulative: true, Answer: answer,
		})
	}
	switch answer {
	case history.Done:
		w.used(id, "ACK", call)
		return last, nil
	case history.Unknown:
		return nil, fmt.Errorf("ACK: %w", err)
	}
	return nil, nil
}

// receive takes the messages that are there, and returns the position of the last one; nil: there is none.
func (w *cumulativeWorker) receive(ctx context.Context, consumer *wiretopic.Consumer) (last *pulsarproto.MessageIdData, err error) {
	soon, cancel := context.WithTimeout(ctx, messagePause)
	defer cancel()
	for range 1 + rand.IntN(mostCovered) {
		message, err := consumer.Receive(soon)
		switch {
		case err != nil && soon.Err() != nil:
			return last, nil
		case err != nil:
			return nil, err
		}
		last = message.ID
		if at, known := slices.BinarySearchFunc(w.held, last, compareID); !known {
			w.held = slices.Insert(w.held, at, message)
		}
	}
	return last, nil
}

// covered is how many of the held messages are not behind a position.
func (w *cumulativeWorker) covered(through *pulsarproto.MessageIdData) int {
	at, known := slices.BinarySearchFunc(w.held, through, compareID)
	if known {
		at++
	}
	return at
}

func compareID(m wiretopic.Message, id *pulsarproto.MessageIdData) int {
	return cmp.Or(cmp.Compare(m.ID.GetLedgerId(), id.GetLedgerId()), cmp.Compare(m.ID.GetEntryId(), id.GetEntryId()))
}
