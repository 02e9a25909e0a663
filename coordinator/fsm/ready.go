package fsm

import (
	"github.com/pulsar-tc/pulsar-tc/preserver"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// Ready is the work that steps leave. After may be performed only once Batch is durable in this term, or, if Batch is empty
// and NeedsProof is set, once the term is proved. It belongs to the machine and is valid until the next Take.
type Ready struct {
	Batch      txn.Batch
	After      []Effect
	NeedsProof bool
	// Clean asks the driver to read the oldest log entries and step them as Cleaned.
	Clean bool
}

// Empty reports whether there is nothing to do.
func (r *Ready) Empty() bool {
	return !r.Writes() && len(r.After) == 0 && !r.Clean
}

// Writes reports whether the batch has to be appended.
func (r *Ready) Writes() bool {
	return len(r.Batch.Changes) > 0 || r.Batch.Next != 0 || r.Batch.DropBefore != 0
}

// EffectKind tells what an effect is.
type EffectKind uint8

// The kinds of effects.
const (
	// Reply answers a command: To, and Err or, on success, ID, Descriptions, Retained.
	Reply EffectKind = iota
	// Drive tells a participant of a decision: ID, Participant, Action, LowWaterMark.
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
	Participant  txn.Participant
	Action       txn.Action
	LowWaterMark uint64
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
