package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"

	"github.com/pulsar-tc/pulsar-tc/internal/loopback"
	"github.com/pulsar-tc/pulsar-tc/internal/wireclient"
	"github.com/pulsar-tc/pulsar-tc/internal/wiretopic"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/terminatedtopic"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

const terminatedTopic = "persistent://pulsar/system/__terminated_txn_state_0"

// ends is transactions of named clients that have ended.
type ends struct {
	t   *testing.T
	url string
}

// end opens and ends a transaction under a client name.
func (e ends) end(name string, action txn.Action) txn.ID {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), 20*time.Second)
	defer cancel()
	conn, err := wireclient.DialTC(ctx, e.url, 0)
	if err != nil {
		e.t.Fatal(err)
	}
	defer conn.Close()
	id, err := conn.Begin(ctx, 0, 60000, name)
	if err != nil {
		e.t.Fatal(err)
	}
	if err := conn.End(ctx, id, action, name); err != nil {
		e.t.Fatal(err)
	}
	return id
}

// shown is one message as text: name, then the outcomes, newest first; no outcomes: a tombstone.
func shown(t *testing.T, m pulsar.Message) string {
	t.Helper()
	text := m.Key() + ":"
	if len(m.Payload()) == 0 {
		return text
	}
	var v terminatedtopic.Value
	if err := json.Unmarshal(m.Payload(), &v); err != nil {
		t.Fatal(err)
	}
	if v.Version != terminatedtopic.ValueVersion || v.ClientName != m.Key() {
		t.Errorf("value %+v of %s", v, m.Key())
	}
	for _, o := range v.Outcomes {
		text += fmt.Sprintf(" %s %s", o.Txn, o.Outcome)
	}
	return text
}

