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
		faults = append(faults, w.atomic(i, outcome)...)
	}
	return faults
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

// atomic compares every participant with the outcome. Of a write without a definite answer a commit may have either.
func (w *world) atomic(i int, outcome txn.Action) []string {
	var faults []string
	for place, answer := range w.transactions[i].writes {
		applied := w.clients.applied(place, key(i, place))
		written := answer != nil && *answer == history.Done
		if outcome == txn.Commit && written && !applied {
			faults = append(faults, fmt.Sprintf("transaction %d was committed, and %s has nothing of it", i, participants()[place]))
		}
		if applied && (outcome == txn.Abort || answer == nil || *answer == history.Refused) {
			faults = append(faults, fmt.Sprintf("transaction %d: %s shows what was not committed", i, participants()[place]))
		}
	}
	return faults
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
