package topic

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// TestSettledAgainstModel acknowledges on several subscriptions of one topic, individually and cumulatively, plain and in
// transactions, whose commits are settled, settled and refused, or driven. Subscriptions are deleted meanwhile, writes wait or
// fail, and the topic is loaded again. Groups have so few operations that cursors are stored later than what they acknowledge.
// After every round each subscription is given exactly what is neither acknowledged nor held by an open transaction.
func TestSettledAgainstModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) { newSettledModel(rt, t).run() })
}

const (
	settledTopic     = "in"
	settledMessages  = 12
	settledExclusive = 4 // subscriptions
	settledShared    = 2
	settledRounds    = 5
	settledSteps     = 10
	settledOpen      = 3 // transactions at a time
)

type settledModel struct {
	rt            *rapid.T
	t             *testing.T
	w             *world
	log           deliveryLog
	at            []ledger.Position // of the messages
	subscriptions []*settledSubscription
	open          []*modelTxn
	underWay      []*settledCommit
	held          bool          // writes wait
	acks          []*settledAck // of this round, as the following
	deletions     []*settledDeletion
	ends          []*settledEnd
	consumers     uint64
	furthest      int // message that was acknowledged cumulatively everywhere
}

// settledCommit is a commit whose settlement has begun.
type settledCommit struct {
	*commitment
	in *modelTxn
}

func newSettledModel(rt *rapid.T, t *testing.T) *settledModel {
	m := &settledModel{rt: rt, t: t}
	m.w = newWorld(t, func(o *Options) { o.MaxTxnOps = rapid.SampledFrom([]int{24, 32, 40, 128}).Draw(rt, "ops") })
	m.at, _ = sendMany(m.w.produce(settledTopic), settledMessages)
	for i := range settledExclusive {
		m.subscriptions = append(m.subscriptions, newSettledSubscription(fmt.Sprint("exclusive", i), pulsarproto.CommandSubscribe_Exclusive))
	}
	for i := range settledShared {
		m.subscriptions = append(m.subscriptions, newSettledSubscription(fmt.Sprint("shared", i), pulsarproto.CommandSubscribe_Shared))
	}
	return m
}

func (m *settledModel) pick(what string, n int) int { return rapid.IntRange(0, n-1).Draw(m.rt, what) }

func (m *settledModel) coin(what string) bool { return rapid.Bool().Draw(m.rt, what) }

func (m *settledModel) run() {
	defer m.w.close()
	m.connect()
	for range 1 + m.pick("rounds", settledRounds) {
		m.round()
	}
	m.begin(false)
	for len(m.open) > 0 {
		m.drive(m.takeOpen(), txn.Action(m.pick("last action", 2)))
	}
	m.settle(m.coin("last restart"))
}

func (m *settledModel) begin(held bool) { m.held, m.acks, m.deletions, m.ends = held, nil, nil, nil }

// round does some steps, while writes are held or not, and one of the writes may fail. Then it lets everything come to an end.
func (m *settledModel) round() {
	m.begin(m.coin("held"))
	fails, applied := m.pick("failing write", 5), m.coin("applied") // 0: none fails
	release := func() {}
	if m.held {
		release = m.w.hold()
		defer release()
	} else {
		m.w.breakWrite(fails, applied)
	}
	for range 1 + m.pick("steps", settledSteps) {
		m.step()
		if !m.calm() {
			break
		}
	}
	if m.held {
		m.inTopic(func(*Topic) { // so that no write comes in between
			release()
			m.w.breakWrite(fails, applied)
		})
		m.held = false
	}
	m.settle(m.coin("restart"))
}

// calm waits until the topic does nothing, or cannot as writes are held. It reports whether it is still loaded.
func (m *settledModel) calm() bool {
	topic := m.w.topics.loaded(parse(m.t, settledTopic).String())
	if topic == nil {
		return false
	}
	if m.held {
		m.w.posted(settledTopic)
		return true
	}
	still := 0 // what was just asked for leads to a write only behind the next look
	m.w.until(func() bool {
		if still++; topic.writing != nil {
			still = 0
		}
		return topic.isClosed() || still == 3
	}, topic)
	return !topic.isClosed()
}

