package recorder

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pulsar-tc/pulsar-tc/internal/process"
)

var (
	server  = flag.String("server", "", "the server's binary; without it nothing is started")
	rewrite = flag.Bool("rewrite", false, "write the differences that were seen, with ? for the requirement of new ones")
	lines   = flag.String("lines", "", "append every line to this file")
)

const (
	observedFile    = "testdata/observed-pulsar-4.0.7.tsv"
	differencesFile = "testdata/differences.tsv"
)

// start starts the server on dataDir, and ends it with the test.
func start(t *testing.T, dataDir string) *process.Server {
	t.Helper()
	if *server == "" {
		t.Skip("left out: needs -server")
	}
	p, err := process.Start(t.Context(), process.Options{Binary: *server, DataDir: dataDir})
	if err != nil {
		t.Fatalf("%v; its last lines:\n%s", err, strings.Join(p.Lines(), "\n"))
	}
	t.Cleanup(func() { kill(t, p) })
	return p
}

func kill(t *testing.T, p *process.Server) {
	t.Helper()
	if err := p.Kill(); err != nil {
		t.Error(err)
	}
}

// target is where p is reached.
func target(p *process.Server, run string) Target {
	return Target{Address: strings.TrimPrefix(p.ServiceURL, "pulsar://"), WebURL: p.WebURL, Run: run}
}

func readTables(t *testing.T) (observed []Line, listed []Listed) {
	t.Helper()
	text, err := os.ReadFile(observedFile)
	if err != nil {
		t.Fatal(err)
	}
	if observed, err = ReadLines(bytes.NewReader(text)); err != nil {
		t.Fatalf("%s: %v", observedFile, err)
	}
	if text, err = os.ReadFile(differencesFile); err != nil {
		t.Fatal(err)
	}
	if listed, err = ReadListed(bytes.NewReader(text)); err != nil {
		t.Fatalf("%s: %v", differencesFile, err)
	}
	return observed, listed
}

// played is what a fresh server answers in scenario.
func played(t *testing.T, scenario Scenario) []Line {
	t.Helper()
	p := start(t, t.TempDir())
	ours, err := Record(target(p, "run"+scenario.Name+"x"), scenario)
	kill(t, p)
	if err != nil {
		t.Fatalf("%v; the server's last lines:\n%s", err, strings.Join(p.Lines(), "\n"))
	}
	return ours
}

// tries is how often a scenario is played before a difference counts: what it gives a fixed time comes later on a busy machine.
const tries = 3

// Every answer is what Pulsar 4.0.7 answers, or its difference is listed with the requirement that makes it ours.
func TestAnswers(t *testing.T) {
	observed, listed := readTables(t)
	var mu sync.Mutex
	seen := map[string][]Difference{} // by scenario
	t.Run("scenarios", func(t *testing.T) {
		for _, scenario := range Scenarios {
			t.Run(scenario.Name, func(t *testing.T) {
				t.Parallel()
				of := func(name string) bool { return name == scenario.Name }
				observed := slices.DeleteFunc(slices.Clone(observed), func(l Line) bool { return !of(l.Scenario) })
				listed := slices.DeleteFunc(slices.Clone(listed), func(l Listed) bool { return !of(l.Scenario) })
				ours := played(t, scenario)
				all, unlisted := Compare(ours, observed, listed)
				for try := 2; len(unlisted) > 0 && !*rewrite && try <= tries; try++ {
					t.Logf("played again, for try %d: not as listed: %s", try, unlisted)
					ours = played(t, scenario)
					all, unlisted = Compare(ours, observed, listed)
				}
				mu.Lock()
				defer mu.Unlock()
				seen[scenario.Name] = all
				appendLines(t, ours)
				if *rewrite {
					return
				}
				for _, d := range unlisted {
					t.Errorf("not as listed: %s", d)
				}
			})
		}
	})
	if *rewrite {
		rewriteDifferences(t, listed, seen)
	}
}

// appendLines keeps what was recorded, for a look by eye.
func appendLines(t *testing.T, recorded []Line) {
	t.Helper()
	if *lines == "" {
		return
	}
	f, err := os.OpenFile(*lines, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, line := range recorded {
		fmt.Fprintln(f, line)
	}
}

// rewriteDifferences keeps the rows of scenarios that did not run.
func rewriteDifferences(t *testing.T, listed []Listed, seen map[string][]Difference) {
	t.Helper()
	var rows []Listed
	for _, scenario := range Scenarios {
		differences, ran := seen[scenario.Name]
		for _, d := range differences {
			if d.Answers == d.Observed {
				continue
			}
			if d.Requirement == "" {
				d.Requirement = "?"
			}
			rows = append(rows, d.Listed)
		}
		for _, l := range listed {
			if !ran && l.Scenario == scenario.Name {
				rows = append(rows, l)
			}
		}
	}
	var out bytes.Buffer
	if err := WriteListed(&out, rows); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(differencesFile, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// The tables are well formed: each difference has a requirement, and each scenario of the table is played.
func TestTables(t *testing.T) {
	observed, listed := readTables(t)
	played := map[string]bool{}
	for _, scenario := range Scenarios {
		played[scenario.Name] = true
	}
	for _, line := range observed {
		if !played[line.Scenario] {
			t.Fatalf("nothing plays %s", line)
		}
	}
	missing := slices.DeleteFunc(listed, func(l Listed) bool { return strings.Trim(l.Requirement, "? ") != "" })
	if len(missing) > 0 {
		t.Errorf("%d differences without a requirement, the first is %+v", len(missing), missing[0])
	}
}

// An unlisted difference, a listed one that changed, a listed one that is gone: each is seen. Texts and times are not compared.
func TestCompare(t *testing.T) {
	line := func(step, answer string) Line { return Line{"S", step, "REQ", answer} }
	observed := []Line{line("same", `ok msg="a \" b"`), line("listed", "ok"), line("changed", "ok"), line("gone", "ok"), line("twice", "1"), line("twice", "2"), line("missing", "ok")}
	ours := []Line{line("same", `ok msg="other" t=2s`), line("listed", "err"), line("changed", "err2"), line("gone", "ok"), line("twice", "1"), line("twice", "3"), line("extra", "ok")}
	listed := []Listed{{"S", "listed", "REQ", "err", "TC-1"}, {"S", "changed", "REQ", "err1", "TC-1"}, {"S", "gone", "REQ", "err", "TC-1"}}
	all, unlisted := Compare(ours, observed, listed)
	var steps []string
	for _, d := range unlisted {
		steps = append(steps, d.Step)
	}
	if got := strings.Join(steps, " "); got != "changed gone twice missing extra" || len(all) != 6 {
		t.Errorf("unlisted: %s, %d in all", got, len(all))
	}
}
