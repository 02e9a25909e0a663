package conn

import (
	"context"
	"slices"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// fakeCoordinators answers everything at once with success, or with what the functions say.
type fakeCoordinators struct {
	count   uint64
	connect func(tc uint64, closed func(bool), done func(error))
	newTxn  func(tc uint64, done func(txn.ID, error))
	add     func(id txn.ID, participants []txn.Participant, done func(error))
	end     func(id txn.ID, action txn.Action, done func(error))

	mu           sync.Mutex
	next         uint64
	connects     int
	ttlMillis    uint64
	clientName   string
	named        bool
	participants []txn.Participant
	actions      []txn.Action
	caller       Caller
}

func (c *fakeCoordinators) Count() uint64 { return c.count }

func (c *fakeCoordinators) Connect(_ context.Context, tc uint64, closed func(bool), done func(error)) {
	c.mu.Lock()
	c.connects++
	c.mu.Unlock()
	if c.connect != nil {
		c.connect(tc, closed, done)
		return
	}
	done(nil)
}

func (c *fakeCoordinators) NewTxn(_ context.Context, tc uint64, caller Caller, ttlMillis uint64, clientName string, named bool, done func(txn.ID, error)) {
	c.mu.Lock()
	c.ttlMillis, c.clientName, c.named, c.caller = ttlMillis, clientName, named, caller
	least := c.next
	c.next++
	c.mu.Unlock()
	if c.newTxn != nil {
		c.newTxn(tc, done)
		return
	}
	done(txn.ID{Most: tc, Least: least}, nil)
}

func (c *fakeCoordinators) AddParticipants(_ context.Context, id txn.ID, _ Caller, participants []txn.Participant, done func(error)) {
	c.mu.Lock()
	c.participants = append(c.participants, participants...)
	c.mu.Unlock()
	if c.add != nil {
		c.add(id, participants, done)
		return
	}
	done(nil)
}

func (c *fakeCoordinators) EndTxn(_ context.Context, id txn.ID, _ Caller, action txn.Action, named bool, done func(error)) {
	c.mu.Lock()
	c.actions = append(c.actions, action)
	c.named = named
	c.mu.Unlock()
	if c.end != nil {
		c.end(id, action, done)
		return
	}
	done(nil)
}

// fakeTopics attaches every producer and consumer, or does what the functions say.
type fakeTopics struct {
	agains     []error // guarded by mu
	partitions func(name topicname.Name, create bool) (int, error)
	produce    func(ctx context.Context, client ProducerClient) (Producer, ProducerInfo, error)
	subscribe  func(ctx context.Context, client ConsumerClient) (Consumer, error)
	list       func(namespace string) ([]string, error)
	send       func(p *fakeProducer, msg Send) // instead of a receipt
	endTxn     func(participant txn.Participant, action txn.Action, lowWaterMark uint64, done func(error))

	mu        sync.Mutex
	producers []*fakeProducer
	consumers []*fakeConsumer
	decided   []bool // of the ends
}

func (f *fakeTopics) PartitionCount(_ context.Context, name topicname.Name, create bool) (int, error) {
	if f.partitions != nil {
		return f.partitions(name, create)
	}
	return 0, nil
}

func (f *fakeTopics) TopicsOfNamespace(_ context.Context, namespace string, _ pulsarproto.CommandGetTopicsOfNamespace_Mode) ([]string, error) {
	if f.list != nil {
		return f.list(namespace)
	}
	return nil, nil
}

func (f *fakeTopics) Produce(ctx context.Context, name topicname.Name, _ Caller, cmd *pulsarproto.CommandProducer, client ProducerClient) (Producer, ProducerInfo, error) {
	if f.produce != nil {
		return f.produce(ctx, client)
	}
	return f.newProducer(client), ProducerInfo{Name: "fake-1", LastSequenceID: -1, Ready: true}, nil
}

func (f *fakeTopics) newProducer(client ProducerClient) *fakeProducer {
	p := &fakeProducer{topics: f, client: client}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.producers = append(f.producers, p)
	return p
}

func (f *fakeTopics) Subscribe(ctx context.Context, name topicname.Name, _ Caller, cmd *pulsarproto.CommandSubscribe, client ConsumerClient) (Consumer, error) {
	if f.subscribe != nil {
		return f.subscribe(ctx, client)
	}
	return f.newConsumer(client), nil
}

func (f *fakeTopics) newConsumer(client ConsumerClient) *fakeConsumer {
	c := &fakeConsumer{client: client}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.consumers = append(f.consumers, c)
	return c
}

func (f *fakeTopics) EndTxn(_ context.Context, _ txn.ID, participant txn.Participant, action txn.Action, lowWaterMark uint64, decided bool, done func(error)) {
	f.mu.Lock()
	f.decided = append(f.decided, decided)
	f.mu.Unlock()
	if f.endTxn != nil {
		f.endTxn(participant, action, lowWaterMark, done)
		return
	}
	done(nil)
}

// producer returns the producer attached as number i.
func (f *fakeTopics) producer(i int) *fakeProducer {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.producers[i]
}

func (f *fakeTopics) consumer(i int) *fakeConsumer {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.consumers[i]
}

// fakeProducer gives each send a receipt with the entry id of its place.
type fakeProducer struct {
	topics *fakeTopics
	client ProducerClient

	mu     sync.Mutex
	sends  []Send
	closes int
}

func (p *fakeProducer) Send(msg Send) {
	if msg.Refused != nil {
		p.client.SendError(msg.HighestSequenceID, msg.Refused)
		return
	}
	p.mu.Lock()
	p.sends = append(p.sends, msg)
	entry := uint64(len(p.sends) - 1)
	p.mu.Unlock()
	if p.topics.send != nil {
		p.topics.send(p, msg)
		return
	}
	if msg.Refused != nil {
		p.client.SendError(msg.HighestSequenceID, msg.Refused)
		return
	}
	p.client.Receipt(msg.SequenceID, msg.HighestSequenceID, 5, entry)
}

// Again answers with the next of the topics' agains, and with success when there is none.
func (p *fakeProducer) Again(done func(error)) {
	p.topics.mu.Lock()
	var err error
	if left := p.topics.agains; len(left) > 0 {
		err, p.topics.agains = left[0], left[1:]
	}
	p.topics.mu.Unlock()
	done(err)
}

func (p *fakeProducer) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closes++
}

