package history

import (
	"math"
	"time"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

// Answer is how an operation ended.
type Answer uint8

const (
	Unknown  Answer = iota // nothing definite: it may take effect at any time after its call, or never
	Done                   // success, or a receipt
	Contrary               // 21: the opposite has been decided
	NotFound               // 24: nobody knows the transaction
	Refused                // any other definite refusal: without effect
)

func (a Answer) String() string {
	return [...]string{"unknown", "success", "contrary", "not found", "refused"}[a]
}

// Never is the return of an operation that nobody waits for any more.
const Never = time.Duration(math.MaxInt64)

// Span is when an operation was asked and answered, since the history began, and who asked.
type Span struct {
	Client       string // for people; empty: nobody in particular
	Call, Return time.Duration
}

// Open is a NEW_TXN that was answered with an id.
type Open struct {
	Span
	ID  txn.ID
	TTL time.Duration
	// Kept is for how long the outcome must be known after NEW was asked, at least.
	Kept time.Duration
}

// End is an END_TXN.
type End struct {
	Span
	ID     txn.ID
	Action txn.Action
	Answer Answer
}

// Use is an operation that succeeds only in an open transaction: ADD, SEND, ACK. Contrary says that the transaction has been
// decided, NotFound that nobody knows it, Refused one of the two. Uses without a definite answer need not be recorded.
type Use struct {
	Span
	ID   txn.ID
	Name string
	// Participant is the place that a successful use registered, whose Decisions are recorded; empty: they are not.
	Participant string
	Answer      Answer
}

// Look is an answer that shows the status of a transaction and changes nothing.
type Look struct {
	Span
	ID     txn.ID
	Status txn.Status
	// Known is false if the answer was that nobody knows the transaction.
	Known bool
}

// Decision is a call that told a participant how a transaction ended. Its call is when the participant was told, its return
// when it had applied the decision durably, if it did: Done.
type Decision struct {
	Span
	ID          txn.ID
	Participant string
	Action      txn.Action
	// LowWaterMark says that every transaction of the coordinator up to it has ended, two's complement.
	LowWaterMark uint64
	Answer       Answer
}

// Delivery is a message that somebody got while the history ran.
type Delivery struct {
	Client, Topic, Key string
	At                 time.Duration
}

// Message is one that was sent. Its key is used once in its topic.
type Message struct {
	Topic, Key string
	Txn        txn.ID
	InTxn      bool
	Answer     Answer
	// Repeatable says that the client library may have sent it again, so that it may be there more than once.
	Repeatable bool
}

// Ack is an acknowledgement of one message on one subscription.
type Ack struct {
	Topic, Subscription, Key string
	Txn                      txn.ID
	InTxn                    bool
	Cumulative               bool // of the message and all before: several transactions may cover it
	Answer                   Answer

	recorded time.Duration // since the history began
}
