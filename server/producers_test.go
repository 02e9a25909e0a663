package server

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

// TestProducersOfTheOfficialClient: exclusive producers wait for each other, and what is sent again under the same name is stored
// once, over a new connection too.
func TestProducersOfTheOfficialClient(t *testing.T) {
	s := start(t, load(t, "brokerDeduplicationEnabled=true"))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	options := func(mode pulsar.ProducerAccessMode) pulsar.ProducerOptions {
		return pulsar.ProducerOptions{Topic: "t", Name: "p", ProducerAccessMode: mode, DisableBatching: true}
	}
	send := func(p pulsar.Producer, sequences ...int64) {
		t.Helper()
		for _, sequence := range sequences {
			if _, err := p.Send(ctx, &pulsar.ProducerMessage{Payload: []byte{byte(sequence)}, SequenceID: &sequence}); err != nil {
				t.Fatal(err)
			}
		}
	}
	first := officialClient(t, s)
	holder, err := first.CreateProducer(options(pulsar.ProducerAccessModeExclusive))
	if err != nil {
		t.Fatal(err)
	}
	send(holder, 1, 2, 3)
	second := officialClient(t, s)
	other := options(pulsar.ProducerAccessModeExclusive)
	other.Name = "q"
	if _, err := second.CreateProducer(other); err == nil || !strings.Contains(err.Error(), "ProducerFenced") {
		t.Fatalf("beside an exclusive producer: %v", err)
	}
	created := make(chan pulsar.Producer, 1)
	other.ProducerAccessMode = pulsar.ProducerAccessModeWaitForExclusive
	go func() {
		p, err := second.CreateProducer(other)
		if err != nil {
			t.Error(err)
		}
		created <- p
	}()
	send(holder, 4)
	holder.Close()
	select {
	case p := <-created:
		send(p, 1)
		p.Close()
	case <-ctx.Done():
		t.Fatal("a producer that waits is not told")
	}
	again, err := second.CreateProducer(options(pulsar.ProducerAccessModeShared))
	if err != nil {
		t.Fatal(err)
	}
	send(again, 3, 4, 5)
	c, err := first.Subscribe(pulsar.ConsumerOptions{
		Topic: "t", SubscriptionName: "s", SubscriptionInitialPosition: pulsar.SubscriptionPositionEarliest,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []byte{1, 2, 3, 4, 1, 5} {
		msg, err := c.Receive(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if got := msg.Payload()[0]; got != want {
			t.Fatalf("received %d, want %d", got, want)
		}
	}
}

// The receipts of what a producer has sent come before the answer to its CLOSE_PRODUCER: clients tell applications that everything
// else was not sent, and nobody would send it again knowing that it is stored.
func TestReceiptsComeBeforeTheProducerIsClosed(t *testing.T) {
	const sends = 100
	s := start(t, load(t))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	client := dial(ctx, t, s)
	for _, topic := range []string{"persistent://public/default/t", "non-persistent://public/default/t"} {
		p, err := client.Produce(ctx, topic)
		if err != nil {
			t.Fatal(err)
		}
		var answered atomic.Int32
		for range sends {
			p.Start("m", nil, func(_ *pulsarproto.MessageIdData, err error) {
				if err == nil {
					answered.Add(1)
				}
			})
		}
		if err := p.Close(ctx); err != nil {
			t.Fatal(err)
		}
		if got := answered.Load(); got != sends {
			t.Errorf("%s: %d of %d sends have receipts", topic, got, sends)
		}
	}
}
