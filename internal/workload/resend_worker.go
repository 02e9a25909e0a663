package workload

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/pulsar-tc/pulsar-tc/internal/history"
	"github.com/pulsar-tc/pulsar-tc/internal/wiretopic"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

const (
	// burst is how many messages are on their way at once.
	burst = 8
	// orderedKeys is the number of keys that the messages of the ordered topic have, in turn.
	orderedKeys = 11
	noEntry     = ^uint64(0)
)

// resender sends to a topic that deduplicates. What got no receipt it sends again under its sequence id, as clients do, so that
// in the end each message is there once and in order.
type resender struct {
	*Load

	mu       sync.Mutex // guards the following
	sent     uint64     // sequence ids below are sent
	answered uint64     // sequence ids below have their receipts
	position [2]uint64  // of the last receipt with a position: ledger, entry
	known    int64      // last sequence id that the server told when the producer attached
	repeats  int        // receipts of duplicates
}

func orderedContent(sequence uint64) string { return fmt.Sprintf("ordered-%d", sequence) }

// session sends until the connection ends, by its server or by itself.
func (r *resender) session(ctx context.Context) error {
	setup, cancel := r.request(ctx)
	defer cancel()
	router, closeQuietly := r.route()
	defer closeQuietly()
	topic, name := r.ordered, "resender"
	producer, err := router.ProduceAs(setup, &pulsarproto.CommandProducer{Topic: &topic, ProducerName: &name})
	if err != nil {
		return err
	}
	next := r.attached(producer.Success().GetLastSequenceId())
	for ctx.Err() == nil {
		if err := r.burst(ctx, producer, next); err != nil {
			return err
		}
		next += burst
		if rand.IntN(50) == 0 {
			r.abandon(producer, next)
			return nil
		}
		Pause(ctx, burst*feedPause)
	}
	return nil
}

// attached checks what the server knows, and returns the first sequence id without a receipt.
func (r *resender) attached(last int64) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if last < int64(r.answered)-1 || last >= int64(r.sent) {
		r.t.Errorf("the server knows sequence ids up to %d; receipts came up to %d, and %d were sent", last, int64(r.answered)-1, r.sent)
	}
	r.known = last
	return r.answered
}

// burst sends messages from sequence id first on and waits for their receipts.
func (r *resender) burst(ctx context.Context, producer *wiretopic.Producer, first uint64) error {
	ctx, cancel := r.request(ctx)
	defer cancel()
	answers := make(chan error, burst)
	call := r.history.Now()
	for sequence := first; sequence < first+burst; sequence++ {
		r.start(producer, sequence, func(err error) { answers <- err })
	}
	for range burst {
		select {
		case err := <-answers:
			if err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	r.served(r.ordered, call)
	return nil
}

// abandon sends messages whose receipts nobody waits for.
func (r *resender) abandon(producer *wiretopic.Producer, first uint64) {
	for sequence := first; sequence < first+burst; sequence++ {
		r.start(producer, sequence, func(error) {})
	}
}

func (r *resender) start(producer *wiretopic.Producer, sequence uint64, done func(error)) {
	r.mu.Lock()
	r.sent = max(r.sent, sequence+1)
	r.mu.Unlock()
	key := fmt.Sprintf("key-%d", sequence%orderedKeys)
	metadata := &pulsarproto.MessageMetadata{SequenceId: &sequence, PartitionKey: &key}
	producer.StartAs(metadata, orderedContent(sequence), nil, func(id *pulsarproto.MessageIdData, err error) {
		if err == nil {
			r.receipt(sequence, id)
		}
		done(err)
	})
}

// receipt checks one receipt. They come in the order of the messages; a duplicate is one that the server knew before.
func (r *resender) receipt(sequence uint64, id *pulsarproto.MessageIdData) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if sequence != r.answered {
		r.t.Errorf("the receipt of sequence id %d comes when %d is due", sequence, r.answered)
	}
	r.answered = sequence + 1
	duplicate := id.GetEntryId() == noEntry
	if duplicate != (int64(sequence) <= r.known) {
		r.t.Errorf("sequence id %d has receipt %v; the server knew ids up to %d", sequence, id, r.known)
	}
	if duplicate {
		r.repeats++
		return
	}
	at := [2]uint64{id.GetLedgerId(), id.GetEntryId()}
	if at[0] < r.position[0] || at[0] == r.position[0] && at[1] <= r.position[1] && r.answered > 1 {
		r.t.Errorf("sequence id %d is at %v, behind one at %v", sequence, at, r.position)
	}
	r.position = at
}

// record tells the history what was sent, when nothing more is.
func (r *resender) record() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for sequence := range r.sent {
		answer := history.Unknown
		if sequence < r.answered {
			answer = history.Done
		}
		r.history.Sent(history.Message{Topic: r.ordered, Key: orderedContent(sequence), Answer: answer})
	}
	r.t.Logf("%d messages in order, %d of them sent again though they were stored", r.sent, r.repeats)
}

var errOrder = errors.New("out of order")

// inOrder requires that every message is there once, in the order of its sequence id, without a gap.
func inOrder(contents []string) error {
	for i, content := range contents {
		if content != orderedContent(uint64(i)) {
			return fmt.Errorf("%w: %s is where %s has to be", errOrder, content, orderedContent(uint64(i)))
		}
	}
	return nil
}