// inTopic runs do on the goroutine of the topic, if that is loaded.
func (m *settledModel) inTopic(do func(*Topic)) {
	if topic := m.w.topics.loaded(parse(m.t, settledTopic).String()); topic != nil {
		inTopic(m.t, topic, func() { do(topic) })
	}
}

// fold lets settled commits be stored with their cursors.
func (m *settledModel) fold() {
	m.inTopic(func(t *Topic) { t.folding.due = len(t.folding.subscriptions) > 0 })
}

// settle ends what began, does again what was not answered, and compares.
func (m *settledModel) settle(restart bool) {
	for len(m.underWay) > 0 {
		m.finishSettlement(0)
	}
	lost := m.wait()
	if m.pick("fold", 3) > 1 {
		m.fold()
	}
	m.w.quiet(settledTopic)
	m.w.kv.set(nil)
	if restart {
		m.w.restart()
	}
	if lost || restart {
		m.connect()
	}
	m.finish()
	m.compare()
}

// wait waits for all answers, and reports whether some were lost.
func (m *settledModel) wait() (lost bool) {
	for _, a := range m.acks {
		lost = a.wait(m) || lost
	}
	for _, d := range m.deletions {
		lost = d.wait(m) || lost
	}
	for _, e := range m.ends {
		lost = e.wait(m) || lost
	}
	return lost
}

// finish does in the model what was asked for, and repeats what was not answered. Acknowledgements are last: a settled end may
// come before one that was sent earlier and waited.
func (m *settledModel) finish() {
	for _, d := range m.deletions {
		d.finish(m)
	}
	for _, e := range m.ends {
		e.finish(m)
	}
	for _, a := range m.acks {
		a.again(m)
	}
	for _, s := range m.subscriptions {
		s.deleting = false
	}
}

func (m *settledModel) step() {
	// What comes more often is there more often.
	step := rapid.SampledFrom([]string{
		"acknowledge everywhere", "acknowledge everywhere", "acknowledge everywhere", "acknowledge everywhere", "acknowledge in a transaction",
		"acknowledge", "commit", "commit", "commit", "commit", "abort", "finish settlement", "fold", "delete",
	}).Draw(m.rt, "step")
	switch {
	case step == "acknowledge":
		m.acknowledge(m.subscription(), nil)
	case step == "acknowledge in a transaction":
		m.acknowledge(m.subscription(), m.transaction())
	case step == "acknowledge everywhere":
		m.acknowledgeEverywhere()
	case step == "commit" && len(m.open) > 0:
		m.commit(m.takeOpen())
	case step == "abort" && len(m.open) > 0:
		m.drive(m.takeOpen(), txn.Abort)
	case step == "finish settlement" && len(m.underWay) > 0:
		m.finishSettlement(m.pick("settlement", len(m.underWay)))
	case step == "fold":
		m.fold()
	case step == "delete":
		m.delete(m.subscription())
	}
}

func (m *settledModel) subscription() *settledSubscription {
	return m.subscriptions[m.pick("subscription", len(m.subscriptions))]
}

// transaction returns one that is open.
func (m *settledModel) transaction() *modelTxn {
	if len(m.open) < settledOpen && (len(m.open) == 0 || m.pick("begin", 3) == 0) {
		x := &modelTxn{id: m.w.coord.begin()}
		if err := m.w.coord.add(context.Background(), x.id, m.participants()); err != nil {
			m.rt.Fatal(err)
		}
		m.open = append(m.open, x)
		return x
	}
	return m.open[m.pick("transaction", len(m.open))]
}

// takeOpen picks a transaction that is to end.
func (m *settledModel) takeOpen() *modelTxn {
	i := m.pick("which", len(m.open))
	x := m.open[i]
	m.open = slices.Delete(m.open, i, i+1)
	x.ended = true
	return x
}

