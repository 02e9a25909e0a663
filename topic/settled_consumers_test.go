package topic

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// connect gives every subscription a new consumer. The topic is loaded, if it is not.
func (m *settledModel) connect() {
	for _, s := range m.subscriptions {
		m.w.dropConsumers(settledTopic, s.name)
		m.repeat("subscribe", func() error { return m.trySubscribe(s) })
	}
	m.inTopic(func(t *Topic) { // only the model folds: a failure must not depend on how long a check takes
		if t.folding.alarm == nil {
			t.folding.alarm = time.NewTimer(time.Hour)
		}
	})
}

func (m *settledModel) trySubscribe(s *settledSubscription) error {
	m.consumers++
	c := &taker{log: &m.log, name: s.name}
	c.testConsumer = &testConsumer{t: m.t, active: make(chan bool, 10), disconnected: make(chan struct{})}
	cmd := &pulsarproto.CommandSubscribe{
		Topic: ptr(settledTopic), Subscription: &s.name, SubType: &s.kind, ConsumerId: ptr(m.consumers),
		InitialPosition: pulsarproto.CommandSubscribe_Earliest.Enum(),
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var err error
	c.Consumer, err = m.w.topics.Subscribe(ctx, parse(m.t, settledTopic), cnx.Caller{}, cmd, c)
	s.consumer = c
	return err
}

// repeat does what clients and coordinators do again until it is answered.
func (m *settledModel) repeat(what string, do func() error) {
	const tries = 10
	for range tries {
		err := do()
		if err == nil {
			return
		}
		if !unanswered(err) {
			m.rt.Fatalf("%s: %v", what, err)
		}
	}
	m.rt.Fatalf("%s does not come to an end", what)
}

// unanswered tells errors after which nothing is known.
func unanswered(err error) bool {
	return errors.Is(err, ErrPersistence) || errors.Is(err, txn.ErrNotReady)
}

// compare looks at what new consumers are given.
func (m *settledModel) compare() {
	m.connect()
	m.w.quiet(settledTopic)
	m.log.take()
	for _, s := range m.subscriptions {
		s.consumer.Flow(2 * settledMessages)
	}
	m.w.quiet(settledTopic)
	given := make(map[*taker][]string)
	for _, l := range m.log.take() {
		given[l.to] = append(given[l.to], string(l.d.Payload))
	}
	for _, s := range m.subscriptions {
		if s.heldTwice() {
			m.rt.Fatalf("%s: two transactions hold the same", s.name)
		}
		if got, want := given[s.consumer], s.free(); !slices.Equal(got, want) {
			m.rt.Fatalf("%s is given %q, want %q", s.name, got, want)
		}
	}
}
