package peer

import (
	"context"

	"github.com/pulsar-tc/pulsar-tc/cluster"
	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// EndOnParticipant ends a transaction on a participant that another instance owns, in the name of a coordinator, whose decision
// must be durable. Errors: *Refusal; txn.ErrNotReady, with ErrUnanswered if the request was sent. Repeating it is safe.
func (p *Pool) EndOnParticipant(ctx context.Context, to cluster.Instance, id txn.ID, participant txn.Participant, action txn.Action, lowWaterMark uint64, done func(error)) {
	ctx, cancel := context.WithTimeout(ctx, p.options.ParticipantTimeout)
	command, response := endCommand(id, participant, action, lowWaterMark)
	encode := func(dst []byte, requestID uint64) ([]byte, error) {
		if command.EndTxnOnPartition != nil {
			command.EndTxnOnPartition.RequestId = &requestID
		} else {
			command.EndTxnOnSubscription.RequestId = &requestID
		}
		return pulsarproto.AppendCommand(dst, command)
	}
	c := newCall(ctx, txn.ErrNotReady, encode, finish(id, response, func(err error) {
		cancel()
		done(err)
	}))
	c.topic = participant.Topic
	p.start(to, cnx.Caller{}, c)
}

// endCommand is END_TXN_ON_PARTITION or END_TXN_ON_SUBSCRIPTION, and what answers it.
func endCommand(id txn.ID, participant txn.Participant, action txn.Action, lowWaterMark uint64) (*pulsarproto.BaseCommand, pulsarproto.BaseCommand_Type) {
	wire := pulsarproto.TxnAction(action).Enum()
	if participant.Kind == txn.Partition {
		return &pulsarproto.BaseCommand{
			Type: pulsarproto.BaseCommand_END_TXN_ON_PARTITION.Enum(),
			EndTxnOnPartition: &pulsarproto.CommandEndTxnOnPartition{
				TxnidMostBits: &id.Most, TxnidLeastBits: &id.Least, Topic: &participant.Topic, TxnAction: wire,
				TxnidLeastBitsOfLowWatermark: &lowWaterMark,
			},
		}, pulsarproto.BaseCommand_END_TXN_ON_PARTITION_RESPONSE
	}
	return &pulsarproto.BaseCommand{
		Type: pulsarproto.BaseCommand_END_TXN_ON_SUBSCRIPTION.Enum(),
		EndTxnOnSubscription: &pulsarproto.CommandEndTxnOnSubscription{
			TxnidMostBits: &id.Most, TxnidLeastBits: &id.Least, TxnAction: wire, TxnidLeastBitsOfLowWatermark: &lowWaterMark,
			Subscription: &pulsarproto.Subscription{Topic: &participant.Topic, Subscription: &participant.Subscription},
		},
	}, pulsarproto.BaseCommand_END_TXN_ON_SUBSCRIPTION_RESPONSE
}
