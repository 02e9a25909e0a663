package activeconsumer

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/pulsar-tc/pulsar-tc/topic/stickykey"
	"github.com/pulsar-tc/pulsar-tc/topicname"
)

// Consumer is what of a consumer counts.
type Consumer struct {
	Name     string
	Priority int32 // 0 is the best
}

// Choose returns the index of the active one of consumers, which are not empty. It has the best priority level. Of that, in order
// of the names, a partition takes the one at its number, so that partitions spread; other topics take one by a ring of the names.
//
// Source: AbstractDispatcherSingleActiveConsumer.pickAndScheduleActiveConsumer.
func Choose(topic topicname.Name, consumers []Consumer) int {
	var level []int
	for i, c := range consumers {
		if len(level) > 0 && c.Priority < consumers[level[0]].Priority {
			level = level[:0]
		}
		if len(level) == 0 || c.Priority == consumers[level[0]].Priority {
			level = append(level, i)
		}
	}
	slices.SortStableFunc(level, func(a, b int) int { return cmp.Compare(consumers[a].Name, consumers[b].Name) })
	if partition := topic.Partition(); partition >= 0 {
		return level[partition%len(level)]
	}
	return nearest(topic.String(), consumers, level)
}

// points is the number of points of each name on the ring.
//
// Source: AbstractDispatcherSingleActiveConsumer.CONSUMER_CONSISTENT_HASH_REPLICAS.
const points = 100

// nearest returns the index, of those in level, whose name has the next point on the ring behind the hash of the topic's name.
func nearest(topic string, consumers []Consumer, level []int) int {
	if len(level) == 1 {
		return level[0]
	}
	const whole = int64(1) << 31 // does not fit an int of 32 bits
	at := int64(stickykey.Murmur([]byte(topic)))
	found, least := level[0], whole
	for _, i := range level {
		for point := range points {
			distance := (int64(stickykey.Murmur([]byte(consumers[i].Name+strconv.Itoa(point)))) - at + whole) % whole
			if distance < least {
				found, least = i, distance
			}
		}
	}
	return found
}
