//go:build !race

// The official client has a data race when a producer connects again, and that is what happens here.

package server

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/log"

	"github.com/pulsar-tc/pulsar-tc/internal/faultnet"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

// A client that was unreachable while another took over the name of its producer, or its Exclusive subscription, comes again: its
// connection is not one on which nothing is answered any more.
func TestClientComesAgainAfterItWasTakenForDead(t *testing.T) {
	s := start(t, load(t, "connectionLivenessCheckTimeoutMillis=300"))
	link := faultnet.New(t, strings.TrimPrefix(s.ServiceURL(), "pulsar://"))
	unreachable, err := pulsar.NewClient(pulsar.ClientOptions{URL: "pulsar://" + link.Addr(), Logger: log.NewLoggerWithSlog(slog.New(slog.DiscardHandler))})
	if err != nil {
		t.Fatal(err)
	}
	defer unreachable.Close()
	other := officialClient(t, s)
	for _, topic := range []string{"persistent://public/default/t", "non-persistent://public/default/t"} {
		t.Run(topic, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			producer, err := unreachable.CreateProducer(pulsar.ProducerOptions{Topic: topic, Name: "p", DisableBatching: true})
			if err != nil {
				t.Fatal(err)
			}
			consumer, err := unreachable.Subscribe(pulsar.ConsumerOptions{Topic: topic, SubscriptionName: "s"})
			if err != nil {
				t.Fatal(err)
			}
			link.Set(faultnet.Condition{HoldRequests: true, HoldAnswers: true})
			next, err := other.CreateProducer(pulsar.ProducerOptions{Topic: topic, Name: "p", DisableBatching: true})
			if err != nil {
				t.Fatal(err)
			}
			heir, err := other.Subscribe(pulsar.ConsumerOptions{Topic: topic, SubscriptionName: "s"})
			if err != nil {
				t.Fatal(err)
			}
			next.Close()
			heir.Close()
			link.Heal()
			if _, err := producer.Send(ctx, &pulsar.ProducerMessage{Payload: []byte("again")}); err != nil {
				t.Errorf("send: %v", err)
			}
			receiveOne(ctx, t, producer, consumer)
		})
	}
}

// A client that gives up while the one in its way is asked whether it is alive takes nothing away from it.
func TestWhoGivesUpTakesNothingAway(t *testing.T) {
	s := start(t, load(t))
	link := faultnet.New(t, strings.TrimPrefix(s.ServiceURL(), "pulsar://"))
	slow, err := pulsar.NewClient(pulsar.ClientOptions{URL: "pulsar://" + link.Addr(), Logger: log.NewLoggerWithSlog(slog.New(slog.DiscardHandler))})
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	const topic = "non-persistent://public/default/t"
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	producer, err := slow.CreateProducer(pulsar.ProducerOptions{Topic: topic, Name: "p", DisableBatching: true})
	if err != nil {
		t.Fatal(err)
	}
	consumer, err := slow.Subscribe(pulsar.ConsumerOptions{Topic: topic, SubscriptionName: "s"})
	if err != nil {
		t.Fatal(err)
	}
	receiveOne(ctx, t, producer, consumer)
	link.Set(faultnet.Condition{HoldRequests: true, HoldAnswers: true})
	other := dial(ctx, t, s)
	brief, giveUp := context.WithTimeout(ctx, 200*time.Millisecond)
	defer giveUp()
	kind, name := pulsarproto.CommandSubscribe_Exclusive, "s"
	subscribe := &pulsarproto.CommandSubscribe{Topic: new(topic), Subscription: &name, SubType: &kind}
	if _, err := other.SubscribeAs(brief, subscribe); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("a second Exclusive consumer: %v", err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond)
	link.Heal()
	receiveOne(ctx, t, producer, consumer)
}
