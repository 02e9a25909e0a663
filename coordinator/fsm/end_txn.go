package fsm

import (
	"fmt"
	"slices"

	"github.com/pulsar-tc/pulsar-tc/preserver"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// endTxn decides an open transaction, joins the drive of one that is decided the same way, and tells the outcome of one that
// has ended (TC-9, TC-10, TC-14, P-10, P-13). Source: TransactionMetadataStoreService.endTransaction.
func (m *Machine) endTxn(now int64, c *EndTxn) {
	id := m.id(c.Least)
	t := m.live[c.Least]
	if t == nil {
		m.tellOutcome(now, c)
		return
	}
	if !mayAct(c.Caller, t.bucket.Key().Owner) {
		m.refuseUnknown(c.To, id)
		return
	}
	action, isDecided := t.status.Decided()
	switch {
	case !isDecided && m.space == SpaceRefuseEnd:
		t.refused = true
		m.refuse(c.To, id, fmt.Errorf("%w: the store is full, the transaction stays open until there is space", txn.ErrNotReady))
	case !isDecided:
		t.waiters = append(t.waiters, waiter{c.To, c.Named})
		m.decide(now, t, c.Action, c.Settlement, false)
	case action != c.Action:
		m.contrary(c, t.status)
		m.ready.NeedsProof = true
	case t.parked:
		m.refuseParked(t, waiter{c.To, c.Named})
	case len(t.waiters) >= maxWaiters:
		m.refuse(c.To, id, fmt.Errorf("%w: %d requests wait for the end of the transaction already, ask again", txn.ErrNotReady, maxWaiters))
	default:
		t.waiters = append(t.waiters, waiter{c.To, c.Named})
	}
}

// Settles returns the participants of the transaction that c would commit now, if it has any. If all of them can make the commit
// durable together with the decision, a Settlement in c spares the drive.
func (m *Machine) Settles(c *EndTxn) []txn.Participant {
	t := m.live[c.Least]
	if t == nil || c.Action != txn.Commit || decided(t) || m.space == SpaceRefuseEnd || !mayAct(c.Caller, t.bucket.Key().Owner) {
		return nil
	}
	participants := make([]txn.Participant, len(t.participants))
	for i := range t.participants {
		participants[i] = t.participants[i].Participant
	}
	return participants
}

// maxWaiters bounds the requests that wait for the end of one transaction: who asked may be long gone.
const maxWaiters = 1000

// tellOutcome answers an END on a transaction that is not live. A stored outcome needs no proof: it can only be forgotten.
func (m *Machine) tellOutcome(now int64, c *EndTxn) {
	id := m.id(c.Least)
	o, key, kept := m.outcome(c.Least, now)
	if !kept || !mayAct(c.Caller, key.Owner) {
		m.refuseUnknown(c.To, id)
		return
	}
	if o.Status != c.Action.Decided() {
		m.contrary(c, o.Status)
		return
	}
	m.reply(c.To, id, nil)
}

// outcome finds how a transaction ended: kept, or not kept and ended in this very batch, so that an END that overlaps the
// one that ended it hears the same even where nothing is preserved (TC-14, O-2).
func (m *Machine) outcome(least uint64, now int64) (preserver.Outcome, preserver.Key, bool) {
	if o, key, kept := m.outcomes.Get(least, now); kept {
		return o, key, true
	}
	e, ok := m.fleeting[least]
	return e.outcome, e.key, ok
}

// ended is an outcome that is not kept.
type ended struct {
	outcome preserver.Outcome
	key     preserver.Key
}

func (m *Machine) contrary(c *EndTxn, got txn.Status) {
	id := m.id(c.Least)
	m.effect(Effect{Kind: Contrary, ID: id, Action: c.Action})
	m.reply(c.To, id, &txn.StatusError{ID: id, Want: txn.Open, Got: got})
}

// decide makes the one decision about an open transaction: the first one to be durable is the only one. With a settlement, or
// without participants, it is the end at the same time.
func (m *Machine) decide(now int64, t *transaction, action txn.Action, settlement *txn.Settlement, timedOut bool) {
	if timedOut {
		m.effect(Effect{Kind: Expired, ID: m.id(t.least)})
	}
	t.timedOut = timedOut
	if len(t.participants) == 0 || settlement != nil {
		m.terminate(now, t, action, settlement)
		return
	}
	m.append(txn.Change{
		Record: txn.Record{
			Op: txn.OpUpdate, Least: t.least, Expected: txn.Open, Status: action.Deciding(), TimedOut: timedOut, Time: now,
		},
		CloseAll: true,
	})
	m.drive(t)
}

// drive asks every participant that has not applied the decision to do so, in Pulsar's order.
func (m *Machine) drive(t *transaction) {
	action, _ := t.status.Decided()
	open := make([]txn.Participant, 0, t.waiting)
	for i := range t.participants {
		if !t.participants[i].done {
			open = append(open, t.participants[i].Participant)
		}
	}
	slices.SortFunc(open, txn.Participant.Compare)
	mark := m.LowWaterMark()
	for _, p := range open {
		m.effect(Effect{Kind: Drive, Decision: Decision{m.id(t.least), p, action, mark}})
	}
}

func (m *Machine) participantApplied(now int64, c *Applied) {
	t := m.live[c.Least]
	if t == nil || !decided(t) || !t.applied(c.Participant) || t.waiting > 0 {
		return
	}
	m.finish(now, t)
}

func (m *Machine) participantFailed(c *Failed) {
	t := m.live[c.Least]
	if t == nil {
		return
	}
	if p := t.find(c.Participant); p != nil && !p.done {
		p.attempts++
		p.failure = c.Reason
	}
}

// finish ends a decided transaction whose participants are all done, or parks it while the store takes nothing (P-29).
func (m *Machine) finish(now int64, t *transaction) {
	action, _ := t.status.Decided()
	if m.space != SpaceRefuseEnd {
		m.terminate(now, t, action, nil)
		return
	}
	t.parked = true
	m.parked++
	for _, w := range t.waiters {
		m.refuseParked(t, w)
	}
	t.waiters = nil
}

// refuseParked answers an END whose decision is durable and applied, but whose outcome cannot be stored now (P-3, P-29).
func (m *Machine) refuseParked(t *transaction, w waiter) {
	err := txn.ErrNotReady
	if w.named {
		err = txn.ErrPreserverClosed
	}
	m.refuse(w.to, m.id(t.least),
		fmt.Errorf("%w: the transaction is %s and its participants are done, its end is stored when there is space", err, t.status))
}

// terminate writes the record that ends a transaction and is its outcome (P-7, P-8, P-17), and answers everyone who waits. A
// settlement goes with it, and then the record is the decision, too.
func (m *Machine) terminate(now int64, t *transaction, action txn.Action, settlement *txn.Settlement) {
	key := t.bucket.Key()
	if t.parked {
		t.parked = false
		m.parked--
	}
	place := uint64(0)
	if m.outcomes.Keeps(t.bucket) {
		place = m.nextPlace()
	}
	m.append(txn.Change{Record: txn.Record{
		Op: txn.OpUpdate, Least: t.least, Expected: t.status, Status: action.Decided(), TimedOut: t.timedOut,
		Owner: key.Owner, ClientName: key.Name, StartTime: t.started, TimeoutMillis: t.ttl,
		Time: max(now, m.lastEnded), Place: place,
	}, Settlement: settlement, CloseAll: settlement != nil})
	id := m.id(t.least)
	m.effect(Effect{Kind: Ended, ID: id, Action: action, Millis: max(now-t.started, 0), TimedOut: t.timedOut})
	for _, w := range t.waiters {
		m.reply(w.to, id, nil)
	}
	t.waiters = nil
}

// setSpace takes note of how much room the store has and ends what waited for some.
func (m *Machine) setSpace(now int64, level SpaceLevel) {
	if m.space != SpaceRefuseEnd && !m.loading {
		m.outcomes.TakeForgotten(m.forgetOutcomes) // answers of this batch may rest on it
	}
	m.space = level
	if level == SpaceRefuseEnd || m.parked == 0 {
		return
	}
	for t := m.first; t != nil; {
		next := t.next
		if t.parked {
			m.finish(now, t)
		}
		t = next
	}
}
