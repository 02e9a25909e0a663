package history

import (
	"fmt"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

// name is a message of a topic.
type name struct{ topic, key string }

// checkMessages compares what was sent with what readers saw in the end.
func (h *History) checkMessages(outcomes map[txn.ID]txn.Status) []Anomaly {
	var found []Anomaly
	seen := map[name]int{}
	for topic, keys := range h.read {
		for _, key := range keys {
			seen[name{topic, key}]++
		}
	}
	sent := map[name]bool{}
	unread := map[string]bool{}
	for _, m := range h.messages {
		sent[name{m.Topic, m.Key}] = true
		if _, read := h.read[m.Topic]; !read {
			if !unread[m.Topic] {
				unread[m.Topic] = true
				found = append(found, Anomaly{Kind: NotRead, Topic: m.Topic})
			}
			continue
		}
		found = append(found, m.check(outcomes, seen[name{m.Topic, m.Key}])...)
	}
	for n := range seen {
		if !sent[n] {
			found = append(found, Anomaly{Invented, txn.ID{}, n.topic, n.key})
		}
	}
	return found
}

// check judges one message that readers saw count times.
func (m *Message) check(outcomes map[txn.ID]txn.Status, count int) []Anomaly {
	report := func(kind Kind) []Anomaly {
		return []Anomaly{{kind, m.Txn, m.Topic, fmt.Sprintf("%s, sent with answer %s, there %d times", m.Key, m.Answer, count)}}
	}
	wanted := m.Answer == Done
	if m.InTxn {
		outcome, known := outcomes[m.Txn]
		if known && outcome == txn.Aborted && count > 0 {
			return report(AbortedSeen)
		}
		wanted = wanted && known && outcome == txn.Committed
	}
	switch {
	case wanted && count == 0:
		return report(MessageLost)
	case m.Answer == Refused && count > 0:
		return report(RefusedSeen)
	case count > 1 && !m.Repeatable:
		return report(MessageTwice)
	}
	return nil
}
