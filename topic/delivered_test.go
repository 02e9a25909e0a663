package topic

import (
	"slices"
	"sync"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
)

// share is one index of a message, or all of a message that is no batch.
type share struct {
	acked     bool
	pending   *modelTxn
	pendingBy *taker // who had and acknowledged it, as long as it is there
	with      *taker
}

type delivered struct {
	text     string
	key      string
	position ledger.Position
	in       *modelTxn
	shares   []share
}

// taker is a consumer. It implements cnx.ConsumerClient.
type taker struct {
	*testConsumer
	log  *deliveryLog
	name string
}

func (c *taker) Message(d cnx.Delivery) { c.log.add(c, d) }

// deliveryLog is what all consumers were given, in order.
type deliveryLog struct {
	mu  sync.Mutex
	all []loggedDelivery
}

type loggedDelivery struct {
	to *taker
	d  cnx.Delivery
}

func (l *deliveryLog) add(c *taker, d cnx.Delivery) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, loggedDelivery{c, d})
}

func (l *deliveryLog) take() []loggedDelivery {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.all
	l.all = nil
	return all
}

func (m *delivery) visible(msg *delivered) bool {
	if msg.in != nil && msg.in.ended && !msg.in.committed {
		return false
	}
	for _, earlier := range m.messages {
		if earlier.in != nil && !earlier.in.ended {
			return false
		}
		if earlier == msg {
			return true
		}
	}
	return false
}

// settle waits until the topic has nothing to do, and checks what it delivered.
func (m *delivery) settle() {
	m.w.quiet("a-partition-1")
	for _, c := range m.takers {
		select {
		case <-c.disconnected:
			m.lost()
			return
		default:
		}
	}
	for _, l := range m.log.take() {
		if slices.Contains(m.takers, l.to) {
			m.check(l.to, l.d)
		}
	}
}

func (m *delivery) check(c *taker, d cnx.Delivery) {
	text := textOf(m.t, d.Payload)
	i := slices.IndexFunc(m.messages, func(msg *delivered) bool { return msg.text == text })
	if i < 0 {
		m.rt.Fatalf("%s was delivered, and never sent", text)
	}
	msg := m.messages[i]
	msg.position = position(d)
	if !m.visible(msg) {
		m.rt.Fatalf("%s was delivered, and cannot be read", text)
	}
	some := false
	for i := range msg.shares {
		s := &msg.shares[i]
		if d.AckSet != nil && d.AckSet[0]&(1<<i) == 0 {
			continue
		}
		if s.acked || s.pending != nil || s.with != nil {
			m.rt.Fatalf("%s, index %d, was delivered to %s with ack set %b, and is %+v", text, i, c.name, d.AckSet, *s)
		}
		s.with, some = c, true
	}
	if !some {
		m.rt.Fatalf("%s was delivered without anything in it: ack set %b", text, d.AckSet)
	}
	switch m.kind {
	case pulsarproto.CommandSubscribe_Key_Shared:
		m.checkKey(c, msg)
	case pulsarproto.CommandSubscribe_Failover:
		if active := m.activeOf(); active != c.name {
			m.rt.Fatalf("%s was delivered to %s, and %s is active", text, c.name, active)
		}
	}
}

// checkKey: nobody else has anything of the key, nobody left anything before msg in a transaction, and nothing before msg is
// free.
func (m *delivery) checkKey(c *taker, msg *delivered) {
	before := true
	for _, other := range m.messages {
		before = before && other != msg
		if other.key != msg.key {
			continue
		}
		for i, s := range other.shares {
			switch {
			case s.with != nil && s.with != c:
				m.rt.Fatalf("%s was delivered to %s, and %s has %s of its key", msg.text, c.name, s.with.name, other.text)
			case s.pending != nil && s.pendingBy != c && (before || s.pendingBy != nil):
				m.rt.Fatalf("%s was delivered to %s, and index %d of %s of its key is pending", msg.text, c.name, i, other.text)
			case before && m.visible(other) && !s.acked && s.pending == nil && s.with == nil:
				m.rt.Fatalf("%s was delivered to %s before %s of its key", msg.text, c.name, other.text)
			}
		}
	}
}
