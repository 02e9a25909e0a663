package history

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

// checkIDs holds promise 5: no id twice, and one asked for after another was answered is larger.
func (h *History) checkIDs() []Anomaly {
	var found []Anomaly
	first := map[txn.ID]Open{}
	for _, op := range h.opens {
		if before, twice := first[op.ID]; twice {
			found = append(found, Anomaly{IDRepeated, op.ID, "", fmt.Sprintf("answered at %v and at %v", before.Return, op.Return)})
			continue
		}
		first[op.ID] = op
	}
	byCall := slices.SortedFunc(slices.Values(h.opens), func(a, b Open) int { return cmp.Compare(a.Call, b.Call) })
	byReturn := slices.SortedFunc(slices.Values(h.opens), func(a, b Open) int { return cmp.Compare(a.Return, b.Return) })
	largest := map[uint64]Open{} // of each coordinator, among those answered before the call
	next := 0
	for _, op := range byCall {
		for ; byReturn[next].Return < op.Call; next++ {
			earlier := byReturn[next]
			if known, ok := largest[earlier.ID.Most]; !ok || known.ID.Least < earlier.ID.Least {
				largest[earlier.ID.Most] = earlier
			}
		}
		if earlier, ok := largest[op.ID.Most]; ok && op.ID.Least < earlier.ID.Least {
			found = append(found, Anomaly{IDNotGrowing, op.ID, "",
				fmt.Sprintf("asked at %v, when %s had been answered at %v", op.Call, earlier.ID, earlier.Return)})
		}
	}
	return found
}
