package main

import (
	"fmt"
	"sort"
	"strings"
)

// report counts what became of the tests of each group.
type report struct {
	verbose  bool
	known    map[string]string
	lines    []string // one per group
	failures []string
	later    []string // passed, but not at the first try
	alone    []string
	short    []string // groups below their floor
}

func newReport(verbose bool) *report { return &report{verbose: verbose, known: known()} }

func (r *report) add(g group, tests []test, results map[string]result) {
	counted, passed := 0, 0
	var seconds float64
	for _, t := range tests {
		result := results[t.name]
		seconds += result.seconds
		if t.alone {
			r.alone = append(r.alone, t.name)
		} else {
			counted++
		}
		if result.before != "" {
			r.later = append(r.later, fmt.Sprintf("%-12s %s: %s", g.title, t.name, result.before))
		}
		switch {
		case result.passed && !t.alone:
			passed++
		case !result.passed:
			r.failures = append(r.failures, r.failure(g, t, result, r.known[t.name]))
		}
	}
	line := fmt.Sprintf("%-12s %3d of %3d passed, %6.1f s", g.title, passed, counted, seconds)
	if counted-passed > g.mayFail {
		line += fmt.Sprintf("   BELOW THE FLOOR: %d may fail", g.mayFail)
		r.short = append(r.short, g.title)
	}
	r.lines = append(r.lines, line)
}

func (r *report) failure(g group, t test, result result, reason string) string {
	if reason == "" {
		reason = firstComplaint(result.output)
	}
	text := fmt.Sprintf("%-12s %s: %s", g.title, t.name, reason)
	if r.verbose {
		text += "\n" + result.output
	}
	return text
}

// firstComplaint is the first thing that a failed test says about its failure.
func firstComplaint(output string) string {
	for _, mark := range []string{"Error:", "panic:", "_test.go:", "the process of the tests"} {
		if i := strings.Index(output, mark); i >= 0 {
			complaint, _, _ := strings.Cut(output[i:], "\tTest:")
			words := strings.Fields(complaint)
			return strings.Join(words[:min(len(words), 30)], " ")
		}
	}
	return "it says nothing"
}

// print returns the exit code. partial: only some tests were asked for, so every one of them counts.
func (r *report) print(partial bool) int {
	fmt.Println("-- conformance of", module)
	fmt.Println(strings.Join(r.lines, "\n"))
	if len(r.failures) > 0 {
		fmt.Printf("-- not passed: %d\n%s\n", len(r.failures), strings.Join(r.failures, "\n"))
	}
	if len(r.later) > 0 {
		fmt.Printf("-- passed, but not at the first try: %d\n%s\n", len(r.later), strings.Join(r.later, "\n"))
	}
	if len(r.alone) > 0 {
		sort.Strings(r.alone)
		fmt.Printf("-- run but not counted, because they pass with no server: %s\n", strings.Join(r.alone, ", "))
	}
	if len(r.short) > 0 || partial && len(r.failures) > 0 {
		return 1
	}
	return 0
}
