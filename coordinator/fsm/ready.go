package fsm

import (
	"github.com/pulsar-tc/pulsar-tc/preserver"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// Ready is the work that steps leave: a batch to make durable, and effects that may be performed only behind it. It belongs to
// the machine and is valid until the next Take.
type Ready struct {
	Batch txn.Batch
	// NeedsProof says that an effect rests on the term. An empty batch does not prove it.
	NeedsProof bool
	after      []Effect
	// Clean asks the driver to read the oldest log entries and step them as Cleaned.
	Clean bool
}

// Empty reports whether there is nothing to do.
func (r *Ready) Empty() bool {
	return !r.Writes() && len(r.after) == 0 && !r.Clean
}

// Writes reports whether the batch has to be appended.
func (r *Ready) Writes() bool {
	return len(r.Batch.Changes) > 0 || r.Batch.Next != 0 || r.Batch.DropBefore != 0
}

// Effects has durable append the batch, or prove the term if the batch is empty, unless no effect rests on either, and returns
// the effects if that succeeds. There is no other way to them: what is answered, and what participants are told, is durable.
func (r *Ready) Effects(durable func() error) ([]Effect, error) {
	if r.Writes() || r.NeedsProof {
		if err := durable(); err != nil {
			return nil, err
		}
	}
	return r.after, nil
}

// Waiting returns the To of everybody whom the effects answer.
func (r *Ready) Waiting() []any {
	var all []any
	for i := range r.after {
		if r.after[i].Kind == Reply {
			all = append(all, r.after[i].To)
		}
	}
	return all
}

// Decision is what a participant is to be told. Only a machine makes one, as a part of an effect, so that whoever has one got it
// behind the record that decides.
type Decision struct {
	id           txn.ID
	participant  txn.Participant
	action       txn.Action
	lowWaterMark uint64
}

// ID is that of the transaction.
func (d *Decision) ID() txn.ID { return d.id }

// Participant is who is to be told.
func (d *Decision) Participant() txn.Participant { return d.participant }

// Action is what was decided.
func (d *Decision) Action() txn.Action { return d.action }

// LowWaterMark is the mark at the time of the decision, or of the load that found it; see Machine.LowWaterMark.
func (d *Decision) LowWaterMark() uint64 { return d.lowWaterMark }

// EffectKind tells what an effect is.
type EffectKind uint8

// The kinds of effects.
const (
	// Reply answers a command: To, and Err or, on success, ID, Descriptions, Retained.
	Reply EffectKind = iota
	// Drive tells a participant of a decision: Decision.
	Drive
	// Ended reports that a transaction ended: ID, Action, Millis since it was opened, TimedOut.
	Ended
	// Expired reports that a deadline decided a transaction: ID.
	Expired
	// Contrary reports that END_TXN was refused because the opposite is decided: ID, Action asked for.
	Contrary
	// Resolved reports that an operator declared Participant of ID done; Who.
	Resolved
)

// Effect is one thing to do after the batch is durable.
type Effect struct {
	Kind         EffectKind
	To           any
	Err          error
	ID           txn.ID
	Decision     Decision
	Participant  txn.Participant
	Action       txn.Action
	Millis       int64
	TimedOut     bool
	Who          string
	Descriptions []Description
	Retained     *Retained
}

// Retained is what outcomes are kept of client names.
type Retained struct {
	Names []preserver.Newest
	Next  int // From of the next ListNames; -1: these were the last
	Shown preserver.Shown
}

// Description is what an operator sees of one transaction.
type Description struct {
	ID           txn.ID
	Status       txn.Status
	Owner        txn.Owner
	ClientName   string
	Opened       int64 // ms since the epoch
	TTLMillis    uint64
	Ended        int64 // ms since the epoch; 0: live
	TimedOut     bool
	Held         bool               // it ends when there is space: the store is full, and its end is due or was asked for
	Participants []ParticipantState // live ones only
}

// ParticipantState is what a transaction waits for.
type ParticipantState struct {
	Participant txn.Participant
	Done        bool   // decision applied
	Resolved    bool   // by an operator's word
	Failure     string // why the last attempt failed; empty: none did
	Attempts    int    // failed ones in this term
}
