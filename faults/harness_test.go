package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/pulsar-tc/pulsar-tc/admin"
	"github.com/pulsar-tc/pulsar-tc/internal/etcdprocess"
	"github.com/pulsar-tc/pulsar-tc/internal/process"
	"github.com/pulsar-tc/pulsar-tc/internal/wireclient"
	"github.com/pulsar-tc/pulsar-tc/internal/wiretopic"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

var binaries process.Binaries

func TestMain(m *testing.M) { os.Exit(binaries.Main(m)) }

const (
	// testTime bounds a test.
	testTime = 3 * time.Minute
	// waitTime bounds the wait for one condition.
	waitTime = 30 * time.Second
	// longTTL is the time to live of a transaction that no deadline ends.
	longTTL = 10 * time.Minute
)

// Codes beside those of ServerError.
const (
	success  = pulsarproto.ServerError(-1)
	noAnswer = pulsarproto.ServerError(-2) // not from the server: a closed connection, a time limit
)

// fixture is a server of its own with what a test does to it.
type fixture struct {
	*testing.T
	*process.Instance
	ctx   context.Context
	marks int
	token string // of whoever asks, for a server that authenticates; empty: nobody has one
}

// newFixture starts an ordinary server.
func newFixture(t *testing.T, set ...string) *fixture {
	t.Helper()
	f := newStopped(t, binaries.Ordinary(t), set...)
	f.Start()
	return f
}

// newStopped is newFixture without a start.
func newStopped(t *testing.T, binary string, set ...string) *fixture {
	t.Helper()
	if os.Getenv(storeVariable) == "etcd" && !slices.ContainsFunc(set, onItsOwn) {
		set = append(onEtcd(etcdprocess.New(t, etcdprocess.Options{}).Endpoints()...), set...)
	}
	ctx, cancel := context.WithTimeout(t.Context(), testTime)
	t.Cleanup(cancel)
	return &fixture{T: t, Instance: process.NewInstance(t, binary, set...), ctx: ctx}
}

func (f *fixture) addr() string { return fmt.Sprintf("localhost:%d", f.Options.Port) }

// dial opens a connection that is registered with the coordinator.
func (f *fixture) dial() *wiretopic.Client {
	f.Helper()
	client, err := f.tryDial(&pulsarproto.CommandConnect{}, nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = client.Close() }) // its fate does not matter any more
	return client
}

// tryDial is dial with a handshake that says more; other hears what else the server sends.
func (f *fixture) tryDial(connect *pulsarproto.CommandConnect, other func(*pulsarproto.BaseCommand)) (*wiretopic.Client, error) {
	connect.ClientVersion = proto.String("faults")
	if connect.ProtocolVersion == nil {
		connect.ProtocolVersion = proto.Int32(21)
	}
	if connect.AuthData == nil && f.token != "" {
		connect.AuthMethodName, connect.AuthData = proto.String("token"), []byte(f.token)
	}
	client, err := wiretopic.DialAs(f.ctx, f.addr(), connect, other)
	if err != nil {
		return nil, err
	}
	if err := client.ConnectTC(f.ctx, 0); err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return client, nil
}

func (f *fixture) produce(client *wiretopic.Client, topic string) *wiretopic.Producer {
	f.Helper()
	producer, err := client.Produce(f.ctx, topic)
	if err != nil {
		f.Fatalf("produce to %s: %v", topic, err)
	}
	return producer
}

func (f *fixture) subscribe(client *wiretopic.Client, topic, subscription string) *wiretopic.Consumer {
	f.Helper()
	consumer, err := client.Subscribe(f.ctx, topic, subscription)
	if err != nil {
		f.Fatalf("subscribe %s to %s: %v", subscription, topic, err)
	}
	return consumer
}

func (f *fixture) begin(client *wiretopic.Client, ttl time.Duration, name string) txn.ID {
	f.Helper()
	id, err := client.Begin(f.ctx, 0, uint64(ttl.Milliseconds()), name)
	if err != nil {
		f.Fatalf("NEW_TXN: %v", err)
	}
	return id
}

// want requires that an operation was answered with code.
func (f *fixture) want(what string, err error, code pulsarproto.ServerError) {
	f.Helper()
	if got := codeOf(err); got != code {
		f.Fatalf("%s: answered %s (%v), want %s", what, codeText(got), err, codeText(code))
	}
}

