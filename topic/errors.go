package topic

import (
	"errors"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// Errors of this package, to be compared with errors.Is. The others that calls end in are package txn's and topicname's.
var (
	// ErrTopicNotFound: no such topic, and it may not be created.
	ErrTopicNotFound = cnx.Refuse(pulsarproto.ServerError_TopicNotFound, "Topic not found")
	// ErrTopicExists: the name is taken, by a topic or by a partitioned topic.
	ErrTopicExists = cnx.Refuse(pulsarproto.ServerError_NotAllowedError, "This topic already exists")
	// ErrTopicBusy: producers or consumers are connected.
	// Source: BrokerServiceException.TopicBusyException.
	ErrTopicBusy = cnx.Refuse(pulsarproto.ServerError_NotAllowedError, "Topic has active producers or subscriptions")
	// ErrTopicTerminated: the topic takes no more messages.
	ErrTopicTerminated = cnx.Refuse(pulsarproto.ServerError_TopicTerminatedError, "Topic was already terminated")
	// ErrQuotaExceeded: the backlog is too large or too old, and producers wait until it is not.
	ErrQuotaExceeded = cnx.Refuse(pulsarproto.ServerError_ProducerBlockedQuotaExceededError, "Cannot create producer on topic with backlog quota exceeded")
	// ErrQuotaException is the same where producers are to fail what they send.
	ErrQuotaException = cnx.Refuse(pulsarproto.ServerError_ProducerBlockedQuotaExceededException, "Cannot create producer on topic with backlog quota exceeded")
	// ErrSubscriptionExists: the topic has a subscription of the name.
	ErrSubscriptionExists = cnx.Refuse(pulsarproto.ServerError_NotAllowedError, "Subscription already exists for topic")
	// ErrSubscriptionBusy: the subscription has consumers.
	ErrSubscriptionBusy = cnx.Refuse(pulsarproto.ServerError_ConsumerBusy, "Subscription has active connected consumers")
	// ErrMessageNotFound: no such message, or nobody may read it yet.
	ErrMessageNotFound = cnx.Refuse(pulsarproto.ServerError_MetadataError, "Message not found")
	// ErrNamespaceNotFound has the code of a missing topic, as in Pulsar.
	ErrNamespaceNotFound = cnx.Refuse(pulsarproto.ServerError_TopicNotFound, "Namespace not found")
	// ErrSubscriptionNotFound: no such subscription, and it may not be created.
	ErrSubscriptionNotFound = cnx.Refuse(pulsarproto.ServerError_SubscriptionNotFound, "Subscription not found")
	// ErrConsumerBusy: the subscription has consumers that do not admit this one.
	ErrConsumerBusy = cnx.Refuse(pulsarproto.ServerError_ConsumerBusy, "Exclusive consumer is already connected")
	// ErrTopicFull and ErrSubscriptionFull: the policies allow no more consumers. Source: BrokerServiceException.ConsumerBusyException.
	ErrTopicFull        = cnx.Refuse(pulsarproto.ServerError_ConsumerBusy, "Topic reached max consumers limit")
	ErrSubscriptionFull = cnx.Refuse(pulsarproto.ServerError_ConsumerBusy, "Subscription reached max consumers limit")
	// ErrProducerBusy: a live producer has the name.
	ErrProducerBusy = cnx.Refuse(pulsarproto.ServerError_ProducerBusy, "Producer with the same name is already connected")
	// ErrSubscriptionName: the name of a subscription is empty or reserved. Pulsar answers it with the code of ProducerBusy.
	// Source: BrokerServiceException.NamingException.
	ErrSubscriptionName = cnx.Refuse(pulsarproto.ServerError_ProducerBusy, "Subscription name is empty or reserved")
	// ErrProducerFenced: an exclusive producer stands in the way.
	ErrProducerFenced = cnx.Refuse(pulsarproto.ServerError_ProducerFenced, "Topic has an exclusive producer")
	// ErrPersistence: the store did not do it, or it is unknown whether it did. Safe to repeat behind a reconnect.
	ErrPersistence = cnx.Refuse(pulsarproto.ServerError_PersistenceError, "the topic was closed")
	// ErrSequenceUnknown: a message is stored if a transaction commits that is still open. Safe to repeat behind a reconnect.
	// Source: MessageDeduplication.MessageDupUnknownException.
	ErrSequenceUnknown = cnx.Refuse(pulsarproto.ServerError_PersistenceError, "Cannot determine whether the message is a duplicate at this time")
	// ErrMetadata: the command does not fit what it speaks of.
	ErrMetadata = cnx.Refuse(pulsarproto.ServerError_MetadataError, "Consumer not found")
)

// errFencedTopic: the topic is being deleted; it is safe to try again.
// Source: BrokerServiceException.TopicFencedException.
var errFencedTopic = cnx.Refuse(pulsarproto.ServerError_ServiceNotReady, "Topic is temporarily unavailable")

// transient reports whether a refusal by the coordinator says nothing about the transaction.
func transient(err error) bool {
	return errors.Is(err, txn.ErrCoordinatorNotFound) || errors.Is(err, txn.ErrNotReady) ||
		errors.Is(err, txn.ErrTooManyRequests) || errors.Is(err, txn.ErrUnknownResult)
}

// final reports whether clients give up a message for this answer to its send. For any other they connect again, and send
// everything again that has no receipt.
// Source: ClientCnx.handleSendError; pulsar-client-go connection.handleSendError.
func final(err error) bool {
	var coded interface {
		ServerError() pulsarproto.ServerError
	}
	if errors.As(err, &coded) {
		code := coded.ServerError()
		return code == pulsarproto.ServerError_NotAllowedError || code == pulsarproto.ServerError_TopicTerminatedError
	}
	return errors.Is(err, txn.ErrNotAllowed)
}