func (m *settledModel) participants() []txn.Participant {
	var all []txn.Participant
	for _, s := range m.subscriptions {
		all = append(all, m.w.participant(settledTopic, s.name))
	}
	return all
}

// acknowledgeEverywhere acknowledges on every subscription. Cumulative ones go on and on: one behind another is seldom refused.
func (m *settledModel) acknowledgeEverywhere() {
	in := m.transaction()
	message, cumulative := 0, m.pick("individual", 3) > 0
	if cumulative {
		m.furthest = min(m.furthest+1+m.pick("further", 2), settledMessages-1)
		message = m.furthest
	} else {
		message = m.pick("message", settledMessages)
	}
	for _, s := range m.subscriptions {
		m.send(&settledAck{on: s, in: in, message: message, cumulative: cumulative && s.ordered()})
	}
}

func (m *settledModel) acknowledge(on *settledSubscription, in *modelTxn) {
	a := &settledAck{on: on, in: in, message: m.pick("message", settledMessages)}
	a.cumulative = on.ordered() && m.coin("cumulative")
	m.send(a)
}

func (m *settledModel) send(a *settledAck) {
	a.answer = make(chan error, 1)
	a.on.consumer.Ack(a.command(m), func(err error) { a.answer <- err })
	m.acks = append(m.acks, a)
}

func (m *settledModel) delete(s *settledSubscription) {
	if s.deleting {
		return
	}
	s.deleting, m.furthest = true, 0
	d := &settledDeletion{of: s, answer: make(chan error, 1)}
	s.consumer.Unsubscribe(true, func(err error) { d.answer <- err })
	m.deletions = append(m.deletions, d)
}

// commit settles the commit of x, now or later, if that is possible and the coordinator is not too late.
func (m *settledModel) commit(x *modelTxn) {
	c := m.w.prepare(x.id, m.participants()...)
	if c == nil {
		m.drive(x, txn.Commit)
		return
	}
	settling := &settledCommit{c, x}
	switch rapid.SampledFrom([]string{"written", "written", "written", "written", "later", "refused", "answer lost"}).Draw(m.rt, "settlement") {
	case "written":
		m.write(settling)
	case "later":
		m.underWay = append(m.underWay, settling)
	case "refused":
		m.refuse(settling)
	case "answer lost":
		m.lose(settling)
	}
}

func (m *settledModel) finishSettlement(i int) {
	c := m.underWay[i]
	m.underWay = slices.Delete(m.underWay, i, i+1)
	m.write(c)
}

func (m *settledModel) write(c *settledCommit) {
	err := c.writeTo(storeClient.KV)
	c.settled(err)
	if errors.Is(err, txn.ErrFenced) { // the topic was loaded again
		m.drive(c.in, txn.Commit)
		return
	}
	if err != nil {
		m.rt.Fatal(err)
	}
	m.ends = append(m.ends, &settledEnd{in: c.in, action: txn.Commit})
}

// refuse ends a settlement that was not written, as the coordinator could not.
func (m *settledModel) refuse(c *settledCommit) {
	c.settled(txn.ErrFenced)
	m.drive(c.in, txn.Commit)
}

// lose writes a settlement and loses the answer: the topic closes. It cannot load again while writes are held.
func (m *settledModel) lose(c *settledCommit) {
	if m.held {
		m.refuse(c)
		return
	}
	if err := c.writeTo(storeClient.KV); err != nil {
		m.rt.Fatal(err)
	}
	c.settled(txn.ErrUnknownResult)
	m.ends = append(m.ends, &settledEnd{in: c.in, action: txn.Commit})
}

// drive decides the end of x and takes it to every participant.
func (m *settledModel) drive(x *modelTxn, action txn.Action) {
	m.w.coord.decide(m.t, x.id)
	end := &settledEnd{in: x, action: action, participants: m.participants()}
	for _, p := range end.participants {
		answer := make(chan error, 1)
		m.w.topics.EndTxn(context.Background(), x.id, p, action, 0, func(err error) { answer <- err })
		end.answers = append(end.answers, answer)
	}
	m.ends = append(m.ends, end)
}
