package conn

import (
	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

// errAckConsumerNotFound refuses an ACK for a consumer that is not attached. Pulsar leaves it without an answer.
var errAckConsumerNotFound = cnx.Refuse(pulsarproto.ServerError_ConsumerNotFound, "Consumer not found")

// ack acknowledges messages, in a transaction or not. It is answered if it has a request id, once it is durable.
// Errors: ConsumerNotFound, and those of Consumer.Ack.
//
// Source: PulsarApi.proto CommandAck; ServerCnx.handleAck.
func (r request) ack(cmd *pulsarproto.CommandAck) {
	consumerID, requestID, answer := cmd.GetConsumerId(), cmd.GetRequestId(), cmd.RequestId != nil
	done := func(err error) {
		if err != nil {
			code, text := r.failure(pulsarproto.BaseCommand_ACK, err, false)
			if answer {
				r.answer(func(b []byte) []byte {
					return pulsarproto.AppendAckError(b, consumerID, requestID, code, text)
				})
				return
			}
		}
		if !answer {
			r.done()
			return
		}
		r.answer(func(b []byte) []byte { return pulsarproto.AppendAckResponse(b, consumerID, requestID) })
	}
	consumer := r.consumerOf(consumerID)
	if consumer == nil {
		done(errAckConsumerNotFound)
		return
	}
	consumer.Ack(cmd, done)
}
