package txn

import "errors"

// Change is one log record together with the changes of open keys that belong to it: both are in the same etcd transaction.
type Change struct {
	Record Record
	// Opens are participants whose open keys of transaction Record.Least are created.
	Opens []Participant
	// CloseAll deletes every open key of transaction Record.Least.
	CloseAll bool
	// Settlement, if not nil, is what participants make durable with the record.
	Settlement *Settlement
}

// Settlement is what the commit of a transaction makes durable on its participants, in the etcd transaction that holds the
// decision. A log does not know what the keys are.
type Settlement struct {
	// Fences must hold, else nothing of the etcd transaction is written.
	Fences []Fence
	// Puts are keys that are put, without a value; Deletes are keys that are deleted. Each is there once.
	Puts, Deletes []string
}

// Fence is the condition that a key has a mod revision.
type Fence struct {
	Key      string
	Revision int64
}

// Batch is what one group commit makes durable. A log may cut it into several etcd transactions between changes, in order;
// Next and DropBefore are then in force no earlier than the change behind them needs: Next is in the first transaction,
// DropBefore in the last. A change whose Opens alone exceed the limit of one transaction is cut between participants, each
// piece a record of its own.
type Batch struct {
	Changes []Change
	// Next, if not 0, is the new upper bound (exclusive) of ids that may have been used.
	Next uint64
	// DropBefore, if not 0, deletes all log entries with a smaller index.
	DropBefore uint64
}

// Appended says where a batch went.
type Appended struct {
	First, Last uint64 // log indexes, inclusive
	Bytes       int    // size of the values written
}

// LogEntry is one stored group commit as read back.
type LogEntry struct {
	Index   uint64
	Bytes   int // size of the stored value
	Records []Record
}

// Errors of a log. Both end the term: drop the state, answer nothing definite, load again in a new term.
var (
	// ErrFenced: the leader key is not this term's any more, the index exists, or a fence of a settlement does not hold. Nothing
	// was written.
	ErrFenced = errors.New("the term is over")
	// ErrUnknownResult: the write may have been applied or may be applied later; only a new term's load can tell (TC-20).
	ErrUnknownResult = errors.New("unknown whether the write was applied")
)

// CorruptError says that stored bytes cannot be understood. A load that meets one stops.
type CorruptError struct {
	Key    string
	Reason string
}

func (e *CorruptError) Error() string { return "corrupt value at " + e.Key + ": " + e.Reason }
