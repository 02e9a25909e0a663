package peer

import (
	"errors"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// Refusal is an error that another instance answered. It is passed on as it came, code and text; to errors.Is and errors.As it is
// the error of package txn that has the code.
type Refusal struct {
	Code pulsarproto.ServerError
	Text string
	as   error
}

func (r *Refusal) Error() string { return r.Text }

// ServerError is the wire's code.
func (r *Refusal) ServerError() pulsarproto.ServerError { return r.Code }

func (r *Refusal) Unwrap() error { return r.as }

// sentinels are the errors of package txn by their codes, the reverse of conn's table.
var sentinels = map[pulsarproto.ServerError]error{
	pulsarproto.ServerError_ServiceNotReady:                txn.ErrNotReady,
	pulsarproto.ServerError_UnsupportedVersionError:        txn.ErrUnsupportedVersion,
	pulsarproto.ServerError_TooManyRequests:                txn.ErrTooManyRequests,
	pulsarproto.ServerError_InvalidTopicName:               txn.ErrInvalidTopicName,
	pulsarproto.ServerError_TransactionCoordinatorNotFound: txn.ErrCoordinatorNotFound,
	pulsarproto.ServerError_NotAllowedError:                txn.ErrNotAllowed,
	pulsarproto.ServerError_TransactionConflict:            txn.ErrConflict,
	pulsarproto.ServerError_TransactionPreserverClosed:     txn.ErrPreserverClosed,
}

// refused returns the refusal that an answer about id carries.
func refused(id txn.ID, code pulsarproto.ServerError, text string) error {
	r := &Refusal{Code: code, Text: text}
	switch code {
	case pulsarproto.ServerError_TransactionNotFound:
		r.as = &txn.NotFoundError{ID: id}
	case pulsarproto.ServerError_InvalidTxnStatus: // the states are in the text
		r.as = &txn.StatusError{ID: id}
	default:
		r.as = sentinels[code]
	}
	return r
}

// response is what the answers to transaction commands have in common.
type response interface {
	GetRequestId() uint64
	GetError() pulsarproto.ServerError
	GetMessage() string
}

// responseOf returns the body of an answer, or nil if command is none. has tells that it carries an error.
func responseOf(command *pulsarproto.BaseCommand) (r response, has bool) {
	switch command.GetType() {
	case pulsarproto.BaseCommand_NEW_TXN_RESPONSE:
		return command.GetNewTxnResponse(), command.GetNewTxnResponse().Error != nil
	case pulsarproto.BaseCommand_ADD_PARTITION_TO_TXN_RESPONSE:
		return command.GetAddPartitionToTxnResponse(), command.GetAddPartitionToTxnResponse().Error != nil
	case pulsarproto.BaseCommand_ADD_SUBSCRIPTION_TO_TXN_RESPONSE:
		return command.GetAddSubscriptionToTxnResponse(), command.GetAddSubscriptionToTxnResponse().Error != nil
	case pulsarproto.BaseCommand_END_TXN_RESPONSE:
		return command.GetEndTxnResponse(), command.GetEndTxnResponse().Error != nil
	case pulsarproto.BaseCommand_END_TXN_ON_PARTITION_RESPONSE:
		return command.GetEndTxnOnPartitionResponse(), command.GetEndTxnOnPartitionResponse().Error != nil
	case pulsarproto.BaseCommand_END_TXN_ON_SUBSCRIPTION_RESPONSE:
		return command.GetEndTxnOnSubscriptionResponse(), command.GetEndTxnOnSubscriptionResponse().Error != nil
	case pulsarproto.BaseCommand_ERROR:
		return command.GetError(), true
	}
	return nil, false
}

// answered returns the request that command answers.
func answered(command *pulsarproto.BaseCommand) (requestID uint64, ok bool) {
	r, _ := responseOf(command)
	if r == nil {
		return 0, false
	}
	return r.GetRequestId(), true
}

var errForeignAnswer = errors.New("it answered with another command's response")

// outcome is the error of an answer that has to be of type want.
func outcome(id txn.ID, want pulsarproto.BaseCommand_Type, answer *pulsarproto.BaseCommand) error {
	r, failed := responseOf(answer)
	if failed {
		return refused(id, r.GetError(), r.GetMessage())
	}
	if answer.GetType() != want {
		return errForeignAnswer
	}
	return nil
}
