package history

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

const (
	// clockSlack is how much earlier than its time to live a transaction may time out: a server counts in whole
	// milliseconds of the wall clock, a history by the monotonic one.
	clockSlack = 50 * time.Millisecond
	// searchTime bounds the search of one transaction's history. Real ones take well under a millisecond.
	searchTime = 20 * time.Second
)

// register is the state of one transaction.
type register uint8

const (
	absent register = iota
	open
	committed
	aborted
	forgotten
)

func decided(action txn.Action) register {
	if action == txn.Commit {
		return committed
	}
	return aborted
}

// register is what the look says: who decides is decided, though participants may not know yet.
func (op *Look) register() register {
	if !op.Known {
		return forgotten
	}
	if action, ok := op.Status.Decided(); ok {
		return decided(action)
	}
	return open
}

// step is one operation on a register. Steps that nobody waits for come last in an order in which they have no effect.
type step struct {
	kind   kind
	action txn.Action
	answer Answer
	name   string
	seen   register
}

type kind uint8

const (
	opening kind = iota
	ending
	using
	looking
	deadline   // the coordinator aborts what is still open
	forgetting // retention has passed
)

func (s step) String() string {
	switch s.kind {
	case opening:
		return "NEW"
	case ending:
		return fmt.Sprintf("END(%s) %s", s.action, s.answer)
	case using:
		return fmt.Sprintf("%s %s", s.name, s.answer)
	case looking:
		return "seen " + [...]string{"absent", "open", "committed", "aborted", "not known"}[s.seen]
	case deadline:
		return "deadline"
	}
	return "retention"
}

// apply says whether s can happen in state, and what follows.
func (s step) apply(state register) (bool, register) {
	switch s.kind {
	case opening:
		return state == absent, open
	case ending:
		return s.end(state)
	case using:
		return (s.answer == Done) == (state == open), state
	case looking:
		return s.seen == state || s.seen == forgotten && state == absent, state
	case deadline:
		if state == open {
			return true, aborted
		}
	case forgetting:
		if state == committed || state == aborted {
			return true, forgotten
		}
	}
	return true, state
}

func (s step) end(state register) (bool, register) {
	after := state
	if state == open {
		after = decided(s.action)
	}
	switch s.answer {
	case Done:
		return after == decided(s.action), after
	case Contrary:
		return state == decided(opposite(s.action)), state
	case NotFound:
		return state == absent || state == forgotten, state
	case Refused:
		return true, state
	}
	return true, after
}

var model = porcupine.Model{
	Init: func() any { return absent },
	Step: func(state, input, _ any) (bool, any) {
		ok, next := input.(step).apply(state.(register))
		return ok, next
	},
}

// checkAnswers holds promises 1 and 2, transaction by transaction.
func (h *History) checkAnswers() []Anomaly {
	operations := map[txn.ID][]porcupine.Operation{}
	var order []txn.ID
	kept := map[txn.ID]bool{}
	add := func(id txn.ID, span Span, s step) {
		operations[id] = append(operations[id], porcupine.Operation{Input: s, Call: int64(span.Call), Return: int64(span.Return)})
	}
	for _, op := range h.opens {
		if kept[op.ID] {
			continue // reported by checkIDs
		}
		kept[op.ID] = true
		order = append(order, op.ID)
		add(op.ID, op.Span, step{kind: opening})
		add(op.ID, Span{max(op.Call, op.Call+op.TTL-clockSlack), Never}, step{kind: deadline})
		add(op.ID, Span{op.Call + op.Kept, Never}, step{kind: forgetting})
	}
	var found []Anomaly
	for _, op := range h.ends {
		if !kept[op.ID] {
			found = append(found, Anomaly{NeverIssued, op.ID, "", op.Action.String()})
			continue
		}
		add(op.ID, op.Span, step{kind: ending, action: op.Action, answer: op.Answer})
	}
	for _, op := range h.uses {
		if !kept[op.ID] {
			found = append(found, Anomaly{NeverIssued, op.ID, "", op.Name})
			continue
		}
		add(op.ID, op.Span, step{kind: using, name: op.Name, answer: op.Answer})
	}
	for _, op := range h.looks {
		if !kept[op.ID] {
			found = append(found, Anomaly{NeverIssued, op.ID, "", "looked at"})
			continue
		}
		add(op.ID, op.Span, step{kind: looking, seen: op.register()})
	}
	for _, id := range order {
		switch porcupine.CheckOperationsTimeout(model, operations[id], searchTime) {
		case porcupine.Illegal:
			found = append(found, Anomaly{Contradiction, id, "", describe(operations[id])})
		case porcupine.Unknown:
			found = append(found, Anomaly{Contradiction, id, "", "the search took too long: " + describe(operations[id])})
		}
	}
	return append(found, h.checkOutcomes(order)...)
}

// checkOutcomes finds transactions of which nobody learnt how they ended.
func (h *History) checkOutcomes(order []txn.ID) []Anomaly {
	var found []Anomaly
	outcomes := h.outcomes()
	forgettable := map[txn.ID]bool{}
	for _, op := range h.ends {
		if op.Answer == NotFound {
			forgettable[op.ID] = true // whether it may be is for the model to say
		}
	}
	for _, id := range order {
		if _, known := outcomes[id]; !known && !forgettable[id] {
			found = append(found, Anomaly{Kind: NoOutcome, Txn: id})
		}
	}
	return found
}

func describe(operations []porcupine.Operation) string {
	sorted := slices.SortedFunc(slices.Values(operations), func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	var text []string
	for _, op := range sorted {
		until := "never"
		if op.Return != int64(Never) {
			until = time.Duration(op.Return).String()
		}
		text = append(text, fmt.Sprintf("%s [%v %s]", op.Input.(step), time.Duration(op.Call), until))
	}
	return strings.Join(text, ", ")
}
