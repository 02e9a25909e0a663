package topic

import (
	"errors"
	"time"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

// maxSettled bounds the participants of a commit that is settled, so that it fits any write.
const maxSettled = 16

// settledPart is what one topic has of a settlement.
type settledPart struct {
	topic         *Topic
	id            txn.ID
	messages      bool // it is a participant itself
	subscriptions []string
	shown         bool // its messages can be read
}

// Settle implements coordinator.Participants, for commits on loaded topics.
func (ts *Topics) Settle(id txn.ID, participants []txn.Participant) (*txn.Settlement, func(error)) {
	if len(participants) > maxSettled {
		return nil, nil
	}
	parts := ts.partsOf(id, participants)
	if parts == nil {
		return nil, nil
	}
	settlement := &txn.Settlement{}
	for i := range parts {
		if !parts[i].begin(settlement) {
			for _, begun := range parts[:i] {
				begun.release()
			}
			return nil, nil
		}
	}
	return settlement, func(err error) {
		for i := range parts {
			parts[i].end(err)
		}
	}
}

// partsOf divides participants by their topics, in order; nil if one of these is not loaded.
func (ts *Topics) partsOf(id txn.ID, participants []txn.Participant) []settledPart {
	parts := make([]settledPart, 0, len(participants))
	for _, p := range participants {
		t := ts.loaded(p.Topic)
		if t == nil {
			return nil
		}
		i := 0
		for i < len(parts) && parts[i].topic != t {
			i++
		}
		if i == len(parts) {
			parts = append(parts, settledPart{topic: t, id: id})
		}
		if p.Kind == txn.AckedSubscription {
			parts[i].subscriptions = append(parts[i].subscriptions, p.Subscription)
		} else {
			parts[i].messages = true
		}
	}
	return parts
}

// begin adds to settlement what the topic makes durable, or reports false. A topic that deduplicates has more to store with a
// commit than keys.
func (s *settledPart) begin(settlement *txn.Settlement) bool {
	t := s.topic
	if s.messages && t.options.Policies(t.name).Deduplication {
		return false
	}
	subscriptions, ok := t.settling.begin(s.id, s.subscriptions)
	if !ok {
		return false
	}
	settlement.Fences = append(settlement.Fences, txn.Fence{Key: t.keys.Owner(), Revision: t.fence})
	if s.messages {
		settlement.Deletes = append(settlement.Deletes, t.keys.Txn(s.id))
	}
	for _, keys := range subscriptions {
		settlement.Puts = append(settlement.Puts, keys.Committed(s.id))
	}
	return true
}

// end takes the fate of the settlement to the topic. If it is not known the topic closes, and the next load tells.
func (s *settledPart) end(err error) {
	t := s.topic
	switch {
	case errors.Is(err, txn.ErrUnknownResult):
		t.abandon(ErrPersistence)
	case err != nil:
		s.release()
		if errors.Is(err, txn.ErrFenced) { // perhaps by this topic: a stale one would end one term after the other
			t.post(func(alive bool) {
				if alive {
					t.async(t.closeIfDisowned)
				}
			})
		}
	default:
		t.post(func(alive bool) {
			if alive {
				s.show()
			}
			switch {
			case !alive:
			case t.writing != nil: // the store may be about to take a cursor as it was
				t.performs = append(t.performs, s)
			default:
				s.perform()
			}
		})
	}
}

// performSettled does what waited for a write to end.
func (t *Topic) performSettled() {
	performs := t.performs
	t.performs = nil
	for _, s := range performs {
		s.perform()
	}
}

// release ends what changed nothing.
func (s *settledPart) release() {
	s.topic.post(func(bool) { s.topic.settling.end(s.id) })
}

// show lets readers go on at once: the coordinator answers the end as soon as it has told the topic.
func (s *settledPart) show() {
	if s.messages && s.topic.buffer.Get(s.id) != nil {
		s.topic.buffer.Ended(s.id)
		s.shown = true
	}
}

// perform does in memory what is durable.
func (s *settledPart) perform() {
	t := s.topic
	t.idleSince = time.Time{}
	if s.shown {
		t.dedup.Ended(s.id)
		t.counts.committed++
	}
	for _, name := range s.subscriptions {
		if subscription := t.subscriptions[name]; subscription != nil {
			subscription.committed(s.id)
			t.foldSoon(subscription)
		}
	}
	t.settling.end(s.id)
}

// admitSettlements lets settlements begin unless the topic is about to close.
func (t *Topic) admitSettlements() {
	if !t.leaving() && len(t.draining) == 0 {
		t.settling.start()
	}
}
