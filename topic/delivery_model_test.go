package topic

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// TestDeliveryAgainstModel lets consumers of each type come and go, take, acknowledge and give back messages and indexes of
// batches, plain and in transactions, with crashes and reloads in between. Whatever is delivered must be free: committed, not
// acknowledged, not pending, and with nobody else. Keys keep their order. In the end nothing is lost.
func TestDeliveryAgainstModel(t *testing.T) {
	for _, kind := range []pulsarproto.CommandSubscribe_SubType{
		pulsarproto.CommandSubscribe_Shared, pulsarproto.CommandSubscribe_Key_Shared, pulsarproto.CommandSubscribe_Failover,
	} {
		t.Run(kind.String(), func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) { newDelivery(rt, t, kind).run() })
		})
	}
}

type delivery struct {
	rt       *rapid.T
	t        *testing.T
	w        *world
	kind     pulsarproto.CommandSubscribe_SubType
	log      deliveryLog
	p        *testProducer
	takers   []*taker
	messages []*delivered
	open     []*modelTxn
	named    int
	sequence uint64
}

func newDelivery(rt *rapid.T, t *testing.T, kind pulsarproto.CommandSubscribe_SubType) *delivery {
	w := newWorld(t, func(o *Options) {
		o.CacheBytes = rapid.SampledFrom([]int64{1, 1 << 20}).Draw(rt, "cache")
		o.KeySharedRingPoints = rapid.SampledFrom([]int{0, 10}).Draw(rt, "ring")
		o.MaxTxnOps = rapid.SampledFrom([]int{16, 128}).Draw(rt, "ops")
	})
	return &delivery{rt: rt, t: t, w: w, kind: kind}
}

func (m *delivery) pick(what string, n int) int { return rapid.IntRange(0, n-1).Draw(m.rt, what) }

func (m *delivery) run() {
	defer m.w.close()
	m.join()
	m.settle()
	for range rapid.IntRange(10, 60).Draw(m.rt, "steps") {
		m.step()
		m.settle()
	}
	for len(m.open) > 0 {
		m.end(0, txn.Action(m.pick("last action", 2)))
		m.settle()
	}
	m.finish()
}

// finish takes and acknowledges everything, and finds that nothing is left out.
func (m *delivery) finish() {
	m.w.kv.set(nil)
	if len(m.takers) == 0 {
		m.join()
	}
	for {
		for _, c := range m.takers {
			c.Flow(100000)
		}
		m.settle()
		some := false
		for _, msg := range m.messages {
			for i := range msg.shares {
				if s := &msg.shares[i]; s.with != nil {
					m.ack(s.with, msg, nil)
					m.settle()
					some = true
					break
				}
			}
		}
		if !some {
			break
		}
	}
	for _, msg := range m.messages {
		for i, s := range msg.shares {
			if m.visible(msg) && !s.acked {
				m.rt.Fatalf("%s, index %d, was never delivered", msg.text, i)
			}
		}
	}
}

func (m *delivery) step() {
	switch m.pick("step", 14) {
	case 0:
		m.open = append(m.open, &modelTxn{id: m.w.coord.begin()})
	case 1, 2, 3:
		m.send()
	case 4:
		if len(m.open) > 0 {
			m.end(m.pick("which", len(m.open)), txn.Action(m.pick("action", 2)))
		}
	case 5:
		if len(m.takers) < 3 {
			m.join()
		}
	case 6:
		if len(m.takers) > 0 && m.pick("really", 2) == 0 {
			i := m.pick("taker", len(m.takers))
			c := m.takers[i]
			c.Close()
			m.takers = slices.Delete(m.takers, i, i+1)
			m.drop(c)
			m.elected()
		}
	case 7:
		if len(m.takers) > 0 {
			m.takers[m.pick("taker", len(m.takers))].Flow(uint32(1 + m.pick("permits", 5)))
		}
	case 8, 9, 10, 11:
		m.ackSome()
	case 12:
		m.giveBack()
	case 13:
		if m.pick("how", 3) == 0 {
			m.w.restart()
			m.lost()
		} else {
			m.w.breakWrite(1, m.pick("applied", 2) == 0)
		}
	}
}

