package fsm

import (
	"github.com/pulsar-tc/pulsar-tc/preserver"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// transaction is one live transaction.
type transaction struct {
	least      uint64
	since      uint64 // log index from which on the log holds the whole state
	started    int64  // ms since the epoch
	ttl        uint64 // ms
	bucket     *preserver.Bucket
	prev, next *transaction // live ones in order of id
	names      int          // bytes of all participant names
	waiting    int          // participants that have not applied the decision
	deadlineAt int          // place in the deadline heap, -1: not in it
	// participants in order of registration; places finds one of many.
	participants []participant
	places       map[txn.Participant]int
	waiters      []waiter
	status       txn.Status
	timedOut     bool
	refused      bool // an END of it was, in this term, because the store was full
	parked       bool // all participants are done, but the store takes no outcome
}

type participant struct {
	txn.Participant
	done     bool
	resolved bool
	attempts int
	failure  string
}

// waiter is an END_TXN that waits for the transaction's end.
type waiter struct {
	to    any
	named bool
}

// manyParticipants is from when on a map finds a participant.
const manyParticipants = 16

func (t *transaction) deadline() int64 { return t.started + int64(t.ttl) }

func (t *transaction) find(p txn.Participant) *participant {
	if t.places != nil {
		if i, ok := t.places[p]; ok {
			return &t.participants[i]
		}
		return nil
	}
	for i := range t.participants {
		if t.participants[i].Participant == p {
			return &t.participants[i]
		}
	}
	return nil
}

func (t *transaction) register(p txn.Participant) {
	if t.find(p) != nil {
		return
	}
	t.participants = append(t.participants, participant{Participant: p})
	t.names += p.Size()
	t.waiting++
	if t.places != nil {
		t.places[p] = len(t.participants) - 1
	} else if len(t.participants) > manyParticipants {
		t.places = make(map[txn.Participant]int, 2*len(t.participants))
		for i := range t.participants {
			t.places[t.participants[i].Participant] = i
		}
	}
}

// applied marks p as done and reports whether it was not before.
func (t *transaction) applied(p txn.Participant) bool {
	q := t.find(p)
	if q == nil || q.done {
		return false
	}
	q.done = true
	q.failure = ""
	t.waiting--
	return true
}

// cost is what the transaction's snapshot takes in the log, in bytes.
func (t *transaction) cost() int64 {
	key := t.bucket.Key()
	return 40 + int64(len(key.Owner.Role)+len(key.Name)) + int64(t.names) + 8*int64(len(t.participants))
}

func (t *transaction) snapshot(now int64) txn.Record {
	key := t.bucket.Key()
	r := txn.Record{
		Op: txn.OpSnapshot, Least: t.least, Status: t.status, TimedOut: t.timedOut,
		Owner: key.Owner, ClientName: key.Name,
		StartTime: t.started, TimeoutMillis: t.ttl, Time: now,
	}
	for i := range t.participants {
		r.Participants = append(r.Participants, t.participants[i].Participant)
		if t.participants[i].resolved {
			r.Done = append(r.Done, t.participants[i].Participant)
		}
	}
	return r
}

func (t *transaction) describe(tc uint64) Description {
	key := t.bucket.Key()
	d := Description{
		ID: txn.ID{Most: tc, Least: t.least}, Status: t.status, Owner: key.Owner, ClientName: key.Name,
		Opened: t.started, TTLMillis: t.ttl, TimedOut: t.timedOut,
		Participants: make([]ParticipantState, len(t.participants)),
	}
	for i := range t.participants {
		p := &t.participants[i]
		d.Participants[i] = ParticipantState{
			Participant: p.Participant, Done: p.done, Resolved: p.resolved, Failure: p.failure, Attempts: p.attempts,
		}
	}
	return d
}

// deadlines is a heap of open transactions, earliest deadline first, lower id first among equals.
type deadlines []*transaction

func (h deadlines) Len() int { return len(h) }

func (h deadlines) Less(i, j int) bool {
	a, b := h[i], h[j]
	if da, db := a.deadline(), b.deadline(); da != db {
		return da < db
	}
	return a.least < b.least
}

func (h deadlines) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].deadlineAt, h[j].deadlineAt = i, j
}

func (h *deadlines) Push(v any) {
	t := v.(*transaction)
	t.deadlineAt = len(*h)
	*h = append(*h, t)
}

func (h *deadlines) Pop() any {
	old := *h
	t := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	t.deadlineAt = -1
	return t
}
