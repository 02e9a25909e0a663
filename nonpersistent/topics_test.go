package nonpersistent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// client is both ends of a connection.
type client struct {
	mu           sync.Mutex
	id           uint64
	dead, full   bool
	receipts     []uint64
	refused      []error
	messages     []string
	active       []bool
	disconnected int
}

func (c *client) Receipt(sequence, _, _, _ uint64) {
	c.note(func() { c.receipts = append(c.receipts, sequence) })
}
func (c *client) SendError(_ uint64, err error) {
	c.note(func() { c.refused = append(c.refused, err) })
}
func (c *client) Disconnect()                { c.note(func() { c.disconnected++ }) }
func (c *client) Queued(cnx.ProducerInfo)    {}
func (c *client) Peer() cnx.Peer             { return cnx.Peer{} }
func (c *client) ReachedEndOfTopic()         {}
func (c *client) Alive(context.Context) bool { return !c.dead }
func (c *client) CnxID() uint64              { return c.id }
func (c *client) Full() bool                 { return c.full }
func (c *client) ActiveConsumerChange(active bool) {
	c.note(func() { c.active = append(c.active, active) })
}
func (c *client) Message(d cnx.Delivery) {
	c.note(func() { c.messages = append(c.messages, string(d.Payload)) })
}

func (c *client) note(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

var orders = topicname.Name{Domain: topicname.NonPersistent, Tenant: "public", Namespace: "default", Local: "orders"}

func send(p cnx.Producer, sequence uint64, key, payload string) {
	p.Send(cnx.Send{
		SequenceID: sequence, HighestSequenceID: sequence, NumMessages: 1, Payload: []byte(payload),
		Metadata: &pulsarproto.MessageMetadata{PartitionKey: &key},
	})
}

func produce(t *testing.T, ts *Topics, c *client) cnx.Producer {
	t.Helper()
	p, info, err := ts.Produce(t.Context(), orders, &pulsarproto.CommandProducer{}, c)
	if err != nil || info.Name == "" || !info.Ready || info.LastSequenceID != -1 {
		t.Fatalf("%+v, %v", info, err)
	}
	return p
}

func subscribe(t *testing.T, ts *Topics, c *client, kind pulsarproto.CommandSubscribe_SubType, name string) cnx.Consumer {
	t.Helper()
	subscription := "s"
	consumer, err := ts.Subscribe(t.Context(), orders, &pulsarproto.CommandSubscribe{
		Subscription: &subscription, SubType: &kind, ConsumerName: &name,
	}, c)
	if err != nil {
		t.Fatal(err)
	}
	return consumer
}

// A message goes to whoever is there and has permits; every send gets its receipt.
func TestDeliversToThoseThatAreThere(t *testing.T) {
	ts := New(Options{})
	from, to := &client{id: 1}, &client{id: 2}
	p := produce(t, ts, from)
	send(p, 0, "k", "nobody is there")
	c := subscribe(t, ts, to, pulsarproto.CommandSubscribe_Exclusive, "c")
	send(p, 1, "k", "no permits")
	c.Flow(2)
	send(p, 2, "k", "first")
	to.full = true
	send(p, 3, "k", "the connection is full")
	to.full = false
	send(p, 4, "k", "second")
	send(p, 5, "k", "no permits are left")
	if got := fmt.Sprint(to.messages); got != "[first second]" {
		t.Errorf("delivered %s", got)
	}
	if got := fmt.Sprint(from.receipts); got != "[0 1 2 3 4 5]" {
		t.Errorf("receipts %s", got)
	}
	c.Close()
	p.Close()
	if left := ts.List("public/default"); len(left) != 0 {
		t.Errorf("%v exist although nobody uses them", left)
	}
}

// A transactional send is refused and the producer goes on; a transactional acknowledgement is a conflict with a text.
func TestNoTransactions(t *testing.T) {
	ts := New(Options{})
	from, to := &client{id: 1}, &client{id: 2}
	p := produce(t, ts, from)
	c := subscribe(t, ts, to, pulsarproto.CommandSubscribe_Shared, "c")
	c.Flow(10)
	p.Send(cnx.Send{SequenceID: 7, InTxn: true, Payload: []byte("in a transaction")})
	send(p, 8, "k", "plain")
	if len(from.refused) != 1 || !errors.Is(from.refused[0], txn.ErrNotAllowed) {
		t.Errorf("refused: %v", from.refused)
	}
	if got := fmt.Sprint(to.messages); got != "[plain]" || from.disconnected != 0 {
		t.Errorf("delivered %s, disconnected %d times", got, from.disconnected)
	}
	var ended []error
	done := func(err error) { ended = append(ended, err) }
	c.Ack(&pulsarproto.CommandAck{TxnidMostBits: new(uint64(0)), TxnidLeastBits: new(uint64(0))}, done)
	c.Ack(&pulsarproto.CommandAck{}, done)
	var refusal *cnx.Refusal
	if !errors.As(ended[0], &refusal) || refusal.Code != pulsarproto.ServerError_TransactionConflict || refusal.Text == "" || ended[1] != nil {
		t.Errorf("acknowledgements answered %v", ended)
	}
}

func TestSubscriptionTypes(t *testing.T) {
	ts := New(Options{})
	one, two := &client{id: 1}, &client{id: 2}
	first := subscribe(t, ts, one, pulsarproto.CommandSubscribe_Failover, "a")
	second := subscribe(t, ts, two, pulsarproto.CommandSubscribe_Failover, "b")
	if fmt.Sprint(one.active, two.active) != "[true] [false]" {
		t.Errorf("active: %v %v", one.active, two.active)
	}
	first.Close()
	if fmt.Sprint(two.active) != "[false true]" {
		t.Errorf("active after the first has gone: %v", two.active)
	}
	kind, name := pulsarproto.CommandSubscribe_Shared, "s"
	if _, err := ts.Subscribe(t.Context(), orders, &pulsarproto.CommandSubscribe{Subscription: &name, SubType: &kind}, one); !errors.Is(err, errOtherType) {
		t.Errorf("another type: %v", err)
	}
	second.Close()

	exclusive := subscribe(t, ts, one, pulsarproto.CommandSubscribe_Exclusive, "a")
	kind = pulsarproto.CommandSubscribe_Exclusive
	command := &pulsarproto.CommandSubscribe{Subscription: &name, SubType: &kind}
	if _, err := ts.Subscribe(t.Context(), orders, command, two); !errors.Is(err, errConsumerBusy) {
		t.Errorf("a second exclusive consumer: %v", err)
	}
	one.dead = true
	if _, err := ts.Subscribe(t.Context(), orders, command, two); err != nil {
		t.Errorf("the first one's connection is dead: %v", err)
	}
	exclusive.Close()
}

// Key_Shared: a key stays with one consumer, and several keys reach both.
func TestKeyShared(t *testing.T) {
	ts := New(Options{})
	p := produce(t, ts, &client{id: 1})
	ends := []*client{{id: 2}, {id: 3}}
	for i, end := range ends {
		subscribe(t, ts, end, pulsarproto.CommandSubscribe_Key_Shared, fmt.Sprint("c", i)).Flow(1000)
	}
	for i := range uint64(100) {
		key := fmt.Sprint("key-", i%10)
		send(p, i, key, key)
	}
	owner := map[string]int{}
	for i, end := range ends {
		if len(end.messages) == 0 {
			t.Errorf("consumer %d got nothing", i)
		}
		for _, key := range end.messages {
			if other, seen := owner[key]; seen && other != i {
				t.Fatalf("%s went to both", key)
			}
			owner[key] = i
		}
	}
	if len(ends[0].messages)+len(ends[1].messages) != 100 {
		t.Errorf("%d and %d of 100", len(ends[0].messages), len(ends[1].messages))
	}
}

func TestProducersInTheWay(t *testing.T) {
	ts := New(Options{Limits: func(topicname.Name) Limits { return Limits{Producers: 2} }})
	name, exclusive := "p", pulsarproto.ProducerAccessMode_Exclusive
	first := &client{id: 1}
	if _, _, err := ts.Produce(t.Context(), orders, &pulsarproto.CommandProducer{ProducerName: &name}, first); err != nil {
		t.Fatal(err)
	}
	if _, _, err := ts.Produce(t.Context(), orders, &pulsarproto.CommandProducer{ProducerName: &name}, &client{id: 2}); !errors.Is(err, errProducerBusy) {
		t.Errorf("the same name: %v", err)
	}
	if _, _, err := ts.Produce(t.Context(), orders, &pulsarproto.CommandProducer{ProducerAccessMode: &exclusive}, &client{id: 2}); !errors.Is(err, errFenced) {
		t.Errorf("exclusive beside another: %v", err)
	}
	produce(t, ts, &client{id: 3})
	var refusal *cnx.Refusal
	if _, _, err := ts.Produce(t.Context(), orders, &pulsarproto.CommandProducer{}, &client{id: 4}); !errors.As(err, &refusal) || refusal.Code != pulsarproto.ServerError_ProducerBusy {
		t.Errorf("one more than may be: %v", err)
	}
	if !ts.Unload(orders) || first.disconnected != 1 {
		t.Errorf("unload disconnected the first %d times", first.disconnected)
	}
	if ts.Exists(orders) || ts.Unload(orders) {
		t.Error("the topic is still there")
	}
}

func TestNamespaceMustExist(t *testing.T) {
	ts := New(Options{Exists: func(_ context.Context, namespace string) (bool, error) { return namespace != "public/default", nil }})
	var refusal *cnx.Refusal
	if _, _, err := ts.Produce(t.Context(), orders, &pulsarproto.CommandProducer{}, &client{}); !errors.As(err, &refusal) || refusal.Code != pulsarproto.ServerError_TopicNotFound {
		t.Errorf("produce: %v", err)
	}
	name := "s"
	if _, err := ts.Subscribe(t.Context(), orders, &pulsarproto.CommandSubscribe{Subscription: &name}, &client{}); !errors.As(err, &refusal) {
		t.Errorf("subscribe: %v", err)
	}
}

// Producers, consumers and unloads at the same time leave nothing behind.
func TestComingAndGoing(t *testing.T) {
	ts := New(Options{})
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for n := range uint64(200) {
				p, _, err := ts.Produce(t.Context(), orders, &pulsarproto.CommandProducer{}, &client{id: uint64(i)})
				if err != nil {
					t.Error(err)
					return
				}
				kind, name := pulsarproto.CommandSubscribe_Shared, fmt.Sprint("s", i%3)
				c, err := ts.Subscribe(t.Context(), orders, &pulsarproto.CommandSubscribe{Subscription: &name, SubType: &kind}, &client{id: uint64(i)})
				if err != nil {
					t.Error(err)
					return
				}
				c.Flow(10)
				send(p, n, "k", "m")
				if n%50 == 0 {
					ts.Unload(orders)
				}
				c.Close()
				p.Close()
			}
		})
	}
	all.Wait()
	if left := ts.List("public/default"); len(left) != 0 {
		t.Errorf("%v exist although nobody uses them", left)
	}
}

