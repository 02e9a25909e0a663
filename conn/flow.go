package conn

import "github.com/pulsar-tc/pulsar-tc/pulsarproto"

// flow grants a consumer permits, counted in messages. An unknown consumer's are ignored: it may just have been closed.
//
// Source: PulsarApi.proto CommandFlow; ServerCnx.handleFlow.
func (s *session) flow(cmd *pulsarproto.CommandFlow) {
	consumer := s.consumerOf(cmd.GetConsumerId())
	if consumer == nil || cmd.GetMessagePermits() == 0 {
		return
	}
	consumer.Flow(cmd.GetMessagePermits())
}

// redeliver gives unacknowledged messages out again. It has no answer; an unknown consumer's is ignored.
//
// Source: PulsarApi.proto CommandRedeliverUnacknowledgedMessages; ServerCnx.handleRedeliverUnacknowledged.
func (s *session) redeliver(cmd *pulsarproto.CommandRedeliverUnacknowledgedMessages) {
	if consumer := s.consumerOf(cmd.GetConsumerId()); consumer != nil {
		consumer.Redeliver(cmd)
	}
}
