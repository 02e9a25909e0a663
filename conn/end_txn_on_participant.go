package conn

import (
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// errLowWaterMark refuses an END_TXN_ON_* without a low water mark: taking it for 0 would be a guess. Pulsar closes.
var errLowWaterMark = &requestError{pulsarproto.ServerError_NotAllowedError, "txnid_least_bits_of_low_watermark is required"}

// endTxnOnPartition ends a transaction in one topic, for a coordinator elsewhere.
// Errors: InvalidTopicName, NotAllowedError, and those of Topics.EndTxn.
//
// Source: PulsarApi.proto CommandEndTxnOnPartition; ServerCnx.handleEndTxnOnPartition.
func (r request) endTxnOnPartition(cmd *pulsarproto.CommandEndTxnOnPartition) {
	requestID := cmd.GetRequestId()
	id := txn.ID{Most: cmd.GetTxnidMostBits(), Least: cmd.GetTxnidLeastBits()}
	done := func(err error) {
		if err != nil {
			code, text := r.failure(pulsarproto.BaseCommand_END_TXN_ON_PARTITION, err, false)
			r.answer(func(b []byte) []byte {
				return pulsarproto.AppendEndTxnOnPartitionError(b, requestID, id.Most, id.Least, code, text)
			})
			return
		}
		r.answer(func(b []byte) []byte {
			return pulsarproto.AppendEndTxnOnPartitionResponse(b, requestID, id.Most, id.Least)
		})
	}
	action, err := txnAction(cmd.TxnAction)
	if err != nil {
		done(err)
		return
	}
	if cmd.TxnidLeastBitsOfLowWatermark == nil {
		done(errLowWaterMark)
		return
	}
	topic, err := topicname.Parse(cmd.GetTopic())
	if err != nil {
		done(err)
		return
	}
	participant := txn.Participant{Topic: topic.String(), Kind: txn.Partition}
	r.services.Topics.EndTxn(r.ctx, id, participant, action, cmd.GetTxnidLeastBitsOfLowWatermark(), done)
}

// endTxnOnSubscription ends a transaction's acknowledgements on one subscription, for a coordinator elsewhere.
// Errors: as endTxnOnPartition.
//
// Source: PulsarApi.proto CommandEndTxnOnSubscription; ServerCnx.handleEndTxnOnSubscription.
func (r request) endTxnOnSubscription(cmd *pulsarproto.CommandEndTxnOnSubscription) {
	requestID := cmd.GetRequestId()
	id := txn.ID{Most: cmd.GetTxnidMostBits(), Least: cmd.GetTxnidLeastBits()}
	done := func(err error) {
		if err != nil {
			code, text := r.failure(pulsarproto.BaseCommand_END_TXN_ON_SUBSCRIPTION, err, false)
			r.answer(func(b []byte) []byte {
				return pulsarproto.AppendEndTxnOnSubscriptionError(b, requestID, id.Most, id.Least, code, text)
			})
			return
		}
		r.answer(func(b []byte) []byte {
			return pulsarproto.AppendEndTxnOnSubscriptionResponse(b, requestID, id.Most, id.Least)
		})
	}
	action, err := txnAction(cmd.TxnAction)
	if err != nil {
		done(err)
		return
	}
	if cmd.TxnidLeastBitsOfLowWatermark == nil {
		done(errLowWaterMark)
		return
	}
	topic, err := topicname.Parse(cmd.GetSubscription().GetTopic())
	if err != nil {
		done(err)
		return
	}
	participant := txn.Participant{
		Topic:        topic.String(),
		Subscription: cmd.GetSubscription().GetSubscription(),
		Kind:         txn.AckedSubscription,
	}
	r.services.Topics.EndTxn(r.ctx, id, participant, action, cmd.GetTxnidLeastBitsOfLowWatermark(), done)
}
