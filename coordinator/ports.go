package coordinator

import (
	"context"

	"github.com/pulsar-tc/pulsar-tc/coordinator/fsm"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// Leader decides who leads a coordinator.
type Leader interface {
	// Win waits until this process leads tc, in a term that no earlier write can pass the fence of: the leader key is
	// created where none was. It returns an error if ctx is done, and if the store refuses for good or
	// for so long that somebody should know.
	Win(ctx context.Context, tc uint64) (Term, error)
	// Expected reports whether this process is to lead tc, so that requests wait until it does. It is a hint, and does not
	// block.
	Expected(tc uint64) bool
}

// Term is one period of leadership.
type Term interface {
	// Number grows from term to term of one coordinator. It is the create revision of the leader key.
	Number() int64
	// Lost is closed when the lease or the leader key is known to be gone, or the key to be overwritten. It is a hint that comes
	// late; only the fence of an append proves.
	Lost() <-chan struct{}
	// Elsewhere is closed when another process is to lead, and the term is to be handed over. It goes on until then.
	Elsewhere() <-chan struct{}
	// Resign gives the term up: deletes this term's leader key and nothing else.
	Resign(ctx context.Context) error
}

// Log is the log of one coordinator within one term. One goroutine uses it, except for ReadPrefix, which may run beside Append.
type Log interface {
	// Load reads the whole log at one linearizable revision, in index order. It must run after the term was won. visit must
	// not keep entry.Records. It returns the id bound (tc/<id>/next; 0 if there is none yet). Errors: *txn.CorruptError; an
	// error of visit, unchanged; anything else is worth another try.
	Load(ctx context.Context, visit func(entry txn.LogEntry) error) (next uint64, err error)
	// Append makes batch durable, under the fence of this term and right behind the last entry. Errors: txn.ErrFenced,
	// txn.ErrUnknownResult; every other error means nothing was written and ends the term as well.
	Append(ctx context.Context, batch txn.Batch) (txn.Appended, error)
	// Prove confirms by a linearizable read that the term still holds. Errors as Append.
	Prove(ctx context.Context) error
	// ReadPrefix reads entries from the first one on until maxBytes of values are read (at least one entry).
	ReadPrefix(ctx context.Context, maxBytes int) ([]txn.LogEntry, error)
}

// Participants ends transactions where they wrote.
type Participants interface {
	// End tells participant p to end transaction id. done is called exactly once, from any goroutine, also when ctx is
	// done. A nil error means that the decision is applied there durably, or that p is gone for good and needs nothing.
	// lowWaterMark is two's complement (TC-17): every transaction of this coordinator up to it has ended.
	End(ctx context.Context, id txn.ID, p txn.Participant, action txn.Action, lowWaterMark uint64, done func(error))
	// Settle prepares that the commit of id, which is open, is made durable on all of its participants by the etcd transaction
	// that decides it. It does not wait. settled must be called exactly once: with nil when the settlement is durable, before
	// anybody hears of that, else with the error of the append. Until then the participants let nothing of id change.
	// A nil settlement: not possible here and now, the commit has to be driven.
	Settle(id txn.ID, participants []txn.Participant) (settlement *txn.Settlement, settled func(error))
}

// Relay asks the process that is to lead a coordinator which this one has handed over. No method blocks. done is called
// exactly once, also when ctx ends; an answer that was lost is txn.ErrCoordinatorNotFound.
type Relay interface {
	NewTxn(ctx context.Context, tc uint64, cmd *fsm.NewTxn, done func(txn.ID, error))
	AddParticipants(ctx context.Context, tc uint64, cmd *fsm.AddParticipants, done func(error))
	EndTxn(ctx context.Context, tc uint64, cmd *fsm.EndTxn, done func(error))
}
