package history

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

// name is a message of a topic.
type name struct{ topic, key string }

func (n name) String() string { return n.topic + " " + n.key }

// step is what a delivered message says of its transaction: that it is committed.
func (d *Delivery) step() step {
	return step{kind: reading, Span: Span{d.Client, d.At, d.At}, action: txn.Commit, name: d.Topic, key: d.Key}
}

// eachDelivery calls visit for the first delivery of every message that was sent in a transaction.
func (h *History) eachDelivery(visit func(txn.ID, *Delivery)) {
	if len(h.deliveries) == 0 {
		return
	}
	in := make(map[name]txn.ID, len(h.messages))
	for _, m := range h.messages {
		if m.InTxn {
			in[name{m.Topic, m.Key}] = m.Txn
		}
	}
	first := map[name]*Delivery{}
	var order []name
	for i := range h.deliveries {
		d := &h.deliveries[i]
		n := name{d.Topic, d.Key}
		switch known := first[n]; {
		case known == nil:
			first[n], order = d, append(order, n)
		case d.At < known.At:
			first[n] = d
		}
	}
	for _, n := range order {
		if id, yes := in[n]; yes {
			visit(id, first[n])
		}
	}
}

// work is what a transaction sent, and how much of it readers saw in the end.
type work struct {
	id          txn.ID
	there, gone []string // with a receipt
	others      []string // there without a receipt
}

// checkMessages compares what was sent with what readers saw, while the history ran and in the end.
func (h *History) checkMessages(all []*account, outcomes map[txn.ID]txn.Status) []Anomaly {
	seen := map[name]int{}
	for topic, keys := range h.read {
		for _, key := range keys {
			seen[name{topic, key}]++
		}
	}
	sent := make(map[name]*Message, len(h.messages))
	unread := map[string]bool{}
	works := map[txn.ID]*work{}
	var found []Anomaly
	for i := range h.messages {
		m := &h.messages[i]
		sent[name{m.Topic, m.Key}] = m
		if _, read := h.read[m.Topic]; !read {
			if !unread[m.Topic] {
				unread[m.Topic] = true
				found = append(found, Anomaly{Kind: NotRead, Topic: m.Topic})
			}
			continue
		}
		count := seen[name{m.Topic, m.Key}]
		found = append(found, m.check(count)...)
		if m.InTxn {
			if works[m.Txn] == nil {
				works[m.Txn] = &work{id: m.Txn}
			}
			works[m.Txn].add(m, count)
		}
	}
	for _, a := range all {
		if w := works[a.id]; w != nil {
			found = append(found, w.check(a, outcomes)...)
		}
	}
	found = append(found, h.checkDeliveries(seen, sent, outcomes)...)
	for n := range seen {
		if sent[n] == nil {
			found = append(found, Anomaly{Invented, txn.ID{}, n.topic, n.key})
		}
	}
	return found
}

// check judges one message that readers saw count times, whatever became of its transaction.
func (m *Message) check(count int) []Anomaly {
	report := func(kind Kind) []Anomaly {
		return []Anomaly{{kind, m.Txn, m.Topic, fmt.Sprintf("%s, sent with answer %s, there %d times", m.Key, m.Answer, count)}}
	}
	switch {
	case m.Answer == Done && !m.InTxn && count == 0:
		return report(MessageLost)
	case m.Answer == Refused && count > 0:
		return report(RefusedSeen)
	case count > 1 && !m.Repeatable:
		return report(MessageTwice)
	}
	return nil
}

func (w *work) add(m *Message, count int) {
	text := name{m.Topic, m.Key}.String()
	switch {
	case m.Answer == Done && count == 0:
		w.gone = append(w.gone, text)
	case m.Answer == Done:
		w.there = append(w.there, text)
	case m.Answer == Unknown && count > 0:
		w.others = append(w.others, text)
	}
}

// check judges what a transaction sent as a whole: it is there with all of it, or with nothing.
func (w *work) check(a *account, outcomes map[txn.ID]txn.Status) []Anomaly {
	outcome, known := outcomes[w.id]
	there := slices.Concat(w.there, w.others)
	var kind Kind
	switch {
	case len(there) > 0 && len(w.gone) > 0:
		kind = Torn
	case known && outcome == txn.Aborted && len(there) > 0:
		kind = AbortedRead
	case known && outcome == txn.Committed && len(w.gone) > 0:
		kind = LostCommit
	default:
		return nil
	}
	text := "outcome unknown"
	if known {
		text = outcome.String()
	}
	return []Anomaly{{kind, w.id, "", fmt.Sprintf("%s, there: [%s], not there: [%s]%s",
		text, strings.Join(there, ", "), strings.Join(w.gone, ", "), a.story())}}
}

// checkDeliveries finds messages that somebody got and that nobody finds in the end. Those of aborted transactions are for
// checkAnswers.
func (h *History) checkDeliveries(seen map[name]int, sent map[name]*Message, outcomes map[txn.ID]txn.Status) []Anomaly {
	var found []Anomaly
	reported := map[name]bool{}
	for _, d := range h.deliveries {
		n := name{d.Topic, d.Key}
		if _, read := h.read[d.Topic]; !read || seen[n] > 0 || reported[n] {
			continue
		}
		reported[n] = true
		id := txn.ID{}
		if m := sent[n]; m != nil && m.InTxn {
			id = m.Txn
			if outcome, known := outcomes[id]; known && outcome == txn.Aborted {
				continue
			}
		}
		found = append(found, Anomaly{Vanished, id, d.Topic, fmt.Sprintf("%s, delivered to %s at %v", d.Key, d.Client, d.At)})
	}
	return found
}
