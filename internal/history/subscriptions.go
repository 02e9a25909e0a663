package history

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

// acked is what became of the acknowledgements of one message on one subscription.
type acked struct {
	sure     []*Ack // in committed transactions, answered
	covered  bool   // by a cumulative one in a committed transaction, answered
	plain    bool   // outside transactions, answered
	possible bool   // without an answer, or in a transaction without a known outcome
	in       txn.ID
}

// add counts one acknowledgement.
func (a *acked) add(op *Ack, outcomes map[txn.ID]txn.Status) {
	if op.Answer != Done && op.Answer != Unknown {
		return
	}
	if !op.InTxn {
		a.plain = a.plain || op.Answer == Done
		a.possible = a.possible || op.Answer == Unknown
		return
	}
	outcome, known := outcomes[op.Txn]
	switch {
	case known && outcome == txn.Aborted:
	case known && op.Answer == Done && op.Cumulative:
		a.covered = true
		a.in = op.Txn
	case known && op.Answer == Done && a.acks(op.Txn): // the same again
	case known && op.Answer == Done:
		a.sure = append(a.sure, op)
		a.in = op.Txn
	default:
		a.possible = true
	}
}

// acks reports whether id is one of the committed transactions that acknowledged the message alone.
func (a *acked) acks(id txn.ID) bool {
	return slices.ContainsFunc(a.sure, func(op *Ack) bool { return op.Txn == id })
}

// gone reports whether the message must not be delivered again.
func (a *acked) gone() bool { return len(a.sure) > 0 || a.covered || a.plain }

// story tells which transactions acknowledged.
func (a *acked) story() string {
	var text strings.Builder
	for _, op := range a.sure {
		fmt.Fprintf(&text, "\n    %12s  in %s", clock(op.recorded), op.Txn)
	}
	return text.String()
}

// checkSubscriptions compares what was acknowledged with what subscriptions still hold, for all whose rest was recorded. A
// subscription must have been there before the first message.
func (h *History) checkSubscriptions(outcomes map[txn.ID]txn.Status) []Anomaly {
	byPlace := map[place]map[string]*acked{}
	for i := range h.acks {
		op := &h.acks[i]
		at := place{op.Topic, op.Subscription}
		if byPlace[at] == nil {
			byPlace[at] = map[string]*acked{}
		}
		if byPlace[at][op.Key] == nil {
			byPlace[at][op.Key] = &acked{}
		}
		byPlace[at][op.Key].add(op, outcomes)
	}
	var found []Anomaly
	for at, keys := range byPlace {
		if _, recorded := h.left[at]; !recorded {
			found = append(found, Anomaly{NotRead, txn.ID{}, at.topic, "subscription " + at.subscription})
		}
		for key, a := range keys {
			if len(a.sure) > 1 {
				found = append(found, Anomaly{AckedTwice, a.in, at.topic, fmt.Sprintf("%s on %s%s", key, at.subscription, a.story())})
			}
		}
	}
	for at, left := range h.left {
		found = append(found, h.checkLeft(at, left, byPlace[at])...)
	}
	return found
}

func (h *History) checkLeft(at place, left []string, keys map[string]*acked) []Anomaly {
	var found []Anomaly
	copies := map[string]int{}
	for _, key := range h.read[at.topic] {
		copies[key]++
	}
	held := map[string]bool{}
	for _, key := range left {
		held[key] = true
		// Of a message that is there twice, one copy may be acknowledged and the other not.
		if a := keys[key]; a != nil && copies[key] < 2 && a.gone() {
			found = append(found, Anomaly{DeliveredAgain, a.in, at.topic, fmt.Sprintf("%s on %s", key, at.subscription)})
		}
	}
	for key := range copies {
		a := keys[key]
		if !held[key] && (a == nil || !a.gone() && !a.possible) {
			found = append(found, Anomaly{NotReturned, txn.ID{}, at.topic, fmt.Sprintf("%s on %s", key, at.subscription)})
		}
	}
	return found
}
