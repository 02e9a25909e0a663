package history

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// longestStory is how many operations of a transaction are told.
const longestStory = 60

// story tells what was seen of a transaction, an operation a line, in the order of the calls.
func (a *account) story() string {
	steps := slices.Clone(a.steps)
	slices.SortStableFunc(steps, func(x, y step) int { return cmp.Compare(x.Call, y.Call) })
	var text strings.Builder
	for i := range steps {
		if i == longestStory {
			fmt.Fprintf(&text, "\n    and %d more", len(steps)-i)
			break
		}
		s := &steps[i]
		fmt.Fprintf(&text, "\n    %12s - %-12s %-14s %s", clock(s.Call), clock(s.Return), s.Client, s.what())
	}
	return text.String()
}

func clock(at time.Duration) string {
	if at == Never {
		return "..."
	}
	return fmt.Sprintf("%.6fs", at.Seconds())
}
