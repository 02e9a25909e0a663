package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/internal/process"
	"github.com/pulsar-tc/pulsar-tc/internal/wireclient"
)

// transformers are official Go clients that each consume a message, produce one and commit, one transaction after the other.
type transformers struct {
	serviceURL string
	// own gives each client topics of its own; otherwise all share one input, Shared, and one output.
	own  bool
	runs int // each has topics of its own
}

const (
	transformClients = 16
	// transformInput is more than any server here gets through in a turn, in messages of all clients.
	transformInput = 24_000
)

func (t *transformers) topics(client int) (in, out string) {
	if !t.own {
		client = 0
	}
	return fmt.Sprintf("persistent://public/default/in-%d-%d", t.runs, client), fmt.Sprintf("persistent://public/default/out-%d-%d", t.runs, client)
}

// runFor measures how many transactions all clients commit together in d, after warmUp.
func (t *transformers) runFor(ctx context.Context, warmUp, d time.Duration) (measured, error) {
	t.runs++
	if err := t.fill(ctx); err != nil {
		return measured{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var count atomic.Int64
	var clients, opened sync.WaitGroup
	errs := make([]error, transformClients)
	opened.Add(transformClients)
	for i := range transformClients {
		clients.Go(func() {
			c, err := t.open(i)
			opened.Done()
			if err != nil {
				errs[i] = err
				return
			}
			defer c.client.Close()
			for ctx.Err() == nil {
				if err := c.once(ctx); err != nil {
					if ctx.Err() == nil {
						errs[i] = err
					}
					return
				}
				count.Add(1)
			}
		})
	}
	opened.Wait()
	pause(ctx, warmUp)
	before, began := count.Load(), time.Now()
	pause(ctx, d)
	m := measured{count: count.Load() - before, took: time.Since(began)}
	cancel()
	clients.Wait()
	return m, errors.Join(errs...)
}

// fill stores the input. Batches are off: the Go client acknowledges batches as a whole.
func (t *transformers) fill(ctx context.Context) error {
	topics := 1
	if t.own {
		topics = transformClients
	}
	for i := range topics {
		in, _ := t.topics(i)
		if err := (publisher{t.serviceURL, in}).publish(ctx, transformInput/topics, false, new(atomic.Int64)); err != nil {
			return err
		}
	}
	return nil
}

type transformer struct {
	client   pulsar.Client
	consumer pulsar.Consumer
	producer pulsar.Producer
}

func (t *transformers) open(i int) (c transformer, err error) {
	if c.client, err = newGoClient(t.serviceURL, true); err != nil {
		return c, err
	}
	in, out := t.topics(i)
	c.consumer, err = c.client.Subscribe(pulsar.ConsumerOptions{
		Topic: in, SubscriptionName: "transform", Type: pulsar.Shared, ReceiverQueueSize: 50,
		SubscriptionInitialPosition: pulsar.SubscriptionPositionEarliest,
	})
	if err == nil {
		c.producer, err = c.client.CreateProducer(pulsar.ProducerOptions{Topic: out, DisableBatching: true})
	}
	if err != nil {
		c.client.Close()
	}
	return c, err
}

// once is NEW, SEND, ACK, END COMMIT.
func (c *transformer) once(ctx context.Context) error {
	message, err := c.consumer.Receive(ctx)
	if err != nil {
		return err
	}
	transaction, err := c.client.NewTransaction(time.Minute)
	if err != nil {
		return err
	}
	if _, err := c.producer.Send(ctx, &pulsar.ProducerMessage{Payload: message.Payload(), Transaction: transaction}); err != nil {
		return err
	}
	if err := c.consumer.AckWithTxn(message, transaction); err != nil {
		return err
	}
	return transaction.Commit(ctx)
}

const consumeTransformProduce = "consume-transform-produce, 1 message, 16 Go clients"

// transform is compared with workers that each commit five etcd transactions one after the other, as often.
func transform(ctx context.Context, _ *suite) ([]line, error) {
	var ours measured
	err := withLocal(ctx, nil, func(l *local, _ *wireclient.Conn) (err error) {
		ours, err = (&transformers{serviceURL: l.ServiceURL()}).runFor(ctx, warmUp, measuredTime/2)
		return err
	})
	if err != nil {
		return nil, err
	}
	var bareRate float64
	err = onBare(ctx, func(b *bare) (err error) {
		bareRate, err = b.chains(ctx, transformClients, 5, measuredTime/4)
		return err
	})
	if err != nil {
		return nil, err
	}
	with := ceiling{"16 workers, 5 dependent etcd transactions each", bareRate}
	return []line{figure(consumeTransformProduce, ours.rate(), "txn/s").compared(with).ratioAtLeast(0.5)}, nil
}

// chains measures how many chains of dependent etcd transactions workers finish in a second. Each transaction has a compare
// and a put of payloadBytes.
func (b *bare) chains(ctx context.Context, workers, length int, d time.Duration) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	var finished atomic.Int64
	var all sync.WaitGroup
	errs := make([]error, workers)
	began := time.Now()
	for w := range workers {
		all.Go(func() {
			for n := 1; ; n++ {
				key := fmt.Sprintf("chain/%d/%d", w, n)
				_, err := b.client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).
					Then(clientv3.OpPut(key, string(make([]byte, payloadBytes)))).Commit()
				if ctx.Err() != nil {
					return
				}
				if err != nil {
					errs[w] = err
					return
				}
				if n%length == 0 {
					finished.Add(1)
				}
			}
		})
	}
	all.Wait()
	return float64(finished.Load()) / time.Since(began).Seconds(), errors.Join(errs...)
}

// transforms lets both run transformers.
func (c *contest) transforms(ctx context.Context, ours *process.Server, theirs *broker) error {
	on := func(t *transformers) func(time.Duration) (measured, error) {
		return func(warmUp time.Duration) (measured, error) { return t.runFor(ctx, warmUp, contestTurn) }
	}
	return c.run(
		contender{ours.Pid(), on(&transformers{serviceURL: ours.ServiceURL})},
		contender{theirs.pid(), on(&transformers{serviceURL: theirs.url, own: true})},
	)
}
