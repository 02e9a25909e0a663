package fsm

import (
	"github.com/pulsar-tc/pulsar-tc/preserver"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// Caller is who asks.
type Caller struct {
	Owner txn.Owner // the zero Owner: authentication is off
	Super bool      // may act on everybody's transactions
}

// Command is one of the structs of this file. To is an opaque value that the answer carries back.
type Command interface{ command() }

// NewTxn opens a transaction. Answered with its id.
type NewTxn struct {
	To         any
	Owner      txn.Owner
	TTLMillis  uint64
	ClientName string
	Named      bool // the request carried a client name, even an empty one
}

// AddParticipants registers participants, all or none.
type AddParticipants struct {
	To           any
	Caller       Caller
	Least        uint64
	Participants []txn.Participant // the machine keeps the strings
}

// EndTxn decides a transaction or asks how it was decided.
type EndTxn struct {
	To     any
	Caller Caller
	Least  uint64
	Action txn.Action
	Named  bool // the request carried a client name, so that it may be answered with ErrPreserverClosed (P-3)
	// Settlement, if not nil, makes the commit durable on all participants that Machine.Settles returned just before.
	Settlement *txn.Settlement
}

// Applied says that a participant has applied the decision, or needs nothing.
type Applied struct {
	Least       uint64
	Participant txn.Participant
}

// Failed says why a participant has not applied the decision yet. The driver goes on trying.
type Failed struct {
	Least       uint64
	Participant txn.Participant
	Reason      string
}

// Resolve declares a participant done by an operator's word (O-4).
type Resolve struct {
	To          any
	Least       uint64
	Participant txn.Participant
	Who         string
}

// Tick lets recovered decisions, deadlines and retention act.
type Tick struct{ Expire bool }

// Describe asks for one transaction, live or ended.
type Describe struct {
	To    any
	Least uint64
}

// List asks for live transactions.
type List struct {
	To     any
	Filter func(*Description) bool // pure; nil takes all
	Limit  int                     // at most so many; 0: all
}

// ListNames asks for client names that have outcomes, from bucket From of preserver.Index.ListNames on.
type ListNames struct {
	To   any
	From int
}

// ShowName asks for the newest outcomes of a client name, at most Limit.
type ShowName struct {
	To    any
	Key   preserver.Key
	Limit int
}

// Cleaned brings the oldest entries of the log, read because Ready.Clean asked for it.
type Cleaned struct{ Prefix []txn.LogEntry }

// Space tells how much room the store has.
type Space struct{ Level SpaceLevel }

// SpaceLevel says what the store still takes.
type SpaceLevel uint8

// The levels, each including what the one before refuses.
const (
	SpaceNormal    SpaceLevel = iota
	SpaceRefuseNew            // NEW and ADD are refused, END goes on from the reserve
	SpaceRefuseEnd            // nothing can be stored
)

func (*NewTxn) command()          {}
func (*AddParticipants) command() {}
func (*EndTxn) command()          {}
func (*Applied) command()         {}
func (*Failed) command()          {}
func (*Resolve) command()         {}
func (*Tick) command()            {}
func (*Describe) command()        {}
func (*List) command()            {}
func (*ListNames) command()       {}
func (*ShowName) command()        {}
func (*Cleaned) command()         {}
func (*Space) command()           {}
