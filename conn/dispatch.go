package conn

import (
	"fmt"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

// dispatch hands a command, whose frame has size bytes, to the method that serves it. An error ends the connection: *inputError, errStopped.
func (s *session) dispatch(command *pulsarproto.BaseCommand, frame pulsarproto.Frame, size int) error {
	kind := command.GetType()
	switch kind {
	case pulsarproto.BaseCommand_CONNECT:
		return s.connect(command.GetConnect())
	case pulsarproto.BaseCommand_PING: // the one command that Pulsar serves before CONNECT, too
		s.out.queue(pulsarproto.AppendPong)
		return nil
	}
	if !s.connected.Load() {
		return &inputError{BadBeforeConnect, fmt.Errorf("%s before CONNECT", kind)}
	}
	if s.credentials.expired() {
		s.finish(ClosedExpiredLogin)
		return errStopped
	}
	switch kind {
	case pulsarproto.BaseCommand_PONG:
		return nil
	case pulsarproto.BaseCommand_AUTH_RESPONSE:
		return s.authResponse(command.GetAuthResponse())
	case pulsarproto.BaseCommand_SEND:
		return s.send(command.GetSend(), frame.Payload, size)
	case pulsarproto.BaseCommand_FLOW:
		s.flow(command.GetFlow())
		return nil
	case pulsarproto.BaseCommand_REDELIVER_UNACKNOWLEDGED_MESSAGES:
		s.redeliver(command.GetRedeliverUnacknowledgedMessages())
		return nil
	}
	if !isRequest(kind) {
		return misplaced(kind)
	}
	cost := s.costOf(command, size)
	if !s.out.accept(cost, s.pause) {
		return errStopped
	}
	request{s, cost}.serve(command)
	return nil
}

// serve answers a request that accept let in, or sees to it that it is answered.
func (r request) serve(command *pulsarproto.BaseCommand) {
	switch command.GetType() {
	case pulsarproto.BaseCommand_ACK:
		r.ack(command.GetAck())
	case pulsarproto.BaseCommand_NEW_TXN:
		r.newTxn(command.GetNewTxn(), pulsarproto.Scalable(command))
	case pulsarproto.BaseCommand_ADD_PARTITION_TO_TXN:
		r.addPartitionToTxn(command.GetAddPartitionToTxn())
	case pulsarproto.BaseCommand_ADD_SUBSCRIPTION_TO_TXN:
		r.addSubscriptionToTxn(command.GetAddSubscriptionToTxn())
	case pulsarproto.BaseCommand_END_TXN:
		r.endTxn(command.GetEndTxn(), pulsarproto.Scalable(command))
	case pulsarproto.BaseCommand_TC_CLIENT_CONNECT_REQUEST:
		r.tcClientConnect(command.GetTcClientConnectRequest())
	case pulsarproto.BaseCommand_END_TXN_ON_PARTITION:
		r.endTxnOnPartition(command.GetEndTxnOnPartition())
	case pulsarproto.BaseCommand_END_TXN_ON_SUBSCRIPTION:
		r.endTxnOnSubscription(command.GetEndTxnOnSubscription())
	case pulsarproto.BaseCommand_PARTITIONED_METADATA:
		r.partitionedMetadata(command.GetPartitionMetadata())
	case pulsarproto.BaseCommand_LOOKUP:
		r.lookupTopic(command.GetLookupTopic())
	case pulsarproto.BaseCommand_PRODUCER:
		r.produce(command.GetProducer())
	case pulsarproto.BaseCommand_CLOSE_PRODUCER:
		r.closeProducer(command.GetCloseProducer())
	case pulsarproto.BaseCommand_SUBSCRIBE:
		r.subscribe(command.GetSubscribe())
	case pulsarproto.BaseCommand_CLOSE_CONSUMER:
		r.closeConsumer(command.GetCloseConsumer())
	case pulsarproto.BaseCommand_UNSUBSCRIBE:
		r.unsubscribe(command.GetUnsubscribe())
	case pulsarproto.BaseCommand_SEEK:
		r.seek(command.GetSeek())
	case pulsarproto.BaseCommand_GET_LAST_MESSAGE_ID:
		r.getLastMessageID(command.GetGetLastMessageId())
	case pulsarproto.BaseCommand_CONSUMER_STATS:
		r.consumerStats(command.GetConsumerStats())
	case pulsarproto.BaseCommand_GET_TOPICS_OF_NAMESPACE:
		r.getTopicsOfNamespace(command.GetGetTopicsOfNamespace())
	case pulsarproto.BaseCommand_WATCH_TOPIC_LIST:
		r.watchTopicList(command.GetWatchTopicList())
	case pulsarproto.BaseCommand_WATCH_TOPIC_LIST_CLOSE:
		r.watchTopicListClose(command.GetWatchTopicListClose())
	case pulsarproto.BaseCommand_GET_SCHEMA:
		r.getSchema(command.GetGetSchema())
	case pulsarproto.BaseCommand_GET_OR_CREATE_SCHEMA:
		r.getOrCreateSchema(command.GetGetOrCreateSchema())
	default:
		r.unsupported(command)
	}
}

// isRequest reports whether kind is a client's command that carries a request id and waits for an answer. ACK is one of
// them, although its request id is optional.
func isRequest(kind pulsarproto.BaseCommand_Type) bool {
	switch kind {
	case pulsarproto.BaseCommand_ACK,
		pulsarproto.BaseCommand_NEW_TXN,
		pulsarproto.BaseCommand_ADD_PARTITION_TO_TXN,
		pulsarproto.BaseCommand_ADD_SUBSCRIPTION_TO_TXN,
		pulsarproto.BaseCommand_END_TXN,
		pulsarproto.BaseCommand_TC_CLIENT_CONNECT_REQUEST,
		pulsarproto.BaseCommand_END_TXN_ON_PARTITION,
		pulsarproto.BaseCommand_END_TXN_ON_SUBSCRIPTION,
		pulsarproto.BaseCommand_PARTITIONED_METADATA,
		pulsarproto.BaseCommand_LOOKUP,
		pulsarproto.BaseCommand_PRODUCER,
		pulsarproto.BaseCommand_CLOSE_PRODUCER,
		pulsarproto.BaseCommand_SUBSCRIBE,
		pulsarproto.BaseCommand_CLOSE_CONSUMER,
		pulsarproto.BaseCommand_UNSUBSCRIBE,
		pulsarproto.BaseCommand_SEEK,
		pulsarproto.BaseCommand_GET_LAST_MESSAGE_ID,
		pulsarproto.BaseCommand_GET_TOPICS_OF_NAMESPACE,
		pulsarproto.BaseCommand_GET_OR_CREATE_SCHEMA,
		pulsarproto.BaseCommand_GET_SCHEMA,
		pulsarproto.BaseCommand_CONSUMER_STATS,
		pulsarproto.BaseCommand_WATCH_TOPIC_LIST,
		pulsarproto.BaseCommand_WATCH_TOPIC_LIST_CLOSE,
		pulsarproto.BaseCommand_SCALABLE_TOPIC_SUBSCRIBE:
		return true
	}
	return false
}

// unsupported answers a request that this server knows and does not serve.
func (r request) unsupported(command *pulsarproto.BaseCommand) {
	kind := command.GetType()
	r.fail(kind, unsupportedRequestID(command), cnx.Refuse(pulsarproto.ServerError_NotAllowedError,
		fmt.Sprintf("%s is not supported by this server", kind)))
}

func unsupportedRequestID(command *pulsarproto.BaseCommand) uint64 {
	switch command.GetType() {
	case pulsarproto.BaseCommand_SCALABLE_TOPIC_SUBSCRIBE:
		return command.GetScalableTopicSubscribe().GetRequestId()
	}
	return 0
}

// misplaced is the fault of a known command that a client must not send to this server: an answer, or a command without
// a request id that belongs to a feature that CONNECTED did not announce. Pulsar 4.0.7 closes on both.
func misplaced(kind pulsarproto.BaseCommand_Type) error {
	return &inputError{BadResponse, fmt.Errorf("%s is not a command that a client may send here", kind)}
}
