package workload

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"

	"github.com/pulsar-tc/pulsar-tc/admin"
	"github.com/pulsar-tc/pulsar-tc/internal/history"
	"github.com/pulsar-tc/pulsar-tc/internal/wireclient"
	"github.com/pulsar-tc/pulsar-tc/internal/wiretopic"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

const (
	// endTime is when every transaction must have ended after the last fault: the longest time to live, 8 s, plus a bound.
	endTime = 40 * time.Second
	// readTime bounds the reading of everything in the end, of long runs, too.
	readTime = 10 * time.Minute
	// inFlight is how many outcomes are asked for at once in the end.
	inFlight = 256
	// ackedAtOnce is after how many messages a reader acknowledges, so that it never has as many as a consumer may have.
	ackedAtOnce = 1000
)

// Finish asks how everything ended, when the clients have stopped and the server stays up.
func (l *Load) Finish() {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), endTime+readTime)
	defer cancel()
	if l.resender != nil {
		l.resender.record()
	}
	l.awaitEnds(ctx)
	router, closeQuietly := l.route()
	defer closeQuietly()
	l.askAll(ctx, router)
	l.markEnds(ctx, router, "end")
	l.readTopics(ctx, router)
	l.readSubscriptions(ctx, router)
	if l.life != nil {
		l.life.verify(ctx, router)
	}
}

// Check reports every anomaly.
func (l *Load) Check() {
	l.t.Helper()
	l.t.Logf("%+v", l.history.Counts())
	anomalies := l.history.Check()
	if len(anomalies) > 0 {
		l.logStats()
	}
	for i, anomaly := range anomalies {
		if i == 20 {
			l.t.Error("and more")
			return
		}
		l.t.Error(anomaly)
	}
}

// awaitEnds waits until no transaction is live, and records those that still are when the time is over.
func (l *Load) awaitEnds(ctx context.Context) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(ctx, endTime)
	defer cancel()
	for {
		live, err := l.listLive(context.WithoutCancel(ctx))
		if err != nil {
			l.t.Fatal(err)
		}
		if len(live) == 0 || ctx.Err() != nil {
			l.recordLive(live)
			return
		}
		Pause(ctx, 100*time.Millisecond)
	}
}

func (l *Load) recordLive(live []admin.Transaction) {
	l.t.Helper()
	var ids []txn.ID
	for _, transaction := range live {
		id, err := txn.ParseID(transaction.ID)
		if err != nil {
			l.t.Fatal(err)
		}
		ids = append(ids, id)
		l.t.Logf("live: %+v", transaction)
	}
	l.history.Live(ids)
}

// askAll asks every transaction how it ended. All have ended, so nothing is decided by it.
func (l *Load) askAll(ctx context.Context, router *wiretopic.Router) {
	l.t.Helper()
	room := make(chan struct{}, inFlight)
	var answers sync.WaitGroup
	for _, id := range l.history.Transactions() {
		client, err := router.Coordinator(ctx, id.Most)
		if err != nil {
			l.t.Fatal(err)
		}
		room <- struct{}{}
		answers.Add(1)
		call := l.history.Now()
		client.Start(wireclient.EndTxn(id, txn.Commit, ""), func(answer *pulsarproto.BaseCommand, err error) {
			if err == nil {
				err = wireclient.ErrorOf(answer)
			}
			l.history.Ended(history.End{
				Span: history.Span{Call: call, Return: l.history.Now()}, ID: id, Action: txn.Commit, Answer: answerOf(err),
			})
			<-room
			answers.Done()
		})
	}
	done := make(chan struct{})
	go func() { answers.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
		l.t.Fatal("not every transaction told in time how it ended")
	}
}

// markEnds sends a last message to every topic, so that readers know where to stop.
func (l *Load) markEnds(ctx context.Context, router *wiretopic.Router, mark string) {
	l.t.Helper()
	for _, topic := range l.topics() {
		producer, err := router.Produce(ctx, topic)
		if err == nil {
			_, err = producer.Send(ctx, mark, nil)
		}
		if err != nil {
			l.t.Fatalf("last message to %s: %v", topic, err)
		}
	}
}

func (l *Load) topics() []string {
	return slices.Concat(l.inputs, l.outputs, []string{l.ordered, l.fenced})
}

