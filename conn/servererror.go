package conn

import (
	"context"
	"errors"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/schema"
	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// serverErrors says which code an error is answered with. The first match counts. A *cnx.Refusal carries
// its code itself.
//
// Source: BrokerServiceException.getClientErrorCode; TransactionCoordinatorException and TransactionConflictException for the errors of package txn.
var serverErrors = []struct {
	matches func(error) bool
	code    pulsarproto.ServerError
}{
	{is(txn.ErrPreserverClosed), pulsarproto.ServerError_TransactionPreserverClosed},
	{as[*txn.NotFoundError], pulsarproto.ServerError_TransactionNotFound},
	{as[*txn.StatusError], pulsarproto.ServerError_InvalidTxnStatus},
	{is(txn.ErrCoordinatorNotFound), pulsarproto.ServerError_TransactionCoordinatorNotFound},
	{is(txn.ErrNotReady), pulsarproto.ServerError_ServiceNotReady},
	{is(txn.ErrTooManyRequests), pulsarproto.ServerError_TooManyRequests},
	{is(txn.ErrNotAllowed), pulsarproto.ServerError_NotAllowedError},
	{is(txn.ErrInvalidTopicName), pulsarproto.ServerError_InvalidTopicName},
	{as[*topicname.Error], pulsarproto.ServerError_InvalidTopicName},
	{is(txn.ErrConflict), pulsarproto.ServerError_TransactionConflict},
	{is(txn.ErrUnsupportedVersion), pulsarproto.ServerError_UnsupportedVersionError},
	{as[*schema.IncompatibleError], pulsarproto.ServerError_IncompatibleSchema},
	{as[*schema.InvalidError], pulsarproto.ServerError_IncompatibleSchema},
	{is(context.DeadlineExceeded), pulsarproto.ServerError_ServiceNotReady},
	{is(context.Canceled), pulsarproto.ServerError_ServiceNotReady},
}

func is(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

func as[T error](err error) bool {
	var target T
	return errors.As(err, &target)
}

// serverError turns err into the code and text that a client gets. The text is never empty: the Go client takes an
// ACK_RESPONSE with a code and no text for success. named tells that the request carried a client_name: others never get
// TransactionPreserverClosed, which released Java clients would read as success (P-3).
func serverError(err error, named bool) (pulsarproto.ServerError, string) {
	code := errorCode(err)
	if code == pulsarproto.ServerError_TransactionPreserverClosed && !named {
		code = pulsarproto.ServerError_ServiceNotReady
	}
	text := err.Error()
	if text == "" {
		text = code.String()
	}
	return code, text
}

func errorCode(err error) pulsarproto.ServerError {
	var coded interface {
		error
		ServerError() pulsarproto.ServerError
	}
	if errors.As(err, &coded) {
		return coded.ServerError()
	}
	for _, row := range serverErrors {
		if row.matches(err) {
			return row.code
		}
	}
	return pulsarproto.ServerError_UnknownError
}

// Refusals that more than one command gives.
var (
	errTransactionsOff  = cnx.Refuse(pulsarproto.ServerError_NotAllowedError, "Transactions are not enabled.")
	errConsumerNotFound = cnx.Refuse(pulsarproto.ServerError_MetadataError, "Consumer not found")
	errScalable         = cnx.Refuse(pulsarproto.ServerError_UnsupportedVersionError,
		"scalable transactions are not supported by this server")
	errTxnAction = cnx.Refuse(pulsarproto.ServerError_NotAllowedError, "txn_action must be COMMIT or ABORT")
)
