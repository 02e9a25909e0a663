package pulsaradmin

import (
	"github.com/pulsar-tc/pulsar-tc/topic"
	"github.com/pulsar-tc/pulsar-tc/topicname"
)

// hide leaves out what the caller asked not to be shown.
func (c *call) hide(s *topic.TopicStats) {
	if c.flag("excludePublishers") {
		s.Publishers = []topic.PublisherStats{}
	}
	if !c.flag("excludeConsumers") {
		return
	}
	for name, subscription := range s.Subscriptions {
		subscription.Consumers = []topic.ConsumerStats{}
		s.Subscriptions[name] = subscription
	}
}

func (h *handler) getStats(c *call, name topicname.Name) (any, error) {
	ctx, cancel := c.within()
	defer cancel()
	stats, err := h.Topics.TopicStats(ctx, name)
	if err != nil {
		return nil, h.missing(name, err)
	}
	c.hide(stats)
	return stats, nil
}

// partitionedStats is Pulsar's PartitionedTopicStatsImpl: the sum over the partitions, and each of them if asked.
type partitionedStats struct {
	topic.TopicStats
	Metadata   partitionedTopic             `json:"metadata"`
	Partitions map[string]*topic.TopicStats `json:"partitions"`
}

// getPartitionedStats sums up all partitions that have been used; those that have not are counted in the metadata only.
func (h *handler) getPartitionedStats(c *call, name topicname.Name) (any, error) {
	ctx, cancel := c.within()
	defer cancel()
	partitions, properties, err := h.Topics.PartitionedMetadata(ctx, name)
	if err != nil {
		return nil, err
	}
	if partitions == 0 {
		return nil, &refusal{404, "Partitioned topic not found: " + name.String() + " has zero partitions"}
	}
	sum := partitionedStats{Metadata: partitionedTopic{partitions, properties}, Partitions: map[string]*topic.TopicStats{}}
	sum.Publishers, sum.Subscriptions, sum.Replication = []topic.PublisherStats{}, map[string]topic.SubscriptionStats{}, map[string]struct{}{}
	if sum.TopicCreationTimeStamp, err = h.Topics.Created(ctx, name); err != nil {
		return nil, err
	}
	each := c.URL.Query().Get("perPartition") != "false"
	err = h.eachPartition(ctx, name, func(one topicname.Name) error {
		stats, err := h.Topics.TopicStats(ctx, one)
		if _, elsewhere := h.elsewhere(err); elsewhere {
			stats = &topic.TopicStats{}
		}
		err = c.orThere(ctx, one, err, "/stats", stats)
		if is(err, topic.ErrTopicNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		c.hide(stats)
		add(&sum.TopicStats, stats)
		if each {
			sum.Partitions[one.String()] = stats
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if sum.MsgInCounter > 0 {
		sum.AverageMsgSize = float64(sum.BytesInCounter) / float64(sum.MsgInCounter)
	}
	return &sum, nil
}

// add adds the stats of a partition to those of its topic.
func add(sum, one *topic.TopicStats) {
	sum.MsgRateIn += one.MsgRateIn
	sum.MsgThroughputIn += one.MsgThroughputIn
	sum.MsgRateOut += one.MsgRateOut
	sum.MsgThroughputOut += one.MsgThroughputOut
	sum.BytesInCounter += one.BytesInCounter
	sum.MsgInCounter += one.MsgInCounter
	sum.BytesOutCounter += one.BytesOutCounter
	sum.MsgOutCounter += one.MsgOutCounter
	sum.MsgChunkPublished = sum.MsgChunkPublished || one.MsgChunkPublished
	sum.StorageSize += one.StorageSize
	sum.BacklogSize += one.BacklogSize
	sum.OngoingTxnCount += one.OngoingTxnCount
	sum.AbortedTxnCount += one.AbortedTxnCount
	sum.CommittedTxnCount += one.CommittedTxnCount
	sum.WaitingPublishers += one.WaitingPublishers
	sum.DeduplicationStatus = one.DeduplicationStatus
	sum.Publishers = append(sum.Publishers, one.Publishers...)
	sum.LastPublishTimeStamp = max(sum.LastPublishTimeStamp, one.LastPublishTimeStamp)
	for name, subscription := range one.Subscriptions {
		sum.Subscriptions[name] = added(sum.Subscriptions[name], subscription)
	}
}

func added(sum, one topic.SubscriptionStats) topic.SubscriptionStats {
	one.MsgRateOut += sum.MsgRateOut
	one.MsgThroughputOut += sum.MsgThroughputOut
	one.MsgRateRedeliver += sum.MsgRateRedeliver
	one.MsgRateExpired += sum.MsgRateExpired
	one.MessageAckRate += sum.MessageAckRate
	one.BytesOutCounter += sum.BytesOutCounter
	one.MsgOutCounter += sum.MsgOutCounter
	one.MsgBacklog += sum.MsgBacklog
	one.MsgBacklogNoDelayed += sum.MsgBacklogNoDelayed
	one.MsgDelayed += sum.MsgDelayed
	one.BacklogSize += sum.BacklogSize
	one.UnackedMessages += sum.UnackedMessages
	one.TotalMsgExpired += sum.TotalMsgExpired
	one.NonContiguousDeletedMessagesRanges += sum.NonContiguousDeletedMessagesRanges
	one.Consumers = append(sum.Consumers[:len(sum.Consumers):len(sum.Consumers)], one.Consumers...)
	return one
}

func (h *handler) getInternalStats(c *call, name topicname.Name) (any, error) {
	ctx, cancel := c.within()
	defer cancel()
	stats, err := h.Topics.InternalStats(ctx, name)
	if err != nil {
		return nil, h.missing(name, err)
	}
	return stats, nil
}
