package conn

import "github.com/pulsar-tc/pulsar-tc/pulsarproto"

// getLastMessageID tells the last message that a consumer can be given, and where its subscription stands.
// Errors: MetadataError, and those of Consumer.LastMessageID.
//
// Source: PulsarApi.proto CommandGetLastMessageId; ServerCnx.handleGetLastMessageId.
func (r request) getLastMessageID(cmd *pulsarproto.CommandGetLastMessageId) {
	requestID := cmd.GetRequestId()
	consumer := r.consumerOf(cmd.GetConsumerId())
	if consumer == nil {
		r.fail(pulsarproto.BaseCommand_GET_LAST_MESSAGE_ID, requestID, errConsumerNotFound)
		return
	}
	consumer.LastMessageID(func(last, markDelete *pulsarproto.MessageIdData, err error) {
		if err != nil {
			r.fail(pulsarproto.BaseCommand_GET_LAST_MESSAGE_ID, requestID, err)
			return
		}
		r.answer(func(b []byte) []byte {
			return pulsarproto.AppendGetLastMessageIdResponse(b, requestID, last, markDelete)
		})
	})
}
