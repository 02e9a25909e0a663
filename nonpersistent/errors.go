package nonpersistent

import "github.com/pulsar-tc/pulsar-tc/pulsarproto"

// Error is a refusal with the code that the client is given.
type Error struct {
	Code pulsarproto.ServerError
	Text string
}

func (e *Error) Error() string { return e.Text }

// ServerError is the wire's code of the error.
func (e *Error) ServerError() pulsarproto.ServerError { return e.Code }

const topicNotFound = pulsarproto.ServerError_TopicNotFound

var (
	errProducerBusy = &Error{pulsarproto.ServerError_ProducerBusy, "Producer with the same name is already connected"}
	errFenced       = &Error{pulsarproto.ServerError_ProducerFenced, "Topic has an exclusive producer"}
	errConsumerBusy = &Error{pulsarproto.ServerError_ConsumerBusy, "Exclusive consumer is already connected"}
	errOtherType    = &Error{pulsarproto.ServerError_ConsumerBusy, "Subscription is of different type"}
	errNoName       = &Error{pulsarproto.ServerError_ProducerBusy, "Subscription name is empty or reserved"}
	errConflict     = &Error{pulsarproto.ServerError_TransactionConflict, "Transactions are not supported on non-persistent topics"}
	errGone         = &Error{pulsarproto.ServerError_MetadataError, "Consumer not found"}
	errSeek         = &Error{pulsarproto.ServerError_UnknownError, "Seek is not supported on non-persistent topics"}
)
