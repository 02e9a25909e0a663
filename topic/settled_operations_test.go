package topic

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topic/pendingack"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// settledSubscription is a subscription as an obviously right topic would have it.
type settledSubscription struct {
	name     string
	kind     pulsarproto.CommandSubscribe_SubType
	consumer *taker
	deleting bool // in this round: nothing that came before or behind has an effect

	acked [settledMessages]bool
	holds map[*modelTxn]*settledHold
}

// settledHold is what a transaction holds: messages individually, and all before through cumulatively.
type settledHold struct {
	messages [settledMessages]bool
	through  int
}

func newSettledSubscription(name string, kind pulsarproto.CommandSubscribe_SubType) *settledSubscription {
	return &settledSubscription{name: name, kind: kind, holds: make(map[*modelTxn]*settledHold)}
}

// ordered reports whether messages can be acknowledged cumulatively.
func (s *settledSubscription) ordered() bool { return s.kind == pulsarproto.CommandSubscribe_Exclusive }

// free returns the payloads of what a new consumer is to be given.
func (s *settledSubscription) free() (payloads []string) {
	for message, acked := range s.acked {
		held := slices.ContainsFunc(slices.Collect(maps.Values(s.holds)), func(h *settledHold) bool {
			return h.messages[message] || message < h.through
		})
		if !acked && !held {
			payloads = append(payloads, fmt.Sprint("m", message))
		}
	}
	return payloads
}

// hold returns what x holds, to be changed.
func (s *settledSubscription) hold(x *modelTxn) *settledHold {
	if s.holds[x] == nil {
		s.holds[x] = &settledHold{}
	}
	return s.holds[x]
}

func (s *settledSubscription) end(x *modelTxn, action txn.Action) {
	held := s.holds[x]
	delete(s.holds, x)
	if held == nil || action == txn.Abort {
		return
	}
	for message := range s.acked {
		s.acked[message] = s.acked[message] || held.messages[message] || message < held.through
	}
}

// heldTwice reports whether two transactions hold the same message, or both hold cumulatively.
func (s *settledSubscription) heldTwice() bool {
	var all settledHold
	for _, held := range s.holds {
		if all.through > 0 && held.through > 0 {
			return true
		}
		all.through = max(all.through, held.through)
		for message, is := range held.messages {
			if is && all.messages[message] {
				return true
			}
			all.messages[message] = all.messages[message] || is
		}
	}
	return false
}

// renew makes it a subscription that nobody used: it was deleted, and comes again.
func (s *settledSubscription) renew() {
	fresh := newSettledSubscription(s.name, s.kind)
	fresh.consumer, fresh.deleting = s.consumer, true
	*s = *fresh
}

type settledAck struct {
	on         *settledSubscription
	in         *modelTxn // nil: plain
	message    int
	cumulative bool
	answer     chan error
	lost       bool // the answer
}

func (a *settledAck) String() string {
	return fmt.Sprintf("acknowledgement of m%d on %s", a.message, a.on.name)
}

func (a *settledAck) command(m *settledModel) *pulsarproto.CommandAck {
	kind := pulsarproto.CommandAck_Individual
	if a.cumulative {
		kind = pulsarproto.CommandAck_Cumulative
	}
	cmd := ackOf(kind, m.at[a.message])
	if a.in != nil {
		ackInTxn(a.in.id, cmd)
	}
	return cmd
}

// wait waits for the answer, and reports whether it was lost. What a deletion is about to make void may be answered in any way.
func (a *settledAck) wait(m *settledModel) (lost bool) {
	err := wait(m.t, a.answer)
	switch {
	case a.on.deleting:
		return false
	case err == nil:
		a.apply()
	case unanswered(err):
		a.lost = true
	case a.in != nil && errors.Is(err, txn.ErrConflict):
	case a.in != nil && a.in.ended && errors.Is(err, txn.ErrNotAllowed):
	default:
		m.rt.Fatalf("%v: %v", a, err)
	}
	return a.lost
}

// again repeats what may have been applied. Of a transaction that ended meanwhile nothing was: it ends only while the write of its
// acknowledgement is answered, or did not begin, and behind its end it is refused.
func (a *settledAck) again(m *settledModel) {
	if !a.lost || a.in != nil && a.in.ended {
		return
	}
	refused := false
	m.repeat(a.String(), func() error {
		err := a.on.consumer.tryAck(a.command(m))
		refused = a.in != nil && errors.Is(err, txn.ErrConflict)
		if refused {
			return nil
		}
		return err
	})
	if !refused || a.there(m) {
		a.apply()
	}
}

// there reports whether the transaction holds what it acknowledged. The answers do not tell: another acknowledgement whose answer
// is lost may have come first.
func (a *settledAck) there(m *settledModel) (is bool) {
	m.inTopic(func(t *Topic) {
		held := t.subscriptions[a.on.name].pending.Held(a.in.id)
		if a.cumulative {
			is = held.Cumulative != nil && held.Cumulative.Position == m.at[a.message]
			return
		}
		is = slices.ContainsFunc(held.Individual, func(h pendingack.Hold) bool { return h.Position == m.at[a.message] })
	})
	return is
}

func (a *settledAck) apply() {
	switch s := a.on; {
	case a.in == nil && a.cumulative:
		for i := range a.message + 1 {
			s.acked[i] = true
		}
	case a.in == nil:
		s.acked[a.message] = true
	case a.cumulative:
		held := s.hold(a.in)
		held.through = max(held.through, a.message+1)
	default:
		s.hold(a.in).messages[a.message] = true
	}
}

type settledDeletion struct {
	of     *settledSubscription
	answer chan error
	err    error
}

// wait waits for the answer, and reports whether it was lost.
func (d *settledDeletion) wait(m *settledModel) (lost bool) {
	d.err = wait(m.t, d.answer)
	return d.err != nil
}

// finish repeats the deletion if need be, and does it in the model.
func (d *settledDeletion) finish(m *settledModel) {
	if d.err != nil && !unanswered(d.err) {
		m.rt.Fatalf("delete %s: %v", d.of.name, d.err)
	}
	if d.err != nil {
		m.repeat("delete "+d.of.name, func() error {
			answer := make(chan error, 1)
			d.of.consumer.Unsubscribe(true, func(err error) { answer <- err })
			return wait(m.t, answer)
		})
	}
	d.of.renew()
}

// settledEnd is the end of a transaction. It has no participants if it was settled.
type settledEnd struct {
	in           *modelTxn
	action       txn.Action
	participants []txn.Participant
	answers      []chan error
	errs         []error
}

// wait waits for the answers, and reports whether one was lost.
func (e *settledEnd) wait(m *settledModel) (lost bool) {
	for _, answer := range e.answers {
		err := wait(m.t, answer)
		e.errs = append(e.errs, err)
		lost = lost || err != nil
	}
	return lost
}

// finish repeats what was not answered, and ends the transaction in the model.
func (e *settledEnd) finish(m *settledModel) {
	for i, err := range e.errs {
		if err == nil {
			continue
		}
		if !unanswered(err) {
			m.rt.Fatalf("end of %v on %s: %v", e.in.id, e.participants[i].Subscription, err)
		}
		m.repeat("end", func() error {
			return m.w.tryEnd(e.in.id, e.action, settledTopic, e.participants[i].Subscription)
		})
	}
	for _, s := range m.subscriptions {
		s.end(e.in, e.action)
	}
}
