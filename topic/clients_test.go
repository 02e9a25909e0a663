package topic

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// receipt is what a producer was answered.
type receipt struct {
	sequence uint64
	position ledger.Position
	err      error
}

// testProducer is both ends of a producer.
type testProducer struct {
	cnx.Producer
	t            *testing.T
	info         cnx.ProducerInfo
	cnxID        uint64
	dead         bool
	receipts     chan receipt
	queued       chan cnx.ProducerInfo
	disconnected chan struct{}
	once         sync.Once
}

func (p *testProducer) Queued(info cnx.ProducerInfo) { p.queued <- info }
func (p *testProducer) Receipt(sequence, _, l, entry uint64) {
	p.receipts <- receipt{sequence: sequence, position: ledger.Position{Ledger: l, Entry: entry}}
}
func (p *testProducer) SendError(sequence uint64, err error) {
	p.receipts <- receipt{sequence: sequence, err: err}
}
func (p *testProducer) Disconnect()                { p.once.Do(func() { close(p.disconnected) }) }
func (p *testProducer) Alive(context.Context) bool { return !p.dead }
func (p *testProducer) CnxID() uint64              { return p.cnxID }
func (p *testProducer) Peer() cnx.Peer             { return cnx.Peer{} }

var cnxIDs uint64

func parse(t *testing.T, name string) topicname.Name {
	t.Helper()
	n, err := topicname.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func ptr[T any](v T) *T { return &v }

func (w *world) newProducer() *testProducer {
	cnxIDs++
	return &testProducer{
		t: w.t, cnxID: cnxIDs, receipts: make(chan receipt, 10000), queued: make(chan cnx.ProducerInfo, 10), disconnected: make(chan struct{}),
	}
}

func (w *world) tryProduce(name string, cmd *pulsarproto.CommandProducer) (*testProducer, error) {
	w.t.Helper()
	p := w.newProducer()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var err error
	p.Producer, p.info, err = w.topics.Produce(ctx, parse(w.t, name), cnx.Caller{}, cmd, p)
	return p, err
}

func (w *world) produce(name string) *testProducer {
	w.t.Helper()
	p, err := w.tryProduce(name, &pulsarproto.CommandProducer{Topic: &name})
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

func (w *world) produceAs(name, producer string) *testProducer {
	w.t.Helper()
	p, err := w.tryProduce(name, &pulsarproto.CommandProducer{Topic: &name, ProducerName: &producer})
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

func message(sequence uint64, payload string) cnx.Send {
	return cnx.Send{SequenceID: sequence, HighestSequenceID: sequence, NumMessages: 1, Payload: []byte(payload)}
}

func inTxn(id txn.ID, msg cnx.Send) cnx.Send {
	msg.Txn, msg.InTxn = id, true
	return msg
}

func batchOf(n int32, msg cnx.Send) cnx.Send {
	msg.NumMessages = n
	msg.Metadata = &pulsarproto.MessageMetadata{NumMessagesInBatch: &n}
	return msg
}

const patience = 30 * time.Second

func (p *testProducer) receipt() receipt {
	p.t.Helper()
	select {
	case r := <-p.receipts:
		return r
	case <-time.After(patience):
		p.t.Fatal("no receipt")
		return receipt{}
	}
}

// send sends and returns the position of the receipt.
func (p *testProducer) send(msg cnx.Send) ledger.Position {
	p.t.Helper()
	p.Send(msg)
	r := p.receipt()
	if r.err != nil {
		p.t.Fatal(r.err)
	}
	if r.sequence != msg.SequenceID {
		p.t.Fatalf("receipt of %d, want of %d", r.sequence, msg.SequenceID)
	}
	return r.position
}

// testConsumer is both ends of a consumer.
type testConsumer struct {
	cnx.Consumer
	t            *testing.T
	dead         bool
	messages     chan cnx.Delivery
	active       chan bool
	ends         chan struct{} // REACHED_END_OF_TOPIC
	disconnected chan struct{}
	once         sync.Once

	mu   sync.Mutex
	full bool
}

func (c *testConsumer) Message(d cnx.Delivery) { c.messages <- d }
func (c *testConsumer) Full() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.full
}
func (c *testConsumer) setFull(full bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.full = full
}
func (c *testConsumer) ActiveConsumerChange(active bool) { c.active <- active }
func (c *testConsumer) Disconnect()                      { c.once.Do(func() { close(c.disconnected) }) }
func (c *testConsumer) Alive(context.Context) bool       { return !c.dead }
func (c *testConsumer) Peer() cnx.Peer                   { return cnx.Peer{} }
func (c *testConsumer) ReachedEndOfTopic()               { c.ends <- struct{}{} }

type subscribeOption func(*pulsarproto.CommandSubscribe)

func ofType(kind pulsarproto.CommandSubscribe_SubType) subscribeOption {
	return func(cmd *pulsarproto.CommandSubscribe) { cmd.SubType = &kind }
}

func earliest(cmd *pulsarproto.CommandSubscribe) {
	cmd.InitialPosition = ptr(pulsarproto.CommandSubscribe_Earliest)
}

func named(name string) subscribeOption {
	return func(cmd *pulsarproto.CommandSubscribe) { cmd.ConsumerName = &name }
}

func nonDurable(cmd *pulsarproto.CommandSubscribe) { cmd.Durable = ptr(false) }

func startAt(p ledger.Position) subscribeOption {
	return func(cmd *pulsarproto.CommandSubscribe) {
		cmd.StartMessageId = &pulsarproto.MessageIdData{LedgerId: &p.Ledger, EntryId: &p.Entry}
	}
}

var shared = ofType(pulsarproto.CommandSubscribe_Shared)

func (w *world) trySubscribe(name, subscription string, options ...subscribeOption) (*testConsumer, error) {
	w.t.Helper()
	cnxIDs++
	c := &testConsumer{
		t: w.t, messages: make(chan cnx.Delivery, 100000), active: make(chan bool, 100), ends: make(chan struct{}, 100), disconnected: make(chan struct{}),
	}
	cmd := &pulsarproto.CommandSubscribe{Topic: &name, Subscription: &subscription, SubType: ptr(pulsarproto.CommandSubscribe_Exclusive), ConsumerId: ptr(cnxIDs)}
	for _, o := range options {
		o(cmd)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var err error
	c.Consumer, err = w.topics.Subscribe(ctx, parse(w.t, name), cnx.Caller{}, cmd, c)
	return c, err
}

// subscribe subscribes and gives 1000 permits.
func (w *world) subscribe(name, subscription string, options ...subscribeOption) *testConsumer {
	w.t.Helper()
	c, err := w.trySubscribe(name, subscription, options...)
	if err != nil {
		w.t.Fatal(err)
	}
	c.Flow(1000)
	return c
}

func (c *testConsumer) next() cnx.Delivery {
	c.t.Helper()
	select {
	case d := <-c.messages:
		return d
	case <-time.After(patience):
		c.t.Fatal("no message")
		return cnx.Delivery{}
	}
}

func position(d cnx.Delivery) ledger.Position {
	return ledger.Position{Ledger: d.LedgerID, Entry: d.EntryID}
}

// want receives exactly these payloads, in order.
func (c *testConsumer) want(payloads ...string) []cnx.Delivery {
	c.t.Helper()
	var got []cnx.Delivery
	for _, payload := range payloads {
		d := c.next()
		if string(d.Payload) != payload {
			c.t.Fatalf("received %q at %v, want %q", d.Payload, position(d), payload)
		}
		got = append(got, d)
	}
	return got
}

// wantAny receives exactly these payloads in any order.
func (c *testConsumer) wantAny(payloads ...string) []cnx.Delivery {
	c.t.Helper()
	var deliveries []cnx.Delivery
	var got []string
	for range payloads {
		d := c.next()
		deliveries, got = append(deliveries, d), append(got, string(d.Payload))
	}
	slices.Sort(got)
	slices.Sort(payloads)
	if !slices.Equal(got, payloads) {
		c.t.Fatalf("received %q, want %q", got, payloads)
	}
	return deliveries
}

// wantNothing shows that nothing more is delivered: a round of the topic behind all that happened has delivered nothing.
func (c *testConsumer) wantNothing(w *world, name string) {
	c.t.Helper()
	w.quiet(name)
	select {
	case d := <-c.messages:
		c.t.Fatalf("received %q at %v, want nothing", d.Payload, position(d))
	default:
	}
}

// quiet returns when the topic has nothing to do: it neither writes nor reads.
func (w *world) quiet(name string) {
	w.t.Helper()
	deadline := time.Now().Add(patience)
	for still := 0; still < 3; {
		t := w.topics.loaded(parse(w.t, name).String())
		if t == nil {
			return
		}
		idle := make(chan bool, 1)
		t.ask(func(alive bool) {
			busy := t.writing != nil || !t.queue.empty() || len(t.asking) > 0 || t.finding
			for _, s := range t.subscriptions {
				busy = busy || s.reading
			}
			idle <- !alive || !busy
		})
		if <-idle {
			still++
		} else {
			still = 0
		}
		if time.Now().After(deadline) {
			w.t.Fatal("the topic does not come to rest")
		}
	}
}

func idOf(p ledger.Position) *pulsarproto.MessageIdData {
	return &pulsarproto.MessageIdData{LedgerId: &p.Ledger, EntryId: &p.Entry}
}

func ackOf(kind pulsarproto.CommandAck_AckType, positions ...ledger.Position) *pulsarproto.CommandAck {
	cmd := &pulsarproto.CommandAck{AckType: &kind}
	for _, p := range positions {
		cmd.MessageId = append(cmd.MessageId, idOf(p))
	}
	return cmd
}

func ackInTxn(id txn.ID, cmd *pulsarproto.CommandAck) *pulsarproto.CommandAck {
	cmd.TxnidMostBits, cmd.TxnidLeastBits = &id.Most, &id.Least
	return cmd
}

func (c *testConsumer) tryAck(cmd *pulsarproto.CommandAck) error {
	c.t.Helper()
	done := make(chan error, 1)
	c.Ack(cmd, func(err error) { done <- err })
	return wait(c.t, done)
}

func (c *testConsumer) ack(positions ...ledger.Position) {
	c.t.Helper()
	if err := c.tryAck(ackOf(pulsarproto.CommandAck_Individual, positions...)); err != nil {
		c.t.Fatal(err)
	}
}

func (c *testConsumer) ackIn(id txn.ID, positions ...ledger.Position) error {
	c.t.Helper()
	return c.tryAck(ackInTxn(id, ackOf(pulsarproto.CommandAck_Individual, positions...)))
}

func (c *testConsumer) lastMessageID() (last ledger.Position, batchIndex int32) {
	c.t.Helper()
	done := make(chan error, 1)
	c.LastMessageID(func(id, markDelete *pulsarproto.MessageIdData, err error) {
		if err == nil {
			if markDelete == nil {
				err = fmt.Errorf("no mark-delete position")
			}
			last, batchIndex = ledger.Position{Ledger: id.GetLedgerId(), Entry: id.GetEntryId()}, id.GetBatchIndex()
		}
		done <- err
	})
	if err := wait(c.t, done); err != nil {
		c.t.Fatal(err)
	}
	return last, batchIndex
}

func wait(t *testing.T, done <-chan error) error {
	t.Helper()
	select {
	case err := <-done:
		return err
	case <-time.After(patience):
		t.Fatal("no answer")
		return nil
	}
}

// happens waits until something is or was closed or sent.
func happens(t *testing.T, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatal("it does not happen")
	}
}

// eventually looks again and again until it is so.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}