func (m *delivery) again(err error) {
	if !errors.Is(err, ErrPersistence) && !errors.Is(err, txn.ErrNotReady) {
		m.rt.Fatal(err)
	}
	m.lost()
}

// lost: the topic closed, and all are disconnected.
func (m *delivery) lost() {
	m.p = nil
	for _, c := range m.takers {
		m.drop(c)
	}
	m.takers = nil
}

// drop takes back what a consumer had when it is gone. What it acknowledged in transactions stays pending, by nobody.
func (m *delivery) drop(c *taker) {
	for _, msg := range m.messages {
		for i := range msg.shares {
			if s := &msg.shares[i]; s.with == c {
				s.with = nil
			}
			if s := &msg.shares[i]; s.pendingBy == c {
				s.pendingBy = nil
			}
		}
	}
}

func (m *delivery) join() { m.joinWith(m.pick("first permits", 6)) }

func (m *delivery) joinWith(permits int) {
	for {
		m.named++
		c := &taker{log: &m.log, name: fmt.Sprintf("c%03d", m.named)}
		c.testConsumer = &testConsumer{t: m.t, active: make(chan bool, 1000), disconnected: make(chan struct{})}
		topic, subscription := "a-partition-1", "s"
		cmd := &pulsarproto.CommandSubscribe{
			Topic: &topic, Subscription: &subscription, SubType: &m.kind, ConsumerId: ptr(uint64(m.named)), ConsumerName: &c.name,
			InitialPosition: pulsarproto.CommandSubscribe_Earliest.Enum(),
		}
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		consumer, err := m.w.topics.Subscribe(ctx, parse(m.t, topic), cnx.Caller{}, cmd, c)
		cancel()
		if err != nil {
			m.again(err)
			continue
		}
		c.Consumer = consumer
		m.elected()
		m.takers = append(m.takers, c)
		c.Flow(uint32(permits))
		return
	}
}

// elected: another consumer may be active on Failover, and starts anew.
func (m *delivery) elected() {
	for _, c := range m.takers {
		if m.kind == pulsarproto.CommandSubscribe_Failover && m.activeOf() != c.name {
			m.drop(c)
		}
	}
}

func (m *delivery) activeOf() string { return m.w.activeOf("a-partition-1", "s") }

func (m *delivery) send() {
	msg := &delivered{text: fmt.Sprint("m", m.sequence), key: fmt.Sprint("k", m.pick("key", 4)), shares: make([]share, 1)}
	metadata := &pulsarproto.MessageMetadata{PartitionKey: &msg.key, SequenceId: ptr(m.sequence)}
	send := message(m.sequence, "")
	if m.pick("batch", 3) == 0 {
		msg.shares = make([]share, 3)
		metadata.NumMessagesInBatch, send.NumMessages = ptr(int32(3)), 3
	}
	send.Metadata, send.Payload = metadata, payloadOf(m.t, metadata, msg.text)
	if len(m.open) > 0 && m.pick("in transaction", 2) == 0 {
		msg.in = m.open[m.pick("in", len(m.open))]
		send = inTxn(msg.in.id, send)
	} else {
		m.w.kv.set(nil) // without deduplication a plain message may be there twice
	}
	m.sequence++
	for {
		if m.p == nil {
			name, producer := "a-partition-1", "p"
			p, err := m.w.tryProduce(name, &pulsarproto.CommandProducer{Topic: &name, ProducerName: &producer})
			if err != nil {
				m.again(err)
				continue
			}
			m.p = p
		}
		m.p.Send(send)
		select {
		case got := <-m.p.receipts:
			if got.err != nil {
				m.rt.Fatal(got.err)
			}
			msg.position = got.position
			m.messages = append(m.messages, msg)
			return
		case <-m.p.disconnected:
			m.lost()
		case <-time.After(patience):
			m.rt.Fatal("no receipt")
		}
	}
}

