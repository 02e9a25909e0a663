package txn

import "strconv"

// Status is the state of a transaction. The numbers are those of Pulsar's log and wire.
//
// Source: PulsarTransactionMetadata.proto, TxnStatus.
type Status uint8

// The five states. Committed and Aborted are final.
const (
	Open       Status = 0
	Committing Status = 1
	Committed  Status = 2
	Aborting   Status = 3
	Aborted    Status = 4
)

// String returns Pulsar's name of the state.
func (s Status) String() string {
	switch s {
	case Open:
		return "OPEN"
	case Committing:
		return "COMMITTING"
	case Committed:
		return "COMMITTED"
	case Aborting:
		return "ABORTING"
	case Aborted:
		return "ABORTED"
	}
	return "UNKNOWN(" + strconv.Itoa(int(s)) + ")"
}

// Final reports whether no transition leaves s.
func (s Status) Final() bool { return s == Committed || s == Aborted }

// Decided returns the action that s carries out, and false for Open.
func (s Status) Decided() (Action, bool) {
	switch s {
	case Committing, Committed:
		return Commit, true
	case Aborting, Aborted:
		return Abort, true
	}
	return 0, false
}

// Action is what END_TXN asks for. The numbers are those of the wire.
//
// Source: PulsarApi.proto, TxnAction.
type Action uint8

// The two actions.
const (
	Commit Action = 0
	Abort  Action = 1
)

// String returns the wire's name of the action.
func (a Action) String() string {
	if a == Commit {
		return "COMMIT"
	}
	return "ABORT"
}

// Deciding returns the state that a puts an open transaction into.
func (a Action) Deciding() Status {
	if a == Commit {
		return Committing
	}
	return Aborting
}

// Decided returns the final state that a leads to.
func (a Action) Decided() Status {
	if a == Commit {
		return Committed
	}
	return Aborted
}
