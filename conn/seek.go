package conn

import "github.com/pulsar-tc/pulsar-tc/pulsarproto"

// errSeekTarget refuses a SEEK that does not say where to.
var errSeekTarget = &requestError{pulsarproto.ServerError_MetadataError, "Message id and message publish time were not present"}

// seek resets a subscription's cursor. The topic disconnects its consumers before the answer.
// Errors: MetadataError, and those of Consumer.Seek.
//
// Source: PulsarApi.proto CommandSeek; ServerCnx.handleSeek.
func (s *session) seek(cmd *pulsarproto.CommandSeek) {
	consumer := s.consumerOf(cmd.GetConsumerId())
	switch {
	case consumer == nil:
		s.fail(pulsarproto.BaseCommand_SEEK, cmd.GetRequestId(), errConsumerNotFound)
	case cmd.MessageId == nil && cmd.MessagePublishTime == nil:
		s.fail(pulsarproto.BaseCommand_SEEK, cmd.GetRequestId(), errSeekTarget)
	default:
		consumer.Seek(cmd, s.acknowledge(pulsarproto.BaseCommand_SEEK, cmd.GetRequestId()))
	}
}

// unsubscribe deletes the subscription of a consumer, with its pending acknowledgements.
// Errors: MetadataError, and those of Consumer.Unsubscribe.
//
// Source: PulsarApi.proto CommandUnsubscribe; ServerCnx.handleUnsubscribe.
func (s *session) unsubscribe(cmd *pulsarproto.CommandUnsubscribe) {
	consumer := s.consumerOf(cmd.GetConsumerId())
	if consumer == nil {
		s.fail(pulsarproto.BaseCommand_UNSUBSCRIBE, cmd.GetRequestId(), errConsumerNotFound)
		return
	}
	consumer.Unsubscribe(cmd.GetForce(), s.acknowledge(pulsarproto.BaseCommand_UNSUBSCRIBE, cmd.GetRequestId()))
}

// acknowledge returns a function that answers a request with SUCCESS or ERROR.
func (s *session) acknowledge(command pulsarproto.BaseCommand_Type, requestID uint64) func(error) {
	return func(err error) {
		if err != nil {
			s.fail(command, requestID, err)
			return
		}
		s.succeed(requestID)
	}
}
