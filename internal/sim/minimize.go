package sim

import (
	"slices"
	"testing"
	"time"
)

// Minimized takes incidents out of a schedule that broke a rule, as long as it still breaks that rule, for at most the given
// time. found is what the schedule led to. The result is its input if leaving out nothing gives another result.
func Minimized(t *testing.T, schedule Schedule, found Result, limit time.Duration) (Schedule, Result) {
	until := time.Now().Add(limit)
	breaks := func(keep []string) (Result, bool) {
		r := Run(t, Schedule{Seed: schedule.Seed, Mutant: schedule.Mutant, Keep: keep})
		return r, r.Broken != nil && r.Broken.Rule == found.Broken.Rule
	}
	keep := slices.Clone(found.Incidents)
	if _, same := breaks(keep); !same {
		return schedule, found
	}
	for size := (len(keep) + 1) / 2; size > 0 && time.Now().Before(until); {
		shorter, smaller := false, keep
		for from := 0; from < len(smaller) && time.Now().Before(until); {
			without := slices.Delete(slices.Clone(smaller), from, min(from+size, len(smaller)))
			result, same := breaks(without)
			if !same {
				from += size
				continue
			}
			smaller, shorter, found = without, true, result
		}
		// What was kept and did not happen is of no use.
		keep = slices.DeleteFunc(smaller, func(name string) bool { return !slices.Contains(found.Incidents, name) })
		if !shorter || size > 1 {
			size /= 2
		}
	}
	schedule.Keep = keep
	return schedule, found
}
