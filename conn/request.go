package conn

import "github.com/pulsar-tc/pulsar-tc/pulsarproto"

// request is a command that waits for its answer.
type request struct {
	*session
	cost int // bytes that it is counted for until then
}

// What a request costs beside the bytes of its frame, so that MaxPendingRequestBytes bounds what it really holds.
const (
	// taskCost is what a request holds that gets a goroutine and asks the store.
	taskCost = 16 << 10
	// participantCost is what a name of few bytes takes as a participant: the full name, and the structs around it.
	participantCost = 128
)

// requestCost is what command holds, whose frame has frameSize bytes, while it waits for its answer.
func requestCost(command *pulsarproto.BaseCommand, frameSize int) int {
	switch command.GetType() {
	case pulsarproto.BaseCommand_ADD_PARTITION_TO_TXN:
		return frameSize + participantCost*len(command.GetAddPartitionToTxn().GetPartitions())
	case pulsarproto.BaseCommand_ADD_SUBSCRIPTION_TO_TXN:
		return frameSize + participantCost*len(command.GetAddSubscriptionToTxn().GetSubscription())
	case pulsarproto.BaseCommand_TC_CLIENT_CONNECT_REQUEST,
		pulsarproto.BaseCommand_END_TXN_ON_PARTITION,
		pulsarproto.BaseCommand_END_TXN_ON_SUBSCRIPTION,
		pulsarproto.BaseCommand_PARTITIONED_METADATA,
		pulsarproto.BaseCommand_LOOKUP,
		pulsarproto.BaseCommand_PRODUCER,
		pulsarproto.BaseCommand_CLOSE_PRODUCER,
		pulsarproto.BaseCommand_SUBSCRIBE,
		pulsarproto.BaseCommand_CLOSE_CONSUMER,
		pulsarproto.BaseCommand_SEEK,
		pulsarproto.BaseCommand_GET_TOPICS_OF_NAMESPACE,
		pulsarproto.BaseCommand_WATCH_TOPIC_LIST,
		pulsarproto.BaseCommand_GET_SCHEMA,
		pulsarproto.BaseCommand_GET_OR_CREATE_SCHEMA:
		return frameSize + taskCost
	}
	return frameSize
}

// costOf is what command costs on s. Another instance bounds its requests itself, in number (half of MaxPendingRequests) and bytes. All
// of them are read at once: a PING behind slow ones would lie unread, as if this process were dead.
func (s *session) costOf(command *pulsarproto.BaseCommand, frameSize int) int {
	switch {
	case s.instance:
		return frameSize
	case s.options.Authorizer != nil:
		return requestCost(command, frameSize) + taskCost
	}
	return requestCost(command, frameSize)
}

// answer queues the answer, which encode appends.
func (r request) answer(encode func([]byte) []byte) { r.out.answer(r.cost, encode) }

// done ends a request that has no answer.
func (r request) done() { r.out.done(r.cost) }

// fail answers the request with an ERROR frame.
func (r request) fail(command pulsarproto.BaseCommand_Type, requestID uint64, err error) {
	code, text := r.failure(command, err, false)
	r.answer(func(b []byte) []byte { return pulsarproto.AppendError(b, requestID, code, text) })
}

// succeed answers the request with SUCCESS.
func (r request) succeed(requestID uint64) {
	r.answer(func(b []byte) []byte { return pulsarproto.AppendSuccess(b, requestID) })
}
