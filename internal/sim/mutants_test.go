package sim

import (
	"testing"
	"time"
)

// mutantSeeds is how many seeds a planted bug is given to be caught.
const mutantSeeds = 8000

// TestMutants holds that every planted bug is caught, and that nothing is broken without it in the schedule that catches it.
func TestMutants(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector runs goroutines in random order")
	}
	for _, m := range Mutants() {
		t.Run(m.Name, func(t *testing.T) {
			began := time.Now()
			for seed := range uint64(mutantSeeds) {
				result := Run(t, Schedule{Seed: *firstFlag + seed, Mutant: m.Name})
				if result.Broken == nil {
					continue
				}
				if without := Run(t, Schedule{Seed: *firstFlag + seed}); without.Broken != nil {
					t.Errorf("seed %d breaks a rule without the bug, too: %s", *firstFlag+seed, without.Broken.Rule)
					continue
				}
				t.Logf("%s: caught after %d seeds, in %v: %s", m.Bug, seed+1, time.Since(began).Round(time.Millisecond), result.Broken.Rule)
				return
			}
			t.Errorf("%s: not caught by %d seeds", m.Bug, mutantSeeds)
		})
	}
}
