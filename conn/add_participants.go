package conn

import (
	"fmt"
	"strings"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// addPartitionToTxn registers topics that a transaction writes to: all of them, or none and an error.
// Errors: UnsupportedVersionError (TC-2), InvalidTopicName and NotAllowedError (TC-13), AuthorizationError,
// TransactionCoordinatorNotFound, and those of Coordinators.AddParticipants.
//
// Source: PulsarApi.proto CommandAddPartitionToTxn; ServerCnx.handleAddPartitionToTxn.
func (r request) addPartitionToTxn(cmd *pulsarproto.CommandAddPartitionToTxn) {
	const command = pulsarproto.BaseCommand_ADD_PARTITION_TO_TXN
	requestID := cmd.GetRequestId()
	if r.refuseTransactions(command, requestID) {
		return
	}
	id := txn.ID{Most: cmd.GetTxnidMostBits(), Least: cmd.GetTxnidLeastBits()}
	done := r.txnAnswer(command, requestID, id, false,
		pulsarproto.AppendAddPartitionToTxnResponse, pulsarproto.AppendAddPartitionToTxnError)
	if err := r.checkTransaction(id.Most, cmd.GetScalable()); err != nil {
		done(err)
		return
	}
	participants := make([]txn.Participant, 0, len(cmd.GetPartitions()))
	for _, topic := range cmd.GetPartitions() {
		name, err := participantTopic(topic)
		if err != nil {
			done(err)
			return
		}
		participants = append(participants, txn.Participant{Topic: name, Kind: txn.Partition})
	}
	r.addParticipants(id, participants, done)
}

// addSubscriptionToTxn is addPartitionToTxn for subscriptions that a transaction acknowledges on.
//
// Source: PulsarApi.proto CommandAddSubscriptionToTxn; ServerCnx.handleAddSubscriptionToTxn.
func (r request) addSubscriptionToTxn(cmd *pulsarproto.CommandAddSubscriptionToTxn) {
	const command = pulsarproto.BaseCommand_ADD_SUBSCRIPTION_TO_TXN
	requestID := cmd.GetRequestId()
	if r.refuseTransactions(command, requestID) {
		return
	}
	id := txn.ID{Most: cmd.GetTxnidMostBits(), Least: cmd.GetTxnidLeastBits()}
	done := r.txnAnswer(command, requestID, id, false,
		pulsarproto.AppendAddSubscriptionToTxnResponse, pulsarproto.AppendAddSubscriptionToTxnError)
	if err := r.checkTransaction(id.Most, cmd.GetScalable()); err != nil {
		done(err)
		return
	}
	participants := make([]txn.Participant, 0, len(cmd.GetSubscription()))
	for _, subscription := range cmd.GetSubscription() {
		participant, err := participantSubscription(subscription)
		if err != nil {
			done(err)
			return
		}
		participants = append(participants, participant)
	}
	r.addParticipants(id, participants, done)
}

// addParticipants asks the coordinator if the caller may use every participant itself.
func (r request) addParticipants(id txn.ID, participants []txn.Participant, done func(error)) {
	r.authorize(func() error { return r.mayTakePart(participants) }, done, func() {
		r.services.Coordinators.AddParticipants(r.ctx, id, r.caller, participants, done)
	})
}

// participantTopic returns the full name of a topic that can take part in a transaction.
func participantTopic(text string) (string, error) {
	name, err := parseTopic(text)
	if err != nil {
		return "", err
	}
	if name.Domain == topicname.NonPersistent {
		return "", fmt.Errorf("%w: %s is not persistent and cannot take part in a transaction", txn.ErrNotAllowed, name)
	}
	if name.TransactionInternal() {
		return "", fmt.Errorf("%w: %s belongs to the transaction system", txn.ErrNotAllowed, name)
	}
	return name.String(), nil
}

func participantSubscription(subscription *pulsarproto.Subscription) (txn.Participant, error) {
	topic, err := participantTopic(subscription.GetTopic())
	if err != nil {
		return txn.Participant{}, err
	}
	name := subscription.GetSubscription()
	if strings.TrimSpace(name) == "" {
		return txn.Participant{}, fmt.Errorf("%w: blank subscription name on %s", txn.ErrNotAllowed, topic)
	}
	if len(name) > topicname.MaxBytes {
		return txn.Participant{}, fmt.Errorf("%w: subscription name of %d bytes on %s, at most %d are allowed",
			txn.ErrNotAllowed, len(name), topic, topicname.MaxBytes)
	}
	return txn.Participant{Topic: topic, Subscription: name, Kind: txn.AckedSubscription}, nil
}
