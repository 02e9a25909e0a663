package crashpoint

import (
	"flag"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

// everything makes the test run the whole space.
var everything = flag.Bool("everything", false, "run every crash point of every scenario")

func TestMain(m *testing.M) {
	flag.Parse()
	debug.SetGCPercent(800) // next to nothing lives
	goleak.VerifyTestMain(m)
}

const (
	// everydayRuns says that an everyday test takes every 7th death of the scenarios that it takes. It and everydayScenarios are
	// primes, so that no property of the order is left out.
	everydayRuns = 7
	// progress is told each time so many scenarios are done.
	progress = 100
	// mostReported bounds the faults that one part prints.
	mostReported = 5
)

// No crash at any store effect breaks a promise (promises 1 to 6).
func TestEveryCrashPoint(t *testing.T) {
	for _, p := range parts() {
		t.Run(strings.ReplaceAll(p.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			s := &survey{t: t, began: time.Now()}
			scenarios := 0
			for scenario := range p.scenarios {
				scenarios++
				if !*everything && scenarios%everydayScenarios != 0 {
					continue
				}
				s.scenarios++
				p.explore(scenario, s.do)
				if s.scenarios%progress == 0 {
					t.Logf("%d scenarios, %d runs, %d with a fault so far", s.scenarios, s.runs, s.faulty)
				}
			}
			t.Logf("%d of %d scenarios, %d runs, %d effects, %d runs with a fault, %v", s.scenarios, scenarios, s.runs, s.effects, s.faulty, time.Since(s.began).Round(time.Second))
		})
	}
}

// survey performs runs and reports those that break something.
type survey struct {
	t                                       *testing.T
	began                                   time.Time
	scenarios, asked, runs, effects, faulty int
}

func (s *survey) do(run Run) Result {
	s.asked++
	if !*everything && len(run.Kills) == 1 && s.asked%everydayRuns != 0 {
		return Result{}
	}
	if !*everything && len(run.Kills) == 2 && s.asked%(everydayRuns*everydayRuns) != 0 {
		return Result{}
	}
	result := perform(s.t, run)
	s.runs++
	for _, n := range result.Effects {
		s.effects += n
	}
	if len(result.Faults) > 0 {
		s.faulty++
		s.report(run, result)
	}
	return result
}

func (s *survey) report(run Run, result Result) {
	if s.faulty > mostReported {
		s.t.Fail()
		return
	}
	s.t.Errorf("%v\n%#v\n  %s\nafter\n  %s", run, run, strings.Join(result.Faults, "\n  "), strings.Join(result.Trace, "\n  "))
}

func perform(t *testing.T, run Run) (result Result) {
	synctest.Test(t, func(*testing.T) { result = Do(run) })
	return result
}

// The same run has the same effects in the same order.
func TestRunsRepeat(t *testing.T) {
	for _, d := range []Deployment{Together, Shared, Apart} {
		plan := Plan{uses{Written, AddedWritten, Written}, Ending{ByCommit, Contrary, true}}
		run := Run{Scenario: Scenario{Deployment: d, Plans: []Plan{plan, plan}}, Kills: []Kill{{At: 9, Fate: After}}}
		first := perform(t, run)
		for range 20 {
			if again := perform(t, run); !slices.Equal(first.Trace, again.Trace) {
				t.Fatalf("%s\nbut then\n%s", strings.Join(first.Trace, "\n"), strings.Join(again.Trace, "\n"))
			}
		}
	}
}
