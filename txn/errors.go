package txn

import (
	"errors"
	"fmt"
)

// Errors that a client request can end in. conn turns each into its ServerError; wrap them with the reason.
var (
	// ErrCoordinatorNotFound: the coordinator is not led here, or its term ended while the request waited. Nothing definite
	// is known of the request. Code 20 TransactionCoordinatorNotFound; the client looks up again and repeats.
	ErrCoordinatorNotFound = errors.New("transaction coordinator not found")
	// ErrNotReady: the coordinator or participant is still loading. Code 6 ServiceNotReady; safe to repeat.
	ErrNotReady = errors.New("service not ready")
	// ErrTooManyRequests: a limit is reached. Code 14 TooManyRequests; safe to repeat later.
	ErrTooManyRequests = errors.New("too many requests")
	// ErrNotAllowed: the request itself is wrong and changed nothing. Code 22 NotAllowedError; do not repeat.
	ErrNotAllowed = errors.New("not allowed")
	// ErrInvalidTopicName: a name in the request is not one a topic can have. Code 17 InvalidTopicName; do not repeat.
	ErrInvalidTopicName = errors.New("invalid topic name")
	// ErrConflict: the acknowledgement collides with another one. Code 23 TransactionConflict.
	ErrConflict = errors.New("transaction conflict")
	// ErrPreserverClosed: decided, participants done, but the outcome cannot be stored now. Code 26, only to requests that
	// carried a client name (P-3, P-29); 6 ServiceNotReady to all others.
	ErrPreserverClosed = errors.New("transaction preserver closed")
	// ErrUnsupportedVersion: the request needs a coordinator this server is not. Code 10 UnsupportedVersionError.
	ErrUnsupportedVersion = errors.New("unsupported version")
)

// NotFoundError says that no live transaction and no kept outcome has this id, or that the caller may not know of it: the
// text is the same, so that ids cannot be probed (TC-26). Code 24 TransactionNotFound.
type NotFoundError struct{ ID ID }

func (e *NotFoundError) Error() string {
	return fmt.Sprintf("The transaction with this txdID `%s`not found ", e.ID)
}

// StatusError says that the transaction is in a state that the request does not fit. Code 21 InvalidTxnStatus.
type StatusError struct {
	ID   ID
	Want Status // what the request needed
	Got  Status // what the transaction is, durably
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("Expect Txn `%s` to be in %s status but it is in %s status", e.ID, e.Want, e.Got)
}
