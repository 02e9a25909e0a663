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

// Span is when an operation was asked and answered, since the history began.
type Span struct{ Call, Return time.Duration }

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

// Use is an operation that succeeds only in an open transaction: ADD, SEND, ACK. Refused says that the coordinator itself
// refused it because the transaction is not open. Uses without a definite answer need not be recorded.
type Use struct {
	Span
	ID     txn.ID
	Name   string
	Answer Answer
}

// Look is an answer that shows the status of a transaction and changes nothing.
type Look struct {
	Span
	ID     txn.ID
	Status txn.Status
	// Known is false if the answer was that nobody knows the transaction.
	Known bool
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
	Answer                   Answer
}