// Who attaches while the place of the topic changes is refused: nobody would disconnect him later.
func TestPlaceThatChangesMeanwhile(t *testing.T) {
	elsewhere := errors.New("served elsewhere")
	var ts *Topics
	here := true
	ts = New(Options{
		Serves: func(topicname.Name) error {
			if here {
				return nil
			}
			return elsewhere
		},
		Exists: func(context.Context, string) (bool, error) {
			here = false
			ts.Recheck()
			return true, nil
		},
	})
	if _, _, err := ts.Produce(t.Context(), orders, &pulsarproto.CommandProducer{}, &client{}); !errors.Is(err, elsewhere) {
		t.Errorf("produce: %v", err)
	}
	here = true
	name := "s"
	if _, err := ts.Subscribe(t.Context(), orders, &pulsarproto.CommandSubscribe{Subscription: &name}, &client{}); !errors.Is(err, elsewhere) {
		t.Errorf("subscribe: %v", err)
	}
	if ts.Exists(orders) {
		t.Error("the topic is here")
	}
}

// Consumers of a Key_Shared subscription share keys in one way: one that wants it otherwise is refused.
func TestKeySharedPolicies(t *testing.T) {
	ts := New(Options{})
	kind, name := pulsarproto.CommandSubscribe_Key_Shared, "s"
	join := func(meta *pulsarproto.KeySharedMeta) error {
		_, err := ts.Subscribe(t.Context(), orders, &pulsarproto.CommandSubscribe{Subscription: &name, SubType: &kind, KeySharedMeta: meta}, &client{})
		return err
	}
	autoSplit := &pulsarproto.KeySharedMeta{KeySharedMode: pulsarproto.KeySharedMode_AUTO_SPLIT.Enum()}
	if err := join(autoSplit); err != nil {
		t.Fatal(err)
	}
	if err := join(nil); err != nil {
		t.Errorf("the default is AUTO_SPLIT: %v", err)
	}
	for _, other := range []*pulsarproto.KeySharedMeta{
		{KeySharedMode: pulsarproto.KeySharedMode_STICKY.Enum(), HashRanges: []*pulsarproto.IntRange{{Start: new(int32(0)), End: new(int32(100))}}},
		{KeySharedMode: pulsarproto.KeySharedMode_AUTO_SPLIT.Enum(), AllowOutOfOrderDelivery: new(true)},
	} {
		if err := join(other); !errors.Is(err, errOtherType) {
			t.Errorf("%v: %v", other, err)
		}
	}
}
