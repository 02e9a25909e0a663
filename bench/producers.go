package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

// producers are official Go clients, each with one producer; a client waits for each answer.
type producers struct {
	serviceURL string
	clients    int
	topic      func(client int) string
	payload    []byte
}

const (
	goClients    = 64
	payloadBytes = 100
)

func onOneTopic(serviceURL string) *producers {
	return &producers{
		serviceURL: serviceURL, clients: goClients, payload: make([]byte, payloadBytes),
		topic: func(int) string { return "persistent://public/default/bench" },
	}
}

// onManyTopics gives each client a topic of its own.
func onManyTopics(serviceURL string) *producers {
	return &producers{
		serviceURL: serviceURL, clients: goClients, payload: make([]byte, payloadBytes),
		topic: func(i int) string { return fmt.Sprintf("persistent://public/default/bench-%d", i) },
	}
}

// produced is one client's part.
type produced struct {
	client   pulsar.Client
	producer pulsar.Producer
}

func (p *producers) open(i int) (produced, error) {
	client, err := newGoClient(p.serviceURL, true)
	if err != nil {
		return produced{}, err
	}
	producer, err := client.CreateProducer(pulsar.ProducerOptions{Topic: p.topic(i), DisableBatching: true})
	if err != nil {
		client.Close()
		return produced{}, err
	}
	return produced{client, producer}, nil
}

func (d *produced) close() {
	d.producer.Close()
	d.client.Close()
}

// once is NEW, SEND, END COMMIT.
func (d *produced) once(ctx context.Context, payload []byte) error {
	transaction, err := d.client.NewTransaction(time.Minute)
	if err != nil {
		return err
	}
	if _, err := d.producer.Send(ctx, &pulsar.ProducerMessage{Payload: payload, Transaction: transaction}); err != nil {
		return err
	}
	return transaction.Commit(ctx)
}

// runFor measures how many transactions all clients commit together in d, after warmUp.
func (p *producers) runFor(ctx context.Context, warmUp, d time.Duration) (measured, error) {
	var (
		count   atomic.Int64
		stopped atomic.Bool
		clients sync.WaitGroup
		opened  sync.WaitGroup
		errs    = make([]error, p.clients)
	)
	opened.Add(p.clients)
	for i := range p.clients {
		clients.Go(func() {
			client, err := p.open(i)
			opened.Done()
			if err != nil {
				errs[i] = err
				return
			}
			defer client.close()
			for !stopped.Load() && errs[i] == nil {
				errs[i] = client.once(ctx, p.payload)
				count.Add(1)
			}
		})
	}
	opened.Wait()
	pause(ctx, warmUp)
	before, began := count.Load(), time.Now()
	pause(ctx, d)
	m := measured{count: count.Load() - before, took: time.Since(began)}
	stopped.Store(true)
	clients.Wait()
	return m, errors.Join(append(errs, ctx.Err())...)
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
