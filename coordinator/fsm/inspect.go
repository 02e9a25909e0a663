package fsm

import (
	"fmt"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

// describe tells an operator everything about one transaction.
func (m *Machine) describe(now int64, c *Describe) {
	id := m.id(c.Least)
	if t := m.live[c.Least]; t != nil {
		m.ready.NeedsProof = true
		m.effect(Effect{Kind: Reply, To: c.To, ID: id, Descriptions: []Description{m.description(now, t)}})
		return
	}
	o, key, kept := m.outcome(c.Least, now)
	if !kept {
		m.refuseUnknown(c.To, id)
		return
	}
	m.effect(Effect{Kind: Reply, To: c.To, ID: id, Descriptions: []Description{{
		ID: id, Status: o.Status, Owner: key.Owner, ClientName: key.Name,
		Opened: o.Opened, TTLMillis: o.TTL, Ended: o.Ended, TimedOut: o.TimedOut,
	}}})
}

// description is what an operator sees of a live transaction.
func (m *Machine) description(now int64, t *transaction) Description {
	d := t.describe(m.opts.TC)
	overdue := !decided(t) && t.deadline() <= now
	d.Held = m.space == SpaceRefuseEnd && (overdue || t.refused || t.parked)
	return d
}

// list tells an operator which transactions are live, in order of id.
func (m *Machine) list(now int64, c *List) {
	m.ready.NeedsProof = true
	found := []Description{}
	for t := m.first; t != nil && (c.Limit == 0 || len(found) < c.Limit); t = t.next {
		d := m.description(now, t)
		if c.Filter == nil || c.Filter(&d) {
			found = append(found, d)
		}
	}
	m.effect(Effect{Kind: Reply, To: c.To, Descriptions: found})
}

// listNames tells which client names have outcomes. Names are told of with what the batch before left; no proof is needed,
// as with every outcome that is stored.
func (m *Machine) listNames(now int64, c *ListNames) {
	names, next := m.outcomes.ListNames(c.From, bucketsPerList, now)
	m.effect(Effect{Kind: Reply, To: c.To, Retained: &Retained{Names: names, Next: next}})
}

// showName tells the newest outcomes of a client name.
func (m *Machine) showName(now int64, c *ShowName) {
	shown := m.outcomes.Shown(c.Key, c.Limit, now)
	m.effect(Effect{Kind: Reply, To: c.To, Retained: &Retained{Shown: shown}})
}

// resolve declares a participant done by an operator's word: the way out for one that is gone for good (O-4).
func (m *Machine) resolve(now int64, c *Resolve) {
	id := m.id(c.Least)
	t := m.live[c.Least]
	switch {
	case t == nil:
		m.resolveEnded(now, c)
		return
	case !decided(t):
		m.refuse(c.To, id, fmt.Errorf("%w: the transaction is OPEN; commit or abort it first", txn.ErrNotAllowed))
		return
	}
	p := t.find(c.Participant)
	switch {
	case p == nil:
		m.refuse(c.To, id, fmt.Errorf("%w: %s is not a participant of %s", txn.ErrNotAllowed, c.Participant, id))
		return
	case p.done:
		m.refuse(c.To, id, nil)
		return
	case m.space == SpaceRefuseEnd:
		m.refuse(c.To, id, fmt.Errorf("%w: the store is full", txn.ErrNotReady))
		return
	}
	m.append(txn.Change{Record: txn.Record{
		Op: txn.OpResolve, Least: c.Least, Participants: []txn.Participant{c.Participant}, Who: c.Who, Time: now,
	}})
	m.effect(Effect{Kind: Resolved, ID: id, Participant: c.Participant, Who: c.Who})
	m.reply(c.To, id, nil)
	if t.waiting == 0 {
		m.finish(now, t)
	}
}

// resolveEnded answers a RESOLVE that comes too late.
func (m *Machine) resolveEnded(now int64, c *Resolve) {
	id := m.id(c.Least)
	o, _, kept := m.outcome(c.Least, now)
	if !kept {
		m.refuseUnknown(c.To, id)
		return
	}
	action, _ := o.Status.Decided()
	m.reply(c.To, id, &txn.StatusError{ID: id, Want: action.Deciding(), Got: o.Status})
}
