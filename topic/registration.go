package topic

import (
	"context"
	"fmt"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// registration asks the coordinator to register a participant for commands that found no open key.
type registration struct {
	topic *Topic
	ref   openRef
	acks  []*ackItem
	sends []*sendItem
}

// setAside goes through a group that was not applied: what depends on a missing open key waits until the coordinator has been
// asked, or is refused if it was asked before. Everything else goes back to the front of the queue. The sends of a producer
// stay in order: behind one that waits, all wait.
func (t *Topic) setAside(items []item, missing map[openRef]bool) {
	var back []item
	started := make(map[openRef]*registration)
	held := make(map[*producer][]*sendItem)
	for _, it := range items {
		switch it := it.(type) {
		case *sendItem:
			if ref, depends := it.open(); depends && missing[ref] {
				t.unproven(it, ref, started)
			}
			if it.waiting || held[it.producer] != nil {
				held[it.producer] = append(held[it.producer], it)
				continue
			}
		case *ackItem:
			if ref, depends := it.open(); depends && missing[ref] && t.unprovenAck(it, ref, started) {
				continue
			}
		}
		back = append(back, it)
	}
	t.hold(held)
	t.queue.pushFront(back)
	for _, r := range started {
		r.ask()
	}
}

// hold makes producers hold sends, then those that wait in the queue, then those that they held already: that is their order.
// What a detached producer would hold is dropped: it got no receipt, and its client sends it again.
func (t *Topic) hold(held map[*producer][]*sendItem) {
	if len(held) == 0 {
		return
	}
	for _, it := range t.queue.take(func(it item) bool { s, is := it.(*sendItem); return is && held[s.producer] != nil }) {
		s := it.(*sendItem)
		held[s.producer] = append(held[s.producer], s)
	}
	for p, sends := range held {
		if p.attached {
			p.held = append(sends, p.held...)
		}
	}
}

func (t *Topic) unproven(s *sendItem, ref openRef, started map[openRef]*registration) {
	if s.asked {
		s.refuse(ended(ref.id))
		return
	}
	s.waiting = true
	r := t.registrationOf(ref, started)
	r.sends = append(r.sends, s)
}

func (t *Topic) unprovenAck(a *ackItem, ref openRef, started map[openRef]*registration) (waits bool) {
	if a.asked {
		a.err = fmt.Errorf("%w: transaction %v has been ended", txn.ErrNotAllowed, ref.id)
		return false
	}
	r := t.registrationOf(ref, started)
	r.acks = append(r.acks, a)
	return true
}

func (t *Topic) registrationOf(ref openRef, started map[openRef]*registration) *registration {
	if r := t.asking[ref]; r != nil {
		return r
	}
	r := &registration{topic: t, ref: ref}
	t.asking[ref] = r
	started[ref] = r
	return r
}

// ask asks in the name of the first command that waits.
func (r *registration) ask() {
	t := r.topic
	if r.ref.id.Most >= t.options.Registrar.Count() {
		r.answered(fmt.Errorf("there is no coordinator %d", r.ref.id.Most))
		return
	}
	var caller cnx.Caller
	var participant txn.Participant
	if len(r.sends) > 0 {
		caller, participant = r.sends[0].producer.caller, t.participant()
	} else {
		caller, participant = r.acks[0].consumer.caller, r.acks[0].consumer.subscription.participant()
	}
	ctx, cancel := context.WithTimeout(t.ctx, t.options.StoreTimeout)
	t.options.Registrar.AddParticipants(ctx, r.ref.id, caller, []txn.Participant{participant}, func(err error) {
		cancel()
		t.post(func(alive bool) {
			if alive {
				r.answered(err)
			}
		})
	})
}

// answered lets what waited try once more, or refuses it.
func (r *registration) answered(err error) {
	t := r.topic
	if t.asking[r.ref] != r {
		return
	}
	delete(t.asking, r.ref)
	for _, a := range r.acks {
		a.asked = true
		if err != nil {
			a.err = refusal(r.ref.id, err)
		}
		t.queue.push(a)
	}
	for _, s := range r.sends {
		s.asked, s.waiting = true, false
		if err != nil {
			s.refuse(refusal(r.ref.id, err))
		}
	}
	// What a producer holds came behind everything of it that is in the queue.
	for _, s := range r.sends {
		for _, ready := range s.producer.release() {
			t.queue.push(ready)
		}
	}
}

func (r *registration) fail(err error) {
	for _, a := range r.acks {
		a.fail(err)
	}
}

// refusal is the answer to a command whose participant the coordinator does not register.
func refusal(id txn.ID, err error) error {
	if transient(err) {
		return fmt.Errorf("%w: transaction %v: %w", ErrPersistence, id, err)
	}
	return fmt.Errorf("%w: transaction %v is not open: %v", txn.ErrNotAllowed, id, err)
}
