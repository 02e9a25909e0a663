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

	count  atomic.Int64
	paused sync.RWMutex // held while no transaction may begin
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
func (t *transformers) runFor(ctx context.Context, warmUp, d time.Duration) (m measured, err error) {
	stop, err := t.start(ctx)
	if err != nil {
		return m, err
	}
	pause(ctx, warmUp)
	m = t.during(ctx, d)
	return m, stop()
}

// during counts the transactions that are committed in d.
func (t *transformers) during(ctx context.Context, d time.Duration) measured {
	before, began := t.count.Load(), time.Now()
	pause(ctx, d)
	return measured{count: t.count.Load() - before, took: time.Since(began)}
}

// start opens the clients. They run until stop, which returns what failed.
func (t *transformers) start(ctx context.Context) (stop func() error, err error) {
	t.runs++
	if err := t.fill(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
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
			errs[i] = t.run(ctx, &c)
		})
	}
	opened.Wait()
	return func() error {
		cancel()
		clients.Wait()
		return errors.Join(errs...)
	}, nil
}

// run lets a client commit one transaction after the other until ctx ends.
func (t *transformers) run(ctx context.Context, c *transformer) error {
	for ctx.Err() == nil {
		t.paused.RLock()
		err := c.once(ctx)
		t.paused.RUnlock()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		t.count.Add(1)
	}
	return nil
}

// fill stores the input. Batches are off: the Go client acknowledges batches as a whole.
func (t *transformers) fill(ctx context.Context) error {
	topics := 1
	if t.own {
		topics = transformClients
	}
	for i := range topics {
		in, _ := t.topics(i)
		if err := publish(ctx, t.serviceURL, in, transformInput/topics, false); err != nil {
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

// transform is in turns with workers that each commit five etcd transactions one after the other, as often.
func transform(ctx context.Context, _ *suite) ([]line, error) {
	var ours, chains measured
	err := withLocal(ctx, nil, func(l *local, _ *wireclient.Conn) error {
		return onBare(ctx, func(b *bare) error {
			t := &transformers{serviceURL: l.ServiceURL()}
			stop, err := t.start(ctx)
			if err != nil {
				return err
			}
			for range clientTurns {
				pause(ctx, warmUp/4)
				ours.add(t.during(ctx, time.Second))
				t.paused.Lock()
				m, err := b.chains(ctx, transformClients, 5, time.Second)
				t.paused.Unlock()
				if err != nil {
					return errors.Join(err, stop())
				}
				chains.add(m)
			}
			return stop()
		})
	})
	if err != nil {
		return nil, err
	}
	with := ceiling{"16 workers, 5 dependent etcd transactions each", chains.rate()}
	return []line{figure(consumeTransformProduce, ours.rate(), "txn/s").compared(with).ratioAtLeast(0.5)}, nil
}

// chains measures how many chains of dependent etcd transactions workers finish in d. Each transaction has a compare
// and a put of payloadBytes.
func (b *bare) chains(ctx context.Context, workers, length int, d time.Duration) (measured, error) {
	b.chained++
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	var finished atomic.Int64
	var all sync.WaitGroup
	errs := make([]error, workers)
	began := time.Now()
	for w := range workers {
		all.Go(func() {
			for n := 1; ; n++ {
				key := fmt.Sprintf("chain/%d/%d/%d", b.chained, w, n)
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
	return measured{count: finished.Load(), took: time.Since(began)}, errors.Join(errs...)
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
