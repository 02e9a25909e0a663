package crashpoint

import (
	"iter"
	"slices"
)

// A part of the space: every scenario of it, with every death.
type part struct {
	name      string
	scenarios iter.Seq[Scenario]
	late      []int // values of Kill.Late
	twice     bool  // kill the successor as well
}

// parts are the whole space. Two topics that are sent to are the same but for their names, so of two scenarios that differ in
// them only one is taken.
func parts() []part {
	return []part{
		{"one transaction", one(all(), allEndings()), []int{0, 2, 3, 8}, false},
		{"one transaction, two deaths", one(written(), mostEndings()), []int{8}, true},
		{"two transactions", several(2, plans(written(), plainEndings()), SideBySide, Nested), []int{8}, false},
		{"three transactions", several(3, plans(few(), plainEndings()), SideBySide, Nested), []int{8}, false},
		{"cumulative", cumulative(several(2, plans(acknowledged(), plainEndings()), SideBySide, Nested, InTurn)), []int{0, 3, 8}, false},
	}
}

type uses = [participantCount]Use

// all is every use of every participant.
func all() []uses {
	var found []uses
	for a := range AddedWritten + 1 {
		for b := range AddedWritten + 1 {
			for s := range AddedWritten + 1 {
				found = append(found, uses{a, b, s})
			}
		}
	}
	return found
}

// written is every set of participants that register themselves.
func written() []uses {
	return slices.DeleteFunc(all(), func(u uses) bool {
		return slices.ContainsFunc(u[:], func(use Use) bool { return use != Unused && use != Written })
	})
}

func few() []uses {
	return []uses{{Unused, Unused, Written}, {Unused, Written, Unused}, {Written, Written, Written}}
}

func acknowledged() []uses { return []uses{{Unused, Unused, Written}, {Unused, Written, Written}} }

func plainEndings() []Ending { return []Ending{{Way: ByCommit}, {Way: ByAbort}, {Way: ByTimeout}} }

// mostEndings are the plain ones, and ENDs that meet another, or the deadline.
func mostEndings() []Ending {
	return append(plainEndings(), Ending{ByCommit, Contrary, true}, Ending{ByTimeout, Contrary, true})
}

func allEndings() []Ending {
	endings := plainEndings()
	for _, plain := range plainEndings() {
		for _, then := range []Then{Again, Contrary} {
			for _, atOnce := range []bool{false, true} {
				endings = append(endings, Ending{plain.Way, then, atOnce})
			}
		}
	}
	return endings
}

func plans(uses []uses, endings []Ending) []Plan {
	var all []Plan
	for _, u := range uses {
		for _, e := range endings {
			all = append(all, Plan{u, e})
		}
	}
	return all
}

func one(uses []uses, endings []Ending) iter.Seq[Scenario] {
	return several(1, plans(uses, endings), SideBySide)
}

// several is every multiset of n plans.
func several(n int, plans []Plan, courses ...Course) iter.Seq[Scenario] {
	return func(yield func(Scenario) bool) {
		for chosen := range multisets(n, len(plans)) {
			scenario := Scenario{}
			for _, i := range chosen {
				scenario.Plans = append(scenario.Plans, plans[i])
			}
			if mirrored(scenario.Plans) {
				continue
			}
			for _, scenario.Course = range courses {
				for _, scenario.Deployment = range []Deployment{Together, Shared, Apart} {
					if !yield(scenario) {
						return
					}
				}
			}
		}
	}
}

// cumulative is every scenario of two transactions with cumulative ACKs, and with the two exchanged: the second one covers more.
func cumulative(scenarios iter.Seq[Scenario]) iter.Seq[Scenario] {
	return func(yield func(Scenario) bool) {
		for s := range scenarios {
			s.Cumulative = true
			exchanged := s
			exchanged.Plans = []Plan{s.Plans[1], s.Plans[0]}
			if !yield(s) || s.Plans[0] != s.Plans[1] && !yield(exchanged) {
				return
			}
		}
	}
}

// multisets yields every non-decreasing choice of n of the numbers below limit.
func multisets(n, limit int) iter.Seq[[]int] {
	return func(yield func([]int) bool) {
		var choose func(chosen []int, from int) bool
		choose = func(chosen []int, from int) bool {
			if len(chosen) == n {
				return yield(slices.Clone(chosen))
			}
			for i := from; i < limit; i++ {
				if !choose(append(chosen, i), i) {
					return false
				}
			}
			return true
		}
		choose(nil, 0)
	}
}

// mirrored reports whether the plans with the two topics exchanged come before these.
func mirrored(plans []Plan) bool {
	var here, there []uses
	for _, p := range plans {
		u := p.Uses
		here = append(here, u)
		there = append(there, uses{u[secondTopic], u[firstTopic], u[subscription]})
	}
	return slices.CompareFunc(there, here, func(a, b uses) int { return slices.Compare(a[:], b[:]) }) < 0
}

// explore performs every run of one scenario. do performs one run.
func (p part) explore(s Scenario, do func(Run) Result) {
	for _, last := range []bool{false, true} {
		undisturbed := do(Run{Scenario: s, Last: last})
		p.killEverywhere(Run{Scenario: s, Last: last}, undisturbed.Effects[0], do)
		if undisturbed.Choices == 0 {
			return // no other order
		}
	}
}

func (p part) killEverywhere(run Run, effects int, do func(Run) Result) {
	for at := 1; at <= effects; at++ {
		for _, kill := range p.fates(run.Deployment) {
			kill.At = at
			killed := run
			killed.Kills = append(slices.Clone(run.Kills), kill)
			result := do(killed)
			if p.twice && len(killed.Kills) == 1 && len(result.Effects) == 2 {
				p.killEverywhere(killed, result.Effects[1], do)
			}
		}
	}
}

func (p part) fates(d Deployment) []Kill {
	kills := []Kill{{Fate: Before}, {Fate: After}}
	if d == Together {
		return kills
	}
	for _, late := range p.late {
		kills = append(kills, Kill{Fate: Late, Late: late})
	}
	return kills
}