func (m *delivery) end(i int, action txn.Action) {
	x := m.open[i]
	m.open = slices.Delete(m.open, i, i+1)
	m.w.coord.decide(m.t, x.id)
	for _, subscription := range []string{"", "s"} {
		for {
			err := m.w.tryEnd(x.id, action, "a-partition-1", subscription)
			if err == nil {
				break
			}
			m.again(err)
		}
		if subscription == "" {
			x.ended, x.committed = true, action == txn.Commit
			m.settle()
		}
	}
	for _, msg := range m.messages {
		for i := range msg.shares {
			if s := &msg.shares[i]; s.pending == x {
				s.pending, s.pendingBy = nil, nil
				s.acked = s.acked || x.committed
			}
		}
	}
}

// ackSome acknowledges all or some of what a consumer has of a message.
func (m *delivery) ackSome() {
	var having []*delivered
	for _, msg := range m.messages {
		if slices.ContainsFunc(msg.shares, func(s share) bool { return s.with != nil }) {
			having = append(having, msg)
		}
	}
	if len(having) == 0 {
		return
	}
	msg := having[m.pick("message", len(having))]
	i := slices.IndexFunc(msg.shares, func(s share) bool { return s.with != nil })
	var in *modelTxn
	if len(m.open) > 0 && m.pick("in transaction", 3) > 0 {
		in = m.open[m.pick("in", len(m.open))]
	}
	m.ack(msg.shares[i].with, msg, in)
}

func (m *delivery) ack(c *taker, msg *delivered, in *modelTxn) {
	cmd := ackOf(pulsarproto.CommandAck_Individual, msg.position)
	var mine []int
	for i, s := range msg.shares {
		if s.with == c {
			mine = append(mine, i)
		}
	}
	if len(msg.shares) > 1 {
		if m.pick("some", 2) == 0 {
			mine = mine[:1]
		}
		left := int64(-1)
		for _, i := range mine {
			left &^= 1 << i
		}
		cmd.MessageId[0].AckSet = []int64{left}
	}
	if in != nil {
		ackInTxn(in.id, cmd)
	}
	by := c
	for try := 0; ; try++ {
		err := c.tryAck(cmd)
		if err == nil || try > 0 && in != nil && errors.Is(err, txn.ErrConflict) {
			break
		}
		m.again(err)             // c is gone, and what it had may be with others when it comes again
		m.joinWith(0)            // nothing is delivered before it is known what is acknowledged
		c, by = m.takers[0], nil // it acknowledges what it was never given
	}
	for _, i := range mine {
		s := &msg.shares[i]
		s.with = nil
		if in == nil {
			s.acked = true
			continue
		}
		s.pending, s.pendingBy = in, by
	}
	if !slices.Contains(m.takers, c) {
		m.drop(c)
	}
}

// giveBack is a negative acknowledgement of what a consumer has of some messages, or of all.
func (m *delivery) giveBack() {
	if len(m.takers) == 0 {
		return
	}
	c := m.takers[m.pick("taker", len(m.takers))]
	cmd, all := redeliver(), m.pick("all", 3) == 0 || m.kind == pulsarproto.CommandSubscribe_Failover
	for _, msg := range m.messages {
		has := slices.ContainsFunc(msg.shares, func(s share) bool { return s.with == c })
		if !has || !all && m.pick("this", 2) == 0 {
			continue
		}
		cmd.MessageIds = append(cmd.MessageIds, idOf(msg.position))
		for i := range msg.shares {
			if msg.shares[i].with == c {
				msg.shares[i].with = nil
			}
		}
	}
	if all {
		cmd.MessageIds = nil
	} else if len(cmd.MessageIds) == 0 {
		return
	}
	c.Redeliver(cmd)
}