// readTopics reads every topic from earliest, with the raw client and with the official one; both must see the same.
func (l *Load) readTopics(ctx context.Context, router *wiretopic.Router) {
	l.t.Helper()
	official, err := NewOfficialClient(l.entry())
	if err != nil {
		l.t.Fatal(err)
	}
	defer official.Close()
	for _, topic := range l.topics() {
		client, err := router.Topic(ctx, topic)
		if err != nil {
			l.t.Fatal(err)
		}
		consumer, err := client.Reader(ctx, topic, "last")
		if err != nil {
			l.t.Fatalf("read %s: %v", topic, err)
		}
		keys := l.readTo(ctx, topic, consumer, "end")
		l.history.Read(topic, keys)
		if seen := l.readOfficially(ctx, official, topic); !slices.Equal(seen, keys) {
			l.t.Errorf("%s: the official client reads %d messages, the raw one %d", topic, len(seen), len(keys))
		}
		if err := l.orderOf(topic, keys); err != nil {
			l.t.Errorf("%s: %v", topic, err)
		}
	}
}

// orderOf checks the order of messages in topics that have one.
func (l *Load) orderOf(topic string, keys []string) error {
	switch topic {
	case l.ordered:
		return inOrder(keys)
	case l.fenced:
		return epochsGrow(keys)
	}
	return nil
}

// readTo receives what comes before the message mark, and acknowledges most of it.
func (l *Load) readTo(ctx context.Context, from string, consumer *wiretopic.Consumer, mark string) []string {
	l.t.Helper()
	var keys []string
	var ids []*pulsarproto.MessageIdData
	for {
		message, err := consumer.Receive(ctx)
		if err == nil && len(ids) == ackedAtOnce {
			ack := &pulsarproto.CommandAck{AckType: pulsarproto.CommandAck_Individual.Enum(), MessageId: ids}
			err, ids = consumer.AckAs(ctx, ack, nil), nil
		}
		if err != nil {
			l.logStats()
			l.t.Fatalf("%s, after %d messages: %v", from, len(keys), err)
		}
		if message.Content == mark {
			return keys
		}
		keys = append(keys, message.Content)
		ids = append(ids, message.ID)
	}
}

// logStats shows who holds what on the inputs.
func (l *Load) logStats() {
	for _, topic := range l.inputs {
		url := l.webURL() + "/admin/v2/" + strings.Replace(topic, "://", "/", 1) + "/stats"
		answer, err := http.Get(url)
		if err != nil {
			l.t.Logf("%s: %v", url, err)
			continue
		}
		text, err := io.ReadAll(answer.Body)
		l.t.Logf("%s: %s %v", topic, text, errors.Join(err, answer.Body.Close()))
	}
}

func (l *Load) readOfficially(ctx context.Context, client pulsar.Client, topic string) []string {
	l.t.Helper()
	reader, err := client.CreateReader(pulsar.ReaderOptions{Topic: topic, StartMessageID: pulsar.EarliestMessageID()})
	if err != nil {
		l.t.Fatal(err)
	}
	defer reader.Close()
	var keys []string
	for {
		message, err := reader.Next(ctx)
		if err != nil {
			l.t.Fatalf("official reader of %s, after %d messages: %v", topic, len(keys), err)
		}
		key := string(message.Payload())
		if key == "end" {
			return keys
		}
		keys = append(keys, key)
	}
}

// readSubscriptions receives what the subscriptions still hold. What was given back comes before what is sent now, so the
// second mark is the last.
func (l *Load) readSubscriptions(ctx context.Context, router *wiretopic.Router) {
	l.t.Helper()
	type left struct {
		topic, subscription string
		consumer            *wiretopic.Consumer
		keys                []string
	}
	var all []*left
	for _, s := range l.subscriptions() {
		consumer, err := router.Subscribe(ctx, s.topic, s.name)
		if err != nil {
			l.t.Fatal(err)
		}
		all = append(all, &left{s.topic, s.name, consumer, l.readTo(ctx, s.topic+" "+s.name, consumer, "end")})
	}
	l.markEnds(ctx, router, "very end")
	for _, rest := range all {
		keys := append(rest.keys, l.readTo(ctx, rest.topic+" "+rest.subscription, rest.consumer, "very end")...)
		l.history.Left(rest.topic, rest.subscription, keys)
	}
}
