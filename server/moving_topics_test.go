//go:build !race

// The official client has a data race when a producer connects again, and that is what happens here.

package server

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"

	"github.com/pulsar-tc/pulsar-tc/internal/etcdtest"
)

// FC-50: the lease of an instance is revoked while transactions run over its topics and others'. Its topics go to others or come back,
// and nothing that was answered is lost, torn or twice.
func TestLeaseRevokedInTheMiddle(t *testing.T) {
	const transactions = 30
	etcd := etcdtest.Serve(t, "http", nil)
	set := shared(etcd, 3)
	servers := []*Server{start(t, load(t, set...)), start(t, load(t, set...)), start(t, load(t, set...))}
	evenly(t, 3, servers...)
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	topics := names(t, 4)
	o := newOrders(t, official(t, servers[0]), topics)
	committed := map[string]bool{}
	for i := range transactions {
		if i%10 == 5 {
			unlucky := servers[i/10]
			if _, err := etcd.Client(t).Revoke(ctx, unlucky.cluster.Session().Lease); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := o.producers[0].Send(ctx, &pulsar.ProducerMessage{Payload: fmt.Append(nil, "order ", i)}); err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprint(i)
		o.transact(ctx, text, i%4 != 3)
		committed[text] = i%4 != 3
	}
	reading := official(t, servers[1])
	last := ""
	for _, topic := range topics[1:] {
		counts := map[string]int{}
		for _, text := range received(ctx, t, reading, topic, transactions*3/4+1) {
			counts[text]++
		}
		for text, was := range committed {
			if was && counts[text] == 0 || !was && counts[text] > 0 {
				t.Errorf("%s: %s is there %d times, committed %t", topic, text, counts[text], was)
			}
		}
		if shown := fmt.Sprint(counts); last != "" && shown != last {
			t.Errorf("%s: %s, elsewhere %s: torn", topic, shown, last)
		} else {
			last = shown
		}
	}
}

// A non-persistent topic has one place, too; when an instance comes whose place it is, its clients go there.
func TestNonPersistentTopicsAreShared(t *testing.T) {
	etcd := etcdtest.Serve(t, "http", nil)
	set := shared(etcd, 1)
	first := start(t, load(t, set...))
	client := official(t, first)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	type pair struct {
		producer pulsar.Producer
		consumer pulsar.Consumer
	}
	var pairs []pair
	for i := range 24 { // of six, all stay where they are once in 64 times
		topic := fmt.Sprint("non-persistent://public/default/n", i)
		consumer, err := client.Subscribe(pulsar.ConsumerOptions{Topic: topic, SubscriptionName: "s"})
		if err != nil {
			t.Fatal(err)
		}
		producer, err := client.CreateProducer(pulsar.ProducerOptions{Topic: topic, DisableBatching: true})
		if err != nil {
			t.Fatal(err)
		}
		pairs = append(pairs, pair{producer, consumer})
	}
	second := start(t, load(t, set...))
	until(t, "topics are moved", func() bool { return len(second.nonPersistent.List("public/default")) > 0 })
	for i, p := range pairs {
		until(t, fmt.Sprintf("topic %d works", i), func() bool {
			if _, err := p.producer.Send(ctx, &pulsar.ProducerMessage{Payload: []byte("x")}); err != nil {
				return false
			}
			receiving, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
			defer cancel()
			_, err := p.consumer.Receive(receiving)
			return err == nil
		})
	}
	for _, name := range first.nonPersistent.List("public/default") {
		if slices.Contains(second.nonPersistent.List("public/default"), name) {
			t.Errorf("%s is at two instances", name)
		}
	}
}

// An instance that stops gives its topics up: their clients go on at the other one at once, with everything.
func TestTopicsAreHandedOver(t *testing.T) {
	etcd := etcdtest.Serve(t, "http", nil)
	set := shared(etcd, 1)
	first, second := start(t, load(t, set...)), start(t, load(t, set...))
	until(t, "they know each other", func() bool { return len(first.cluster.Instances()) == 2 && len(second.cluster.Instances()) == 2 })
	client := official(t, second)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var producers []pulsar.Producer
	topics := names(t, 6)
	for _, topic := range topics {
		producer, err := client.CreateProducer(pulsar.ProducerOptions{Topic: topic, DisableBatching: true})
		if err != nil {
			t.Fatal(err)
		}
		producers = append(producers, producer)
	}
	send := func(text string) {
		t.Helper()
		for _, p := range producers {
			if _, err := p.Send(ctx, &pulsar.ProducerMessage{Payload: []byte(text)}); err != nil {
				t.Fatalf("%s to %s: %v", text, p.Topic(), err)
			}
		}
	}
	send("before")
	stop(t, first)
	send("behind")
	for _, topic := range topics {
		if got := received(ctx, t, client, topic, 2); !slices.Equal(got, []string{"before", "behind"}) {
			t.Errorf("%s: %q", topic, got)
		}
		if got := ownerIn(t, second, topic); got != second.cluster.Self().ID {
			t.Errorf("%s is %q's", topic, got)
		}
	}
}
