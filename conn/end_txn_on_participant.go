package conn

import (
	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// errLowWaterMark refuses an END_TXN_ON_* without a low water mark: taking it for 0 would be a guess. Pulsar closes.
var errLowWaterMark = cnx.Refuse(pulsarproto.ServerError_NotAllowedError, "txnid_least_bits_of_low_watermark is required")

// endTxnOnPartition ends a transaction in one topic, for a coordinator elsewhere.
// Errors: TransactionNotFound for all but super users, InvalidTopicName, NotAllowedError, and those of Topics.EndTxn.
//
// Source: PulsarApi.proto CommandEndTxnOnPartition; ServerCnx.handleEndTxnOnPartition.
func (r request) endTxnOnPartition(cmd *pulsarproto.CommandEndTxnOnPartition) {
	id := txn.ID{Most: cmd.GetTxnidMostBits(), Least: cmd.GetTxnidLeastBits()}
	done := r.txnAnswer(pulsarproto.BaseCommand_END_TXN_ON_PARTITION, cmd.GetRequestId(), id, false,
		pulsarproto.AppendEndTxnOnPartitionResponse, pulsarproto.AppendEndTxnOnPartitionError)
	participant := txn.Participant{Topic: cmd.GetTopic(), Kind: txn.Partition}
	r.endTxnOnParticipant(id, participant, cmd.TxnAction, cmd.TxnidLeastBitsOfLowWatermark, done)
}

// endTxnOnSubscription ends a transaction's acknowledgements on one subscription, for a coordinator elsewhere.
// Errors: as endTxnOnPartition.
//
// Source: PulsarApi.proto CommandEndTxnOnSubscription; ServerCnx.handleEndTxnOnSubscription.
func (r request) endTxnOnSubscription(cmd *pulsarproto.CommandEndTxnOnSubscription) {
	id := txn.ID{Most: cmd.GetTxnidMostBits(), Least: cmd.GetTxnidLeastBits()}
	done := r.txnAnswer(pulsarproto.BaseCommand_END_TXN_ON_SUBSCRIPTION, cmd.GetRequestId(), id, false,
		pulsarproto.AppendEndTxnOnSubscriptionResponse, pulsarproto.AppendEndTxnOnSubscriptionError)
	participant := txn.Participant{
		Topic:        cmd.GetSubscription().GetTopic(),
		Subscription: cmd.GetSubscription().GetSubscription(),
		Kind:         txn.AckedSubscription,
	}
	r.endTxnOnParticipant(id, participant, cmd.TxnAction, cmd.TxnidLeastBitsOfLowWatermark, done)
}

// endTxnOnParticipant checks what both commands have and passes it on. The topic of participant is as the client spelt it.
func (r request) endTxnOnParticipant(id txn.ID, participant txn.Participant, asked *pulsarproto.TxnAction, lowWaterMark *uint64, done func(error)) {
	if err := r.mayEndOnParticipants(id); err != nil {
		done(err)
		return
	}
	action, err := txnAction(asked)
	if err != nil {
		done(err)
		return
	}
	if lowWaterMark == nil {
		done(errLowWaterMark)
		return
	}
	topic, err := topicname.Parse(participant.Topic)
	if err != nil {
		done(err)
		return
	}
	participant.Topic = topic.String()
	r.services.Topics.EndTxn(r.ctx, id, participant, action, *lowWaterMark, r.instance, done)
}
