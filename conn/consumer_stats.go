package conn

import (
	"fmt"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

// consumerStats tells what a consumer of this connection does.
// Errors: ConsumerNotFound, inside the response as Pulsar has it.
//
// Source: PulsarApi.proto CommandConsumerStats; ServerCnx.handleConsumerStats.
func (r request) consumerStats(cmd *pulsarproto.CommandConsumerStats) {
	requestID := cmd.GetRequestId()
	consumer := r.consumerOf(cmd.GetConsumerId())
	if consumer == nil {
		text := fmt.Sprintf("Consumer %d not found", cmd.GetConsumerId())
		r.answer(func(b []byte) []byte {
			return pulsarproto.AppendConsumerStatsError(b, requestID, pulsarproto.ServerError_ConsumerNotFound, text)
		})
		return
	}
	consumer.Stats(func(stats *pulsarproto.CommandConsumerStatsResponse, err error) {
		if err != nil {
			r.fail(pulsarproto.BaseCommand_CONSUMER_STATS, requestID, err)
			return
		}
		stats.RequestId = &requestID
		r.answer(func(b []byte) []byte { return pulsarproto.AppendConsumerStats(b, stats) })
	})
}
