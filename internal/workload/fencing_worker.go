package workload

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/pulsar-tc/pulsar-tc/internal/history"
	"github.com/pulsar-tc/pulsar-tc/internal/wireclient"
	"github.com/pulsar-tc/pulsar-tc/internal/wiretopic"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

// fencers take a topic from each other, again and again: the epoch of the topic only grows, and nobody writes behind a later one.
type fencers struct {
	*Load

	mu   sync.Mutex // guards the following
	told int64      // highest epoch that a producer was told; -1: none
}

func newFencers(l *Load) *fencers { return &fencers{Load: l, told: -1} }

func (f *fencers) highest() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.told
}

// attached checks the epoch that a producer is told which asked when floor was the highest.
func (f *fencers) attached(epoch, floor int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if epoch <= floor {
		f.t.Errorf("epoch %d is told behind epoch %d", epoch, floor)
	}
	f.told = max(f.told, epoch)
}

// session takes the topic, sends until somebody else has it or it has sent enough, and comes again under its epoch.
func (f *fencers) session(ctx context.Context) error {
	setup, cancel := f.request(ctx)
	defer cancel()
	router, closeQuietly := f.route()
	defer closeQuietly()
	topic, floor := f.fenced, f.highest()
	producer, err := router.ProduceAs(setup, &pulsarproto.CommandProducer{
		Topic: &topic, ProducerAccessMode: pulsarproto.ProducerAccessMode_ExclusiveWithFencing.Enum(),
	})
	if err != nil {
		return err
	}
	epoch := producer.Success().GetTopicEpoch()
	f.attached(int64(epoch), floor)
	if err := f.send(ctx, producer, epoch); err != nil {
		return err
	}
	if err := producer.Close(setup); err != nil {
		return err
	}
	return f.comeAgain(ctx, router, epoch)
}

// comeAgain attaches under an epoch that was told before: impossible once somebody was told a later one.
func (f *fencers) comeAgain(ctx context.Context, router *wiretopic.Router, epoch uint64) error {
	setup, cancel := f.request(ctx)
	defer cancel()
	topic, floor := f.fenced, f.highest()
	producer, err := router.ProduceAs(setup, &pulsarproto.CommandProducer{
		Topic: &topic, TopicEpoch: &epoch, ProducerAccessMode: pulsarproto.ProducerAccessMode_Exclusive.Enum(),
	})
	var refused *wireclient.ServerError
	if errors.As(err, &refused) && refused.Code == pulsarproto.ServerError_ProducerFenced {
		return nil
	}
	if err != nil {
		return err
	}
	if int64(epoch) < floor {
		f.t.Errorf("a producer comes again under epoch %d when %d was told", epoch, floor)
	}
	return f.send(ctx, producer, producer.Success().GetTopicEpoch())
}

// send sends some messages that tell the epoch of their producer.
func (f *fencers) send(ctx context.Context, producer *wiretopic.Producer, epoch uint64) error {
	for range burst {
		bound, cancel := f.request(ctx)
		key := fmt.Sprintf("%d %s", epoch, f.key())
		call := f.history.Now()
		_, err := producer.Send(bound, key, nil)
		cancel()
		f.sent(call, history.Message{Topic: f.fenced, Key: key, Answer: refusedOr(answerOf(err))})
		if errors.Is(err, wiretopic.ErrClosedByServer) {
			return nil // somebody else has the topic
		}
		if err != nil {
			return err
		}
		Pause(ctx, feedPause)
	}
	return nil
}

// epochsGrow requires that no message is behind one of a later epoch.
func epochsGrow(contents []string) error {
	var last uint64
	for _, content := range contents {
		var epoch uint64
		var key string
		if _, err := fmt.Sscan(content, &epoch, &key); err != nil {
			return fmt.Errorf("message %q: %w", content, err)
		}
		if epoch < last {
			return fmt.Errorf("%w: a message of epoch %d behind one of epoch %d", errOrder, epoch, last)
		}
		last = epoch
	}
	return nil
}
