package history

import (
	"fmt"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

// searchTime bounds the search of one transaction's history. Real ones take well under a millisecond.
const searchTime = 20 * time.Second

// account is everything that was seen of one transaction, the opening first.
type account struct {
	id    txn.ID
	steps []step
}

// accounts gathers what was seen of each transaction, in order of the answers to NEW, and reports what was seen of others.
func (h *History) accounts() ([]*account, []Anomaly) {
	byID := make(map[txn.ID]*account, len(h.opens))
	all := make([]*account, 0, len(h.opens))
	var found []Anomaly
	add := func(id txn.ID, s step) {
		if a := byID[id]; a != nil {
			a.steps = append(a.steps, s)
			return
		}
		found = append(found, Anomaly{NeverIssued, id, "", s.at()})
	}
	for _, op := range h.opens {
		if byID[op.ID] != nil {
			continue // reported by checkIDs
		}
		a := &account{id: op.ID}
		byID[op.ID], all = a, append(all, a)
		expires, ends := max(op.Call, op.Call+op.TTL-h.skew), max(op.Call, op.Call+op.Kept-h.skew)
		a.steps = []step{
			{kind: opening, Span: op.Span, number: int64(op.TTL)},
			{kind: deadline, Span: Span{"", expires, Never}},
			{kind: forgetting, Span: Span{"", ends, Never}},
		}
	}
	for _, op := range h.ends {
		add(op.ID, step{kind: ending, Span: op.Span, action: op.Action, answer: op.Answer})
	}
	for _, op := range h.uses {
		add(op.ID, step{kind: using, Span: op.Span, answer: op.Answer, name: op.Name, key: op.Participant})
	}
	for _, op := range h.looks {
		add(op.ID, op.step())
	}
	for _, op := range h.decisions {
		add(op.ID, op.step())
	}
	h.eachDelivery(func(id txn.ID, d *Delivery) {
		if byID[id] != nil {
			add(id, d.step())
		}
	})
	h.eachMark(all, add)
	return all, found
}

func (op *Look) step() step {
	return step{kind: looking, Span: op.Span, status: op.Status, known: op.Known}
}

// checkAnswers holds promises 1 and 2, transaction by transaction.
func checkAnswers(all []*account) []Anomaly {
	var found []Anomaly
	for _, a := range all {
		v := judge(a.steps)
		if v == nil {
			continue
		}
		switch linearizable(a.steps) {
		case porcupine.Ok:
			v.reason += " (but porcupine finds an order: one of the two checks is wrong)"
		case porcupine.Unknown:
			v.reason += fmt.Sprintf(" (porcupine did not confirm it within %v)", searchTime)
		}
		found = append(found, Anomaly{v.kind, a.id, "", v.reason + a.story()})
	}
	return found
}

// forgotten are the transactions that a client was told nobody knows. Whether that may be is for the register to say.
func (h *History) forgotten() map[txn.ID]bool {
	forgotten := map[txn.ID]bool{}
	for _, op := range h.ends {
		if op.Answer == NotFound {
			forgotten[op.ID] = true
		}
	}
	return forgotten
}

// checkOutcomes finds transactions of which no client learnt how they ended.
func checkOutcomes(all []*account, answered map[txn.ID]txn.Status, forgotten map[txn.ID]bool) []Anomaly {
	var found []Anomaly
	for _, a := range all {
		if _, known := answered[a.id]; !known && !forgotten[a.id] {
			found = append(found, Anomaly{NoOutcome, a.id, "", "no definite answer to any END" + a.story()})
		}
	}
	return found
}
