package conn

import (
	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

// errSeekTarget refuses a SEEK that does not say where to.
var errSeekTarget = cnx.Refuse(pulsarproto.ServerError_MetadataError, "Message id and message publish time were not present")

// seek resets a subscription's cursor. The topic disconnects its consumers before the answer.
// Errors: MetadataError, and those of Consumer.Seek.
//
// Source: PulsarApi.proto CommandSeek; ServerCnx.handleSeek.
func (r request) seek(cmd *pulsarproto.CommandSeek) {
	consumer := r.consumerOf(cmd.GetConsumerId())
	switch {
	case consumer == nil:
		r.fail(pulsarproto.BaseCommand_SEEK, cmd.GetRequestId(), errConsumerNotFound)
	case cmd.MessageId == nil && cmd.MessagePublishTime == nil:
		r.fail(pulsarproto.BaseCommand_SEEK, cmd.GetRequestId(), errSeekTarget)
	default:
		consumer.Seek(cmd, r.acknowledge(pulsarproto.BaseCommand_SEEK, cmd.GetRequestId()))
	}
}

// unsubscribe deletes the subscription of a consumer, with its pending acknowledgements.
// Errors: MetadataError, and those of Consumer.Unsubscribe.
//
// Source: PulsarApi.proto CommandUnsubscribe; ServerCnx.handleUnsubscribe.
func (r request) unsubscribe(cmd *pulsarproto.CommandUnsubscribe) {
	consumer := r.consumerOf(cmd.GetConsumerId())
	if consumer == nil {
		r.fail(pulsarproto.BaseCommand_UNSUBSCRIBE, cmd.GetRequestId(), errConsumerNotFound)
		return
	}
	consumer.Unsubscribe(cmd.GetForce(), r.acknowledge(pulsarproto.BaseCommand_UNSUBSCRIBE, cmd.GetRequestId()))
}

// acknowledge returns a function that answers a request with SUCCESS or ERROR.
func (r request) acknowledge(command pulsarproto.BaseCommand_Type, requestID uint64) func(error) {
	return func(err error) {
		if err != nil {
			r.fail(command, requestID, err)
			return
		}
		r.succeed(requestID)
	}
}
