package history

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

func (op *Decision) step() step {
	return step{kind: telling, Span: Span{op.Client, op.Call, op.Call}, action: op.Action, answer: op.Answer,
		name: op.Participant, number: int64(op.LowWaterMark)}
}

// eachMark calls add for the first time that somebody is told that a transaction and all before it have ended.
func (h *History) eachMark(all []*account, add func(txn.ID, step)) {
	told := slices.SortedStableFunc(slices.Values(h.decisions), func(a, b Decision) int { return cmp.Compare(a.Call, b.Call) })
	byCoordinator := map[uint64][]txn.ID{}
	for _, a := range all {
		byCoordinator[a.id.Most] = append(byCoordinator[a.id.Most], a.id)
	}
	for _, ids := range byCoordinator {
		slices.SortFunc(ids, func(a, b txn.ID) int { return cmp.Compare(a.Least, b.Least) })
	}
	for _, op := range told {
		ids := byCoordinator[op.ID.Most]
		for len(ids) > 0 && int64(ids[0].Least) <= int64(op.LowWaterMark) {
			add(ids[0], step{kind: passing, Span: Span{op.Client, op.Call, op.Call}, number: int64(op.LowWaterMark)})
			ids = ids[1:]
		}
		byCoordinator[op.ID.Most] = ids
	}
}

// part is one participant of one transaction.
type part struct {
	id          txn.ID
	participant string
}

// checkDone holds promise 3: when END answers success, every participant has applied the decision.
func (h *History) checkDone(all []*account) []Anomaly {
	applied := map[part]Decision{} // the one applied first
	for _, op := range h.decisions {
		at := part{op.ID, op.Participant}
		if known, ok := applied[at]; op.Answer == Done && (!ok || op.Return < known.Return) {
			applied[at] = op
		}
	}
	answered := map[txn.ID]End{} // the first success
	for _, op := range h.ends {
		if known, ok := answered[op.ID]; op.Answer == Done && (!ok || op.Return < known.Return) {
			answered[op.ID] = op
		}
	}
	stories := make(map[txn.ID]*account, len(all))
	for _, a := range all {
		stories[a.id] = a
	}
	reported := map[txn.ID]bool{}
	var found []Anomaly
	for _, op := range h.uses {
		success, ended := answered[op.ID]
		if op.Answer != Done || op.Participant == "" || !ended || reported[op.ID] || stories[op.ID] == nil {
			continue
		}
		if told, ok := applied[part{op.ID, op.Participant}]; ok && told.Return <= success.Return {
			continue
		}
		reported[op.ID] = true
		found = append(found, Anomaly{NotDone, op.ID, "", fmt.Sprintf("success at %v, when %s had not applied %s%s",
			success.Return, op.Participant, success.Action, stories[op.ID].story())})
	}
	return found
}
