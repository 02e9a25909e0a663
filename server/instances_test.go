package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/log"

	"github.com/pulsar-tc/pulsar-tc/internal/etcdtest"
	"github.com/pulsar-tc/pulsar-tc/topicname"
)

// official is officialClient with transactions.
func official(t *testing.T, s *Server) pulsar.Client {
	t.Helper()
	client, err := pulsar.NewClient(pulsar.ClientOptions{
		URL: s.ServiceURL(), EnableTransaction: true, Logger: log.NewLoggerWithSlog(slog.New(slog.DiscardHandler)),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func ownerIn(t *testing.T, s *Server, name string) string {
	t.Helper()
	owner, err := s.topics.Owner(t.Context(), parsed(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return owner
}

func parsed(t *testing.T, text string) topicname.Name {
	t.Helper()
	name, err := topicname.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// names are n topics of a test.
func names(t *testing.T, n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("persistent://public/default/%s-%d", strings.ToLower(t.Name()), i))
	}
	return all
}

// namesAt are n topics of a test, each of them at home with the next of the servers, once these know each other: where a name falls
// differs from run to run.
func namesAt(t *testing.T, n int, servers ...*Server) (all []string) {
	t.Helper()
	for _, s := range servers {
		until(t, "they know each other", func() bool { return len(s.cluster.Instances()) == len(servers) })
	}
	for i := 0; len(all) < n; i++ {
		name := fmt.Sprintf("persistent://public/default/%s-%d", strings.ToLower(t.Name()), i)
		if at := servers[len(all)%len(servers)]; servers[0].cluster.PlaceTopic(name).ID == at.cluster.Self().ID {
			all = append(all, name)
		}
	}
	return all
}

// orders is one application: it reads from the first topic and writes to all others, in transactions.
type orders struct {
	t         *testing.T
	client    pulsar.Client
	consumer  pulsar.Consumer // of the first
	producers []pulsar.Producer
}

func newOrders(t *testing.T, client pulsar.Client, topics []string) *orders {
	t.Helper()
	o := &orders{t: t, client: client}
	for _, topic := range topics {
		producer, err := client.CreateProducer(pulsar.ProducerOptions{Topic: topic, DisableBatching: true})
		if err != nil {
			t.Fatal(err)
		}
		o.producers = append(o.producers, producer)
	}
	consumer, err := client.Subscribe(pulsar.ConsumerOptions{Topic: topics[0], SubscriptionName: "orders", Type: pulsar.Shared})
	if err != nil {
		t.Fatal(err)
	}
	o.consumer = consumer
	return o
}

// transact moves one message on to all topics but the first, and ends that as it is told. It tries again what fails, as an application
// has to, and returns when the end is known.
func (o *orders) transact(ctx context.Context, text string, commit bool) {
	o.t.Helper()
	for {
		err := o.tryTransact(ctx, text, commit)
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			o.t.Fatalf("%s: %v", text, err)
		}
		o.t.Logf("%s again: %v", text, err)
	}
}

func (o *orders) tryTransact(ctx context.Context, text string, commit bool) error {
	txn, err := o.client.NewTransaction(5 * time.Second) // the client cannot abort after an error, and leaves that to the timeout
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	if err := o.work(ctx, txn, text); err != nil {
		return errors.Join(err, txn.Abort(ctx))
	}
	if !commit {
		return txn.Abort(ctx)
	}
	return txn.Commit(ctx)
}

// work is what a transaction does.
func (o *orders) work(ctx context.Context, txn pulsar.Transaction, text string) error {
	message, err := o.consumer.Receive(ctx)
	if err != nil {
		return fmt.Errorf("receive: %w", err)
	}
	for _, producer := range o.producers[1:] {
		if _, err := producer.Send(ctx, &pulsar.ProducerMessage{Payload: []byte(text), Transaction: txn}); err != nil {
			return fmt.Errorf("send to %s: %w", producer.Topic(), err)
		}
	}
	if err := o.consumer.AckWithTxn(message, txn); err != nil {
		return fmt.Errorf("ack: %w", err)
	}
	return nil
}

// received reads a topic from its beginning until n messages have come.
func received(ctx context.Context, t *testing.T, client pulsar.Client, topic string, n int) (texts []string) {
	t.Helper()
	reader, err := client.CreateReader(pulsar.ReaderOptions{Topic: topic, StartMessageID: pulsar.EarliestMessageID()})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	for range n {
		message, err := reader.Next(ctx)
		if err != nil {
			t.Fatalf("%s: %d of %d messages, %v", topic, len(texts), n, err)
		}
		texts = append(texts, string(message.Payload()))
	}
	return texts
}

// Three instances share the topics: any of them answers lookups, transactions write to topics of all, through coordinators of all, and
// what was aborted is nowhere.
func TestTopicsAreShared(t *testing.T) {
	const transactions = 12
	etcd := etcdtest.Serve(t, "http", nil)
	set := shared(etcd, 3)
	servers := []*Server{start(t, load(t, set...)), start(t, load(t, set...)), start(t, load(t, set...))}
	evenly(t, 3, servers...)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	topics := namesAt(t, 7, servers...)
	o := newOrders(t, official(t, servers[0]), topics)
	for i, topic := range topics {
		if got, want := ownerIn(t, servers[1], topic), servers[i%3].cluster.Self().ID; got != want {
			t.Fatalf("%s is %q's, want it %q's", topic, got, want)
		}
	}
	var want []string
	for i := range transactions {
		if _, err := o.producers[0].Send(ctx, &pulsar.ProducerMessage{Payload: fmt.Append(nil, "order ", i)}); err != nil {
			t.Fatal(err)
		}
		commit := i%3 != 2
		text := fmt.Sprintf("%d %t", i, commit)
		o.transact(ctx, text, commit)
		if commit {
			want = append(want, text)
		}
	}
	reading := official(t, servers[2])
	for _, topic := range topics[1:] {
		if got := received(ctx, t, reading, topic, len(want)); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", topic, got, want)
		}
	}
}

// What concerns a topic that another instance serves is answered 307 with its address; what concerns several topics is done for all of
// them, wherever they are.
func TestAdministratorsOfSharedTopics(t *testing.T) {
	etcd := etcdtest.Serve(t, "http", nil)
	set := shared(etcd, 1)
	first, second := start(t, load(t, set...)), start(t, load(t, set...))
	until(t, "they know each other", func() bool { return len(first.cluster.Instances()) == 2 && len(second.cluster.Instances()) == 2 })
	partition := func(local string, p int) string {
		return fmt.Sprintf("persistent://public/default/%s-partition-%d", local, p)
	}
	local, there := "", -1
	for i := 0; there < 0; i++ { // until the second has a partition
		local = fmt.Sprint("spread-", i)
		for p := range 8 {
			if first.cluster.PlaceTopic(partition(local, p)).ID == second.cluster.Self().ID {
				there = p
			}
		}
	}
	topic := "/admin/v2/persistent/public/default/" + local
	ok := func(s *Server, method, path, body string) string {
		t.Helper()
		status, text, _ := exchange(t, s, method, path, body)
		if status/100 != 2 {
			t.Fatalf("%s %s: %d %s", method, path, status, text)
		}
		return text
	}
	ok(first, "PUT", topic+"/partitions", "8")
	client := official(t, second)
	producer, err := client.CreateProducer(pulsar.ProducerOptions{Topic: local})
	if err != nil {
		t.Fatal(err)
	}
	if got := ownerIn(t, first, partition(local, there)); got != second.cluster.Self().ID {
		t.Fatalf("partition %d is %q's", there, got)
	}
	path := fmt.Sprint(topic, "-partition-", there)
	for _, call := range []string{"GET /stats?subscriptionBacklogSize=true", "PUT /unload", "POST /terminate", "GET /internalStats"} {
		method, below, _ := strings.Cut(call, " ")
		status, text, header := exchange(t, first, method, path+below, "")
		if status != http.StatusTemporaryRedirect || header.Get("Location") != second.WebURL()+path+below {
			t.Errorf("%s: %d %s %v", call, status, text, header)
		}
	}
	ok(first, "PUT", topic+"/subscription/s", "")
	if got := ok(first, "GET", topic+"/subscriptions", ""); got != `["s"]` {
		t.Errorf("subscriptions %s", got)
	}
	ok(second, "POST", topic+"/subscription/s/resetcursor", `{"ledgerId":-1,"entryId":-1}`)
	if got := ok(first, "GET", topic+"/partitioned-stats", ""); strings.Count(got, `"producerName"`) < 8 {
		t.Errorf("stats of all partitions: %s", got)
	}
	ok(first, "POST", topic+"/all_subscription/expireMessages/1", "")
	ok(first, "PUT", topic+"/compaction", "")
	ok(second, "POST", topic+"/partitions", "9")
	if status, text, _ := exchange(t, first, "DELETE", topic+"/partitions", ""); status != http.StatusPreconditionFailed {
		t.Errorf("deleted while a producer is connected: %d %s", status, text)
	}
	producer.Close()
	until(t, "nobody is connected", func() bool {
		status, _, _ := exchange(t, first, "DELETE", topic+"/partitions", "")
		return status == http.StatusNoContent
	})
	if status, text, _ := exchange(t, second, "GET", topic+"/partitions", ""); status != http.StatusNotFound {
		t.Errorf("deleted: %d %s", status, text)
	}
	if got := ok(first, "GET", "/admin/v2/brokers", ""); strings.Count(got, ":") != 2 {
		t.Errorf("brokers %s", got)
	}
	var owners []string
	for _, name := range namesAt(t, 2, first, second) {
		owners = append(owners, ok(first, "GET", "/lookup/v2/topic/"+strings.Replace(name, "://", "/", 1), ""))
	}
	slices.Sort(owners)
	if len(slices.Compact(owners)) != 2 {
		t.Errorf("lookups over HTTP find %v", owners)
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}
