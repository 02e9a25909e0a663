package sim

import (
	"fmt"
	"strings"
)

// Schedule names one simulation: the same schedule runs the same way again.
type Schedule struct {
	Seed uint64
	// Mutant is the name of a planted bug; empty: none.
	Mutant string
	// Keep are the incidents that may happen, by name; nil lets happen whatever the seed draws. An incident is one step of a
	// client or one fault.
	Keep []string
	// Verbose keeps the trace.
	Verbose bool
}

// Result is what a schedule led to.
type Result struct {
	// Broken is the first rule that did not hold; nil: all held.
	Broken *Violation
	// Incidents are those that happened, in order.
	Incidents []string
	// Events is how many events the scheduler released.
	Events int
	// Hash stands for all events in order, with the time of each.
	Hash uint64
	// Trace are the events, if the schedule is verbose.
	Trace []string
	// Counts say what happened, by kind.
	Counts map[string]int
}

// Violation is a broken rule.
type Violation struct {
	Rule   string
	Detail string
}

func (v *Violation) String() string { return v.Rule + ": " + v.Detail }

// Command is the shell command that runs the schedule again.
func (s Schedule) Command() string {
	command := fmt.Sprintf("go test ./internal/sim -run TestSchedule -v -args -seed %d", s.Seed)
	if s.Mutant != "" {
		command += " -mutant '" + s.Mutant + "'"
	}
	if s.Keep != nil {
		command += " -keep '" + strings.Join(s.Keep, ";") + "'"
	}
	return command
}

// chance draws from a seed by label: the same label draws the same, whatever else was drawn, so that a schedule from which
// incidents were taken out is otherwise the same.
type chance uint64

// draw returns 64 random bits. The labels must differ as a pair.
func (c chance) draw(what, label string) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211 // FNV-1a
	h := uint64(offset) ^ uint64(c)
	for _, s := range [2]string{what, label} {
		for i := 0; i < len(s); i++ {
			h = (h ^ uint64(s[i])) * prime
		}
		h = (h ^ 0xff) * prime
	}
	return mixed(h)
}

// mixed is the finalizer of SplitMix64.
func mixed(h uint64) uint64 {
	h ^= h >> 30
	h *= 0xbf58476d1ce4e5b9
	h ^= h >> 27
	h *= 0x94d049bb133111eb
	return h ^ h>>31
}

// unit draws from 0 to 1.
func (c chance) unit(what, label string) float64 { return float64(c.draw(what, label)>>11) / (1 << 53) }

// below draws from 0 to n-1.
func (c chance) below(n int, what, label string) int { return int(c.draw(what, label) % uint64(n)) }

// keepSet is Schedule.Keep for lookups.
func keepSet(keep []string) map[string]bool {
	if keep == nil {
		return nil
	}
	set := make(map[string]bool, len(keep))
	for _, name := range keep {
		set[name] = true
	}
	return set
}
