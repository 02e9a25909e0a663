package crashpoint

import (
	"fmt"
	"slices"
)

// Course is how transactions of one scenario lie to each other in time.
type Course uint8

const (
	// SideBySide: all do their first operation at once, then their second, and so on.
	SideBySide Course = iota
	// Nested: each does everything but its end, then they end, the last one first.
	Nested
	// InTurn: each begins when the one before has ended.
	InTurn
)

// Deployment is which processes there are.
type Deployment uint8

const (
	// Together is one process on a store of its own, with the coordinator and the topics: what was asked of a store that died
	// with it never happens later.
	Together Deployment = iota
	// Shared is such a process on a store of others: it leads under a lease, owns its topics under that of a session, and what it
	// asked of the store may happen later.
	Shared
	// Apart is a process with the coordinator and one with the topics on a store of others: each dies alone, and what it asked
	// of the store may happen later.
	Apart
)

// Scenario is what clients do, of which processes.
type Scenario struct {
	Deployment Deployment
	Course     Course
	Plans      []Plan
	// Cumulative says that an ACK is of the message of its transaction and of those of the transactions before it.
	Cumulative bool
}

// covers reports whether what a transaction writes to a participant is also for the message of another there.
func (s Scenario) covers(transaction, other, place int) bool {
	return transaction == other || s.Cumulative && place == subscription && transaction > other
}

func (s Scenario) String() string {
	return fmt.Sprintf("%s %s%s %v", []string{"together", "shared", "apart"}[s.Deployment], []string{"side by side", "nested", "in turn"}[s.Course],
		[]string{"", " cumulative"}[asInt(s.Cumulative)], s.Plans)
}

// rounds are the operations of all clients. Those of one round are asked at once, the next round when all are answered.
func (s Scenario) rounds() [][]operation {
	var all [][]operation
	switch s.Course {
	case SideBySide:
		for i, plan := range s.Plans {
			all = merge(all, append(single(plan.beginning(i)), plan.end(i)...))
		}
	case Nested:
		for i, plan := range s.Plans {
			all = append(all, single(plan.beginning(i))...)
		}
		for i, plan := range slices.Backward(s.Plans) {
			all = append(all, plan.end(i)...)
		}
	case InTurn:
		for i, plan := range s.Plans {
			all = append(all, append(single(plan.beginning(i)), plan.end(i)...)...)
		}
	}
	return all
}

func single(ops []operation) [][]operation {
	var rounds [][]operation
	for _, op := range ops {
		rounds = append(rounds, []operation{op})
	}
	return rounds
}

func merge(a, b [][]operation) [][]operation {
	for i, round := range b {
		if i == len(a) {
			a = append(a, nil)
		}
		a[i] = append(a[i], round...)
	}
	return a
}

// Fate is what becomes of the store effect at which a process is killed, and of the others that it waits for then.
type Fate uint8

const (
	// Before: none of them happens.
	Before Fate = iota
	// After: the one happens, the others do not, and nobody hears of it.
	After
	// Late: all of them happen when the successor has come as far as Kill.Late says.
	Late
)

// Kill is a death.
type Kill struct {
	// At is the effect at which the process is killed that asks for it, counted from 1 on since the clients began or since the
	// kill before. The first one that is not reached is instead when the clients are done.
	At   int
	Fate Fate
	// Late counts two for each effect of the successor, without the leases and the record of its session: 1 is just before the
	// first one, which is a fence, 2 just behind it, before the successor hears of it, and so on. 0 is before it begins.
	Late int
}

func (k Kill) String() string {
	if k.Fate == Late {
		return fmt.Sprintf("killed at %d, applied late after %d", k.At, k.Late)
	}
	return fmt.Sprintf("killed %s %d", []string{"before", "after"}[k.Fate], k.At)
}

// Run is one scenario with its deaths.
type Run struct {
	Scenario
	Kills []Kill
	// Last takes of the effects that wait the last one in order of their descriptions, else the first one is taken.
	Last bool
}

func (r Run) String() string {
	order := "least"
	if r.Last {
		order = "greatest"
	}
	return fmt.Sprintf("%s, %s first: %v", r.Scenario, order, r.Kills)
}