func codeOf(err error) pulsarproto.ServerError {
	var refusal *wireclient.ServerError
	switch {
	case err == nil:
		return success
	case errors.As(err, &refusal):
		return refusal.Code
	}
	return noAnswer
}

func codeText(code pulsarproto.ServerError) string {
	switch code {
	case success:
		return "success"
	case noAnswer:
		return "nothing"
	}
	return code.String()
}

func (f *fixture) end(client *wiretopic.Client, id txn.ID, action txn.Action, code pulsarproto.ServerError) {
	f.Helper()
	f.want(fmt.Sprintf("END_TXN(%s) of %s", action, id), client.End(f.ctx, id, action, ""), code)
}

func (f *fixture) send(producer *wiretopic.Producer, content string, id *txn.ID) {
	f.Helper()
	_, err := producer.Send(f.ctx, content, id)
	f.want("SEND "+content, err, success)
}

func (f *fixture) receive(consumer *wiretopic.Consumer, content string) wiretopic.Message {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.ctx, waitTime)
	defer cancel()
	message, err := consumer.Receive(ctx)
	if err != nil {
		f.Fatalf("instead of %s: %v", content, err)
	}
	if message.Content != content {
		f.Fatalf("received %s, want %s", message.Content, content)
	}
	return message
}

// holds requires that a topic without open transactions holds exactly contents, marks of earlier calls left out.
func (f *fixture) holds(topic string, contents ...string) {
	f.Helper()
	if got := f.contents(topic); !slices.Equal(got, contents) {
		f.Fatalf("%s holds %q, want %q", topic, got, contents)
	}
}

// contents reads a topic from earliest up to a mark that it sends.
func (f *fixture) contents(topic string) []string {
	f.Helper()
	client := f.dial()
	f.marks++
	mark := fmt.Sprintf("mark %d", f.marks)
	f.send(f.produce(client, topic), mark, nil)
	reader, err := client.Reader(f.ctx, topic, "contents")
	if err != nil {
		f.Fatal(err)
	}
	var contents []string
	for {
		ctx, cancel := context.WithTimeout(f.ctx, waitTime)
		message, err := reader.Receive(ctx)
		cancel()
		if err != nil {
			f.Fatalf("%s after %q: %v", topic, contents, err)
		}
		if message.Content == mark {
			f.want("CLOSE_CONSUMER", reader.Close(f.ctx), success)
			return contents
		}
		if len(message.Content) < 5 || message.Content[:5] != "mark " {
			contents = append(contents, message.Content)
		}
	}
}

// lastMessageID asks for the id of the last message of a topic that can be read.
func (f *fixture) lastMessageID(consumer *wiretopic.Consumer) string {
	f.Helper()
	id, err := consumer.LastMessageID(f.ctx)
	if err != nil {
		f.Fatal(err)
	}
	return fmt.Sprintf("%d:%d", id.GetLedgerId(), int64(id.GetEntryId()))
}

// await waits until a condition holds.
func (f *fixture) await(what string, holds func() bool) {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.ctx, waitTime)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			f.Fatalf("in vain: waiting until %s", what)
		}
	}
}

// describe asks how a transaction is.
func (f *fixture) describe(id txn.ID) admin.Transaction {
	f.Helper()
	var described admin.Transaction
	f.get(fmt.Sprintf("/pulsar-tc/v1/transactions/%d/%d", id.Most, id.Least), &described)
	return described
}

// live lists the transactions that have not ended.
func (f *fixture) live() []admin.Transaction {
	f.Helper()
	var live []admin.Transaction
	f.get("/pulsar-tc/v1/transactions", &live)
	return live
}

func (f *fixture) get(path string, into any) {
	f.Helper()
	asked, err := http.NewRequestWithContext(f.ctx, http.MethodGet, f.Server.WebURL+path, nil)
	if err != nil {
		f.Fatal(err)
	}
	f.authorize(asked)
	response, err := http.DefaultClient.Do(asked)
	if err != nil {
		f.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		f.Fatalf("%s: %s", path, response.Status)
	}
	if err := json.NewDecoder(response.Body).Decode(into); err != nil {
		f.Fatalf("%s: %v", path, err)
	}
}

func (f *fixture) authorize(request *http.Request) {
	if f.token != "" {
		request.Header.Set("Authorization", "Bearer "+f.token)
	}
}

// topic is a name in the namespace that every server has.
func topic(name string) string { return "persistent://public/default/" + name }
