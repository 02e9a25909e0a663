//go:build !race

// The official client has a data race when a producer connects again, and that is what happens here.

package server

import (
	"context"
	"errors"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/log"

	"github.com/pulsar-tc/pulsar-tc/internal/faultnet"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

// closedConnections is in the metrics when a connection has ended.
var closedConnections = regexp.MustCompile(`(?m)^pulsar_tc_connections_closed_total\{.*\} [1-9]`)

// clientThrough is the stock client behind a link.
func clientThrough(t *testing.T, link *faultnet.Link) pulsar.Client {
	t.Helper()
	client, err := pulsar.NewClient(pulsar.ClientOptions{URL: "pulsar://" + link.Addr(), Logger: log.NewLoggerWithSlog(slog.New(slog.DiscardHandler))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// attach makes the producer p and an Exclusive consumer of the subscription s.
func attach(t *testing.T, client pulsar.Client, topic string) (pulsar.Producer, pulsar.Consumer) {
	t.Helper()
	producer, err := client.CreateProducer(pulsar.ProducerOptions{Topic: topic, Name: "p", DisableBatching: true})
	if err != nil {
		t.Fatal(err)
	}
	consumer, err := client.Subscribe(pulsar.ConsumerOptions{Topic: topic, SubscriptionName: "s"})
	if err != nil {
		t.Fatal(err)
	}
	return producer, consumer
}

// A client that was unreachable while another took over the name of its producer, or its Exclusive subscription, comes again: its
// connection is not one on which nothing is answered any more.
func TestClientComesAgainAfterItWasTakenForDead(t *testing.T) {
	s := start(t, load(t, "connectionLivenessCheckTimeoutMillis=300"))
	link := faultnet.New(t, strings.TrimPrefix(s.ServiceURL(), "pulsar://"))
	unreachable := clientThrough(t, link)
	other := officialClient(t, s)
	for _, topic := range []string{"persistent://public/default/t", "non-persistent://public/default/t"} {
		t.Run(topic, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			producer, consumer := attach(t, unreachable, topic)
			link.Set(faultnet.Condition{HoldRequests: true, HoldAnswers: true})
			next, heir := attach(t, other, topic)
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
	slow := clientThrough(t, link)
	const topic = "non-persistent://public/default/t"
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	producer, consumer := attach(t, slow, topic)
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
	until(t, "the connection has ended, with all that was asked on it", func() bool {
		_, page := get(t, s.WebURL()+"/metrics")
		return closedConnections.MatchString(page)
	})
	link.Heal()
	receiveOne(ctx, t, producer, consumer)
}
