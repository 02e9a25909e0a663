package crashpoint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pulsar-tc/pulsar-tc/internal/history"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// check looks at what was seen and at what is stored, beside what package history makes of it: few enough transactions that
// each promise can be asked for directly.
func (w *world) check() []string {
	faults := w.leftovers()
	committed := make([]bool, len(w.transactions))
	for i := range w.transactions {
		t := &w.transactions[i]
		if t.id.Least == 0 {
			faults = append(faults, fmt.Sprintf("transaction %d was never opened", i))
			continue
		}
		for j := range w.transactions[:i] {
			if w.transactions[j].id == t.id {
				faults = append(faults, fmt.Sprintf("transactions %d and %d are both %v", j, i, t.id))
			}
		}
		outcome, err := t.outcome()
		if err != nil {
			faults = append(faults, fmt.Sprintf("transaction %d: %v", i, err))
			continue
		}
		committed[i] = outcome == txn.Commit
	}
	return append(faults, w.atomic(committed)...)
}

// outcome is what all definite answers agree on.
func (t *transaction) outcome() (txn.Action, error) {
	told := map[txn.Action]bool{}
	for _, e := range t.ends {
		switch e.answer {
		case history.Done:
			told[e.action] = true
		case history.Contrary:
			told[opposite(e.action)] = true
		case history.Unknown:
		default:
			return 0, fmt.Errorf("END %v was answered %v", e.action, e.answer)
		}
	}
	switch {
	case len(told) != 1:
		return 0, fmt.Errorf("its ENDs were answered %v", t.ends)
	case told[txn.Commit]:
		return txn.Commit, nil
	}
	return txn.Abort, nil
}

// atomic compares every participant with the outcomes. Of a write without a definite answer a commit may have either.
func (w *world) atomic(committed []bool) []string {
	var faults []string
	for i := range w.transactions {
		for place, participant := range participants() {
			must, may := w.expected(i, place, committed)
			applied := w.clients.applied(place, key(i, place))
			if must && !applied {
				faults = append(faults, fmt.Sprintf("a commit covers transaction %d at %s, which has nothing of it", i, participant))
			}
			if applied && !may {
				faults = append(faults, fmt.Sprintf("transaction %d: %s shows what was not committed", i, participant))
			}
		}
	}
	return faults
}

// expected tells whether a participant must, and whether it may, show the message of a transaction.
func (w *world) expected(transaction, place int, committed []bool) (must, may bool) {
	for i := range w.transactions {
		answer := w.transactions[i].writes[place]
		if answer == nil || !committed[i] || !w.run.covers(i, transaction, place) {
			continue
		}
		must = must || *answer == history.Done
		may = may || *answer != history.Refused
	}
	return must, may
}

// applied reports whether a participant shows what a transaction wrote: a topic its message, the subscription nothing of the
// message any more.
func (c *clients) applied(place int, key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if place == subscription {
		return !c.left[key]
	}
	return slices.Contains(c.read[place], key)
}

// leftovers are keys of transactions that nothing needs any more when all have ended.
func (w *world) leftovers() []string {
	var found []string
	for _, kv := range w.model.Contents("") {
		for _, part := range []string{"/open/", "/m/txn/", "/pending/"} {
			if strings.Contains(kv.Key, part) {
				found = append(found, "left behind: "+kv.Key)
			}
		}
	}
	return found
}
