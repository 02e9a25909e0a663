package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/log"

	"github.com/pulsar-tc/pulsar-tc/internal/process"
	"github.com/pulsar-tc/pulsar-tc/internal/wireclient"
)

// publisher is one official Go producer that sends as fast as its answers come.
type publisher struct {
	client   pulsar.Client
	producer pulsar.Producer
	stored   atomic.Int64
	failed   atomic.Pointer[error]
}

func newGoClient(serviceURL string, transactions bool) (pulsar.Client, error) {
	return pulsar.NewClient(pulsar.ClientOptions{
		URL: serviceURL, EnableTransaction: transactions, Logger: log.NewLoggerWithSlog(slog.New(slog.NewTextHandler(io.Discard, nil))),
	})
}

// pendingMessages is how far a producer is ahead of its answers. With the 1000 of its default the client waits most of the time.
const pendingMessages = 50_000

func openPublisher(serviceURL, topic string, batches bool) (*publisher, error) {
	client, err := newGoClient(serviceURL, false)
	if err != nil {
		return nil, err
	}
	producer, err := client.CreateProducer(pulsar.ProducerOptions{
		Topic: topic, DisableBatching: !batches, MaxPendingMessages: pendingMessages,
	})
	if err != nil {
		client.Close()
		return nil, err
	}
	return &publisher{client: client, producer: producer}, nil
}

func (p *publisher) close() {
	p.producer.Close()
	p.client.Close()
}

// publish stores n messages.
func publish(ctx context.Context, serviceURL, topic string, n int, batches bool) error {
	p, err := openPublisher(serviceURL, topic, batches)
	if err != nil {
		return err
	}
	defer p.close()
	return p.send(ctx, n)
}

// send sends limit messages, or until ctx ends if limit is negative. It returns when all are answered.
func (p *publisher) send(ctx context.Context, limit int) error {
	payload := make([]byte, payloadBytes)
	for n := 0; n != limit && ctx.Err() == nil && p.failed.Load() == nil; n++ {
		p.producer.SendAsync(context.Background(), &pulsar.ProducerMessage{Payload: payload}, p.answered)
	}
	if err := p.producer.FlushWithCtx(context.Background()); err != nil {
		return err
	}
	if err := p.failed.Load(); err != nil {
		return fmt.Errorf("send to %s: %w", p.producer.Topic(), *err)
	}
	return nil
}

func (p *publisher) answered(_ pulsar.MessageID, _ *pulsar.ProducerMessage, err error) {
	if err != nil {
		p.failed.CompareAndSwap(nil, &err)
	}
	p.stored.Add(1)
}

// runFor measures how many messages are stored in d, after warmUp. begun and ended are called around d.
func (p *publisher) runFor(ctx context.Context, warmUp, d time.Duration, begun, ended func()) (measured, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- p.send(ctx, -1) }()
	pause(ctx, warmUp)
	begun()
	before, began := p.stored.Load(), time.Now()
	pause(ctx, d)
	m := measured{count: p.stored.Load() - before, took: time.Since(began)}
	ended()
	cancel()
	return m, <-done
}

const (
	plainSends = "plain sends of 100 B, 1 Go producer, batching"
	// clientTurns are what official clients and the bare store take of a second each, so that both meet the same machine.
	clientTurns = 8
)

// publishPlain is in turns with bare puts of the bytes of each etcd transaction that the server committed meanwhile.
func publishPlain(ctx context.Context, _ *suite) ([]line, error) {
	var ours measured
	var puts time.Duration
	err := withLocal(ctx, nil, func(l *local, _ *wireclient.Conn) error {
		return onBare(ctx, func(b *bare) error {
			p, err := openPublisher(l.ServiceURL(), "persistent://public/default/plain", true)
			if err != nil {
				return err
			}
			defer p.close()
			for range clientTurns {
				var recorded []transaction
				m, err := p.runFor(ctx, warmUp/4, time.Second, l.start, func() { recorded = l.recording.stop() })
				if err != nil {
					return err
				}
				took, err := b.puts(ctx, recorded)
				if err != nil {
					return err
				}
				ours.add(m)
				puts += sum(took)
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	bare := ceiling{"bare etcd puts, same bytes and grouping", float64(ours.count) / puts.Seconds()}
	return []line{figure(plainSends, ours.rate(), "msg/s").compared(bare).ratioAtLeast(0.5)}, nil
}

// backlogMessages is the backlog that a consumer finds.
const backlogMessages = 1_000_000

// consumer reads a topic from its first message on with one official Go consumer.
type consumer struct {
	serviceURL string
	topic      string
	runs       int // each has a subscription of its own
}

// runFor measures how many messages of the backlog are received and acknowledged in d, or how long all of them take. There is
// nothing to warm up: the next run begins at the first message again.
func (c *consumer) runFor(ctx context.Context, _, d time.Duration) (m measured, err error) {
	client, err := newGoClient(c.serviceURL, false)
	if err != nil {
		return m, err
	}
	defer client.Close()
	c.runs++
	consumer, err := client.Subscribe(pulsar.ConsumerOptions{
		Topic: c.topic, SubscriptionName: fmt.Sprintf("run-%d", c.runs), SubscriptionInitialPosition: pulsar.SubscriptionPositionEarliest,
	})
	if err != nil {
		return m, err
	}
	defer consumer.Close()
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	for began := time.Now(); m.count < backlogMessages; m.took = time.Since(began) {
		message, err := consumer.Receive(ctx)
		if errors.Is(err, context.DeadlineExceeded) {
			break
		}
		if err != nil {
			return m, err
		}
		if err := consumer.Ack(message); err != nil {
			return m, err
		}
		m.count++
	}
	return m, nil
}

// publishes lets both servers store plain messages.
func (c *contest) publishes(ctx context.Context, ours *process.Server, theirs *broker) error {
	on := func(serviceURL string) func(time.Duration) (measured, error) {
		return func(warmUp time.Duration) (m measured, err error) {
			p, err := openPublisher(serviceURL, "persistent://public/default/plain", true)
			if err != nil {
				return m, err
			}
			defer p.close()
			return p.runFor(ctx, warmUp, contestTurn, func() {}, func() {})
		}
	}
	return c.run(contender{ours.Pid(), on(ours.ServiceURL)}, contender{theirs.pid(), on(theirs.url)})
}

// consumes lets both deliver a backlog.
func (c *contest) consumes(ctx context.Context, ours *process.Server, theirs *broker) error {
	const topic = "persistent://public/default/backlog"
	on := func(serviceURL string) func(time.Duration) (measured, error) {
		reader := &consumer{serviceURL: serviceURL, topic: topic}
		return func(warmUp time.Duration) (measured, error) { return reader.runFor(ctx, warmUp, contestTurn) }
	}
	for _, serviceURL := range []string{ours.ServiceURL, theirs.url} {
		if err := publish(ctx, serviceURL, topic, backlogMessages, true); err != nil {
			return err
		}
	}
	return c.run(contender{ours.Pid(), on(ours.ServiceURL)}, contender{theirs.pid(), on(theirs.url)})
}
