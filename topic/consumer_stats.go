package topic

import "github.com/pulsar-tc/pulsar-tc/pulsarproto"

// Stats implements cnx.Consumer. What is not measured is absent.
func (c *consumer) Stats(done func(*pulsarproto.CommandConsumerStatsResponse, error)) {
	c.topic.ask(func(alive bool) {
		if !alive {
			done(nil, ErrPersistence)
			return
		}
		stats := c.stats()
		done(&pulsarproto.CommandConsumerStatsResponse{
			MsgRateOut: &stats.MsgRateOut, MsgThroughputOut: &stats.MsgThroughputOut, MsgRateRedeliver: &stats.MsgRateRedeliver,
			ConsumerName: &stats.ConsumerName, AvailablePermits: new(uint64(max(0, stats.AvailablePermits))),
			UnackedMessages: new(uint64(stats.UnackedMessages)), BlockedConsumerOnUnackedMsgs: &stats.BlockedConsumerOnUnackedMsgs,
			Address: &stats.Address, ConnectedSince: &stats.ConnectedSince,
			Type: new(c.subscription.kind.String()), MsgBacklog: new(c.subscription.backlog()),
		}, nil)
	})
}
