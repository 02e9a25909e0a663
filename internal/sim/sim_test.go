package sim

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

var (
	seedFlag   = flag.Uint64("seed", 0, "of TestSchedule")
	mutantFlag = flag.String("mutant", "", "planted bug of TestSchedule")
	keepFlag   = flag.String("keep", "", "incidents of TestSchedule, separated by semicolons; empty: those of the seed")
	seedsFlag  = flag.Int("seeds", 2000, "how many seeds TestSeeds runs; a tenth where the race detector slows it down")
	firstFlag  = flag.Uint64("first", 1, "the first seed of TestSeeds and TestSoak")
	sameFlag   = flag.Int("same", 50, "how many seeds TestSameSeedSameTrace runs twice")
	soakFlag   = flag.Duration("soak", 0, "how long TestSoak runs")
)

// TestMain runs everything on one core: what goroutines of the product do between two events is then in the
// same order each time.
func TestMain(m *testing.M) {
	flag.Parse()
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(400) // little lives, much is made
	goleak.VerifyTestMain(m)
}

// TestSchedule runs one schedule and prints its trace.
func TestSchedule(t *testing.T) {
	if *seedFlag == 0 {
		t.Skip("-seed says which")
	}
	s := Schedule{Seed: *seedFlag, Mutant: *mutantFlag, Verbose: testing.Verbose()}
	if *keepFlag != "" {
		s.Keep = strings.Split(*keepFlag, ";")
	}
	began := time.Now()
	result := Run(t, s)
	t.Logf("%d events in %v, incidents: %v, counts: %v", result.Events, time.Since(began), result.Incidents, result.Counts)
	if testing.Verbose() {
		for _, line := range result.Trace {
			fmt.Fprintln(os.Stdout, line)
		}
	}
	if result.Broken != nil {
		t.Fatalf("%s", result.Broken)
	}
}

// TestSeeds runs many schedules.
func TestSeeds(t *testing.T) {
	seeds := *seedsFlag
	if testing.Short() || raceDetector {
		seeds /= 10
	}
	s := newSession(t)
	for seed := range uint64(seeds) {
		s.run(Schedule{Seed: *firstFlag + seed})
	}
	s.report()
}

// TestSoak runs schedules for a time.
func TestSoak(t *testing.T) {
	if *soakFlag == 0 {
		t.Skip("-soak says for how long")
	}
	s := newSession(t)
	reported := time.Now()
	for seed := *firstFlag; time.Since(s.began) < *soakFlag; seed++ {
		s.run(Schedule{Seed: seed})
		if time.Since(reported) > time.Minute {
			s.report()
			reported = time.Now()
		}
	}
	s.report()
}

// TestSameSeedSameTrace: a seed reproduces everything. Where a busy machine takes the processor away at a moment at which two
// goroutines of the product race, a third run must be as one of two that differ.
func TestSameSeedSameTrace(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector runs goroutines in random order")
	}
	for seed := range uint64(*sameFlag) {
		schedule := Schedule{Seed: seed + 1, Verbose: true}
		first, second := Run(t, schedule), Run(t, schedule)
		if first.Hash == second.Hash {
			continue
		}
		if third := Run(t, schedule); third.Hash == first.Hash || third.Hash == second.Hash {
			continue
		}
		at := 0
		for at < min(len(first.Trace), len(second.Trace)) && first.Trace[at] == second.Trace[at] {
			at++
		}
		t.Errorf("seed %d:\n%s\n  and\n%s", schedule.Seed, around(first.Trace, at), around(second.Trace, at))
	}
}

// around is some lines of a trace.
func around(trace []string, at int) string {
	return strings.Join(trace[max(0, min(at, len(trace))-3):min(at+5, len(trace))], "\n")
}

// session is a row of schedules.
type session struct {
	t         *testing.T
	began     time.Time
	schedules int
	events    int
	counts    map[string]int
}

func newSession(t *testing.T) *session {
	return &session{t: t, began: time.Now(), counts: map[string]int{}}
}

func (s *session) run(schedule Schedule) {
	result := Run(s.t, schedule)
	s.schedules++
	s.events += result.Events
	for kind, n := range result.Counts {
		s.counts[kind] += n
	}
	if result.Broken != nil {
		s.t.Error(explain(s.t, schedule, result))
	}
}

// minimizing bounds how long a schedule that broke a rule is made smaller.
const minimizing = 20 * time.Second

// explain says what broke, in which schedule, and how to run that again.
func explain(t *testing.T, schedule Schedule, result Result) string {
	smaller, result := Minimized(t, schedule, result, minimizing)
	return fmt.Sprintf("seed %d, mutant %q: %s\nwith %d incidents: %s\n%s", schedule.Seed, schedule.Mutant, result.Broken,
		len(smaller.Keep), strings.Join(smaller.Keep, "; "), smaller.Command())
}

func (s *session) report() {
	took := time.Since(s.began)
	s.t.Logf("%d schedules, %d events in %v: %.0f schedules/s; %v", s.schedules, s.events, took, float64(s.schedules)/took.Seconds(), s.counts)
}