func (p *fakeProducer) sent() []Send {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Send(nil), p.sends...)
}

func (p *fakeProducer) closed() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closes
}

// fakeConsumer records what it is asked for and succeeds.
type fakeConsumer struct {
	client ConsumerClient
	ack    func(done func(error))

	mu        sync.Mutex
	permits   uint32
	acks      int
	redeliver int
	resumes   int
	closes    int
	force     bool
}

func (c *fakeConsumer) Flow(permits uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.permits += permits
}

func (c *fakeConsumer) Ack(_ *pulsarproto.CommandAck, done func(error)) {
	c.mu.Lock()
	c.acks++
	c.mu.Unlock()
	if c.ack != nil {
		c.ack(done)
		return
	}
	done(nil)
}

func (c *fakeConsumer) Redeliver(*pulsarproto.CommandRedeliverUnacknowledgedMessages) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.redeliver++
}

func (c *fakeConsumer) Seek(_ *pulsarproto.CommandSeek, done func(error)) {
	c.client.Disconnect()
	done(nil)
}

func (c *fakeConsumer) Unsubscribe(force bool, done func(error)) {
	c.mu.Lock()
	c.force = force
	c.mu.Unlock()
	done(nil)
}

func (c *fakeConsumer) LastMessageID(done func(last, markDelete *pulsarproto.MessageIdData, err error)) {
	done(&pulsarproto.MessageIdData{LedgerId: proto.Uint64(5), EntryId: proto.Uint64(9)},
		&pulsarproto.MessageIdData{LedgerId: proto.Uint64(5), EntryId: proto.Uint64(3)}, nil)
}

func (c *fakeConsumer) Stats(done func(*pulsarproto.CommandConsumerStatsResponse, error)) {
	done(&pulsarproto.CommandConsumerStatsResponse{MsgBacklog: proto.Uint64(3)}, nil)
}

func (c *fakeConsumer) Resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.resumes++
}

func (c *fakeConsumer) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closes++
}

// read returns a copy of a field under the lock.
func read[T any](mu *sync.Mutex, field *T) T {
	mu.Lock()
	defer mu.Unlock()
	return *field
}

// fakeLookup answers one address.
type fakeLookup struct{ err error }

func (f *fakeLookup) Topic(context.Context, topicname.Name, Caller, *pulsarproto.CommandLookupTopic) (LookupAnswer, error) {
	return LookupAnswer{ServiceURL: "pulsar://localhost:6650", Authoritative: true, ProxyThroughServiceURL: true}, f.err
}

// held are requests whose answer a test gives.
type held struct {
	mu   sync.Mutex
	done []func(error)
}

func (h *held) hold(done func(error)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.done = append(h.done, done)
}

func (h *held) all() []func(error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.done)
}

func (h *held) at(i int) func(error) { return h.all()[i] }

func (h *held) count() int { return len(h.all()) }