func next(t *testing.T, r pulsar.Reader) (pulsar.Message, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	m, err := r.Next(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return m, shown(t, m)
}

// TestTerminatedTopicWithOfficialReader holds P-18, P-19 and P-22: one message per name, from earliest to a position that is
// known at the start, then the tail, over a restart.
func TestTerminatedTopicWithOfficialReader(t *testing.T) {
	options := load(t, fmt.Sprintf("brokerServicePort=%d", loopback.Port(t)), "advertisedAddress=127.0.0.1")
	s := start(t, options)
	e := ends{t, s.ServiceURL()}
	a1, b1, a2 := e.end("a", txn.Commit), e.end("b", txn.Abort), e.end("a", txn.Abort)

	client := officialClient(t, s)
	reader, err := client.CreateReader(pulsar.ReaderOptions{
		Topic: terminatedTopic, StartMessageID: pulsar.EarliestMessageID(), ReadCompacted: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	var last pulsar.MessageID
	for _, want := range []string{
		fmt.Sprintf("b: %s ABORTED", b1),
		fmt.Sprintf("a: %s ABORTED %s COMMITTED", a2, a1),
	} {
		if !reader.HasNext() {
			t.Fatalf("nothing is left, want %s", want)
		}
		m, got := next(t, reader)
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if last != nil && m.ID().EntryID() <= last.EntryID() {
			t.Errorf("id %v after %v", m.ID(), last)
		}
		last = m.ID()
	}
	if reader.HasNext() {
		t.Error("there is more to read after the last name")
	}
	b2 := e.end("b", txn.Commit)
	m, got := next(t, reader)
	if want := fmt.Sprintf("b: %s COMMITTED %s ABORTED", b2, b1); got != want || m.ID().EntryID() <= last.EntryID() {
		t.Errorf("the tail: %v %s, want %s behind %v", m.ID(), got, want, last)
	}
	last = m.ID()

	stop(t, s)
	start(t, options)
	c1 := e.end("c", txn.Commit)
	m, got = next(t, reader)
	if want := fmt.Sprintf("c: %s COMMITTED", c1); got != want || m.ID().EntryID() <= last.EntryID() {
		t.Errorf("after a restart: %v %s, want %s behind %v", m.ID(), got, want, last)
	}
}

// TestTerminatedTopicWithOfficialConsumer: a consumer with readCompacted goes on where it acknowledged.
func TestTerminatedTopicWithOfficialConsumer(t *testing.T) {
	s := start(t, load(t, "advertisedAddress=127.0.0.1"))
	e := ends{t, s.ServiceURL()}
	client := officialClient(t, s)
	subscribe := func() pulsar.Consumer {
		consumer, err := client.Subscribe(pulsar.ConsumerOptions{
			Topic: terminatedTopic, SubscriptionName: "s", Type: pulsar.Exclusive, ReadCompacted: true,
			SubscriptionInitialPosition: pulsar.SubscriptionPositionEarliest,
		})
		if err != nil {
			t.Fatal(err)
		}
		return consumer
	}
	receive := func(c pulsar.Consumer, want string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		m, err := c.Receive(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if got := shown(t, m); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if err := c.Ack(m); err != nil {
			t.Fatal(err)
		}
	}
	a1 := e.end("a", txn.Commit)
	consumer := subscribe()
	receive(consumer, fmt.Sprintf("a: %s COMMITTED", a1))
	b1 := e.end("b", txn.Commit)
	receive(consumer, fmt.Sprintf("b: %s COMMITTED", b1))
	consumer.Close()
	a2 := e.end("a", txn.Abort)
	consumer = subscribe()
	defer consumer.Close()
	receive(consumer, fmt.Sprintf("a: %s ABORTED %s COMMITTED", a2, a1))
}

// TestTerminatedTopicFollowsForgetting holds P-25: what retention takes away is taken from the topic, with a tombstone for a
// name of which nothing is left.
func TestTerminatedTopicFollowsForgetting(t *testing.T) {
	s := start(t, load(t, "advertisedAddress=127.0.0.1", "transactionMetaPersistMaxPerCoordinator=2", "transactionMetaPersistCount=1",
		"transactionMetaPersistMinTimeInSecond=0"))
	e := ends{t, s.ServiceURL()}
	client := officialClient(t, s)
	reader, err := client.CreateReader(pulsar.ReaderOptions{
		Topic: terminatedTopic, StartMessageID: pulsar.LatestMessageID(), ReadCompacted: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b", "c"} {
		e.end(name, txn.Commit)
	}
	seen := map[string]string{}
	for seen["c"] == "" || seen["a"] != "a:" && seen["b"] != "b:" {
		m, got := next(t, reader)
		seen[m.Key()] = got
	}
}

// TestTerminatedTopicIsProtected holds P-19 and P-20: nobody writes it but the coordinator, in its term.
func TestTerminatedTopicIsProtected(t *testing.T) {
	s := start(t, load(t, "advertisedAddress=127.0.0.1"))
	addr, err := wireclient.Address(s.ServiceURL())
	if err != nil {
		t.Fatal(err)
	}
	client, err := wiretopic.Dial(t.Context(), addr)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	code := func(err error) pulsarproto.ServerError {
		var refusal *wireclient.ServerError
		if !errors.As(err, &refusal) || refusal.Text == "" {
			t.Fatalf("%v, want a refusal with a text", err)
		}
		return refusal.Code
	}
	_, err = client.Produce(t.Context(), terminatedTopic)
	if got := code(err); got != pulsarproto.ServerError_NotAllowedError {
		t.Errorf("a producer gets %v", got)
	}
	_, err = client.Subscribe(t.Context(), terminatedTopic, "shared")
	if got := code(err); got != pulsarproto.ServerError_NotAllowedError {
		t.Errorf("a Shared consumer gets %v", got)
	}
	_, err = client.Reader(t.Context(), strings.TrimSuffix(terminatedTopic, "0")+"1", "r")
	if got := code(err); got != pulsarproto.ServerError_TopicNotFound {
		t.Errorf("a reader of a coordinator that does not exist gets %v", got)
	}
	answer, err := client.Call(t.Context(), &pulsarproto.BaseCommand{
		Type: pulsarproto.BaseCommand_PARTITIONED_METADATA.Enum(),
		PartitionMetadata: &pulsarproto.CommandPartitionedTopicMetadata{
			Topic: new(terminatedTopic),
		},
	})
	if err != nil || answer.GetPartitionMetadataResponse().GetPartitions() != 0 {
		t.Errorf("partitions: %v, %v", answer, err)
	}
}

// TestOutcomesExample builds and runs the program that the README shows.
func TestOutcomesExample(t *testing.T) {
	s := start(t, load(t, "advertisedAddress=127.0.0.1"))
	e := ends{t, s.ServiceURL()}
	a, b := e.end("orders", txn.Commit), e.end("billing", txn.Abort)
	binary := filepath.Join(t.TempDir(), "outcomes")
	if out, err := exec.Command("go", "build", "-o", binary, "../examples/outcomes").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, binary, "-url", s.ServiceURL()).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var rows []string
	for line := range strings.Lines(string(out)) {
		if fields := strings.Fields(line); len(fields) > 2 {
			rows = append(rows, strings.Join(fields[:3], " "))
		}
	}
	want := fmt.Sprintf("CLIENT NAME TRANSACTION|billing %s ABORTED|orders %s COMMITTED", b, a)
	if got := strings.Join(rows, "|"); got != want {
		t.Errorf("printed %s, want %s", got, want)
	}
}
