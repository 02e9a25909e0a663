package main

import (
	_ "embed"
	"fmt"
	"strings"
)

//go:embed testdata/tests.tsv
var testsTSV string

//go:embed testdata/known.tsv
var knownTSV string

// test is one test function of the suite.
type test struct {
	pkg, tier, part, name string
	// alone: it passes with no server at all, and so shows nothing.
	alone bool
}

// group is what runs in one process, in this order.
type group struct {
	title string
	has   func(test) bool
	// mayFail is how many tests that are not alone may fail.
	mayFail int
}

const (
	clientPackage = "pulsar"
	adminPackage  = "pulsaradmin/pkg/admin"
)

// groups are the tiers with their floors: T1 138 of 139, T2 9 of 9, T3 112 of 112, and 45 tests of the admin client.
var groups = []group{
	{"T1 core", func(t test) bool { return t.tier == "T1" && t.part == "core" }, 0},
	{"T1 extended", func(t test) bool { return t.tier == "T1" && t.part != "core" }, 1},
	{"T2", func(t test) bool { return t.tier == "T2" }, 0},
	{"T3", func(t test) bool { return t.tier == "T3" && t.pkg == clientPackage }, 0},
	{"admin", func(t test) bool { return t.pkg == adminPackage }, 23},
}

func listed() ([]test, error) {
	var all []test
	for row, cells := range rowsOf(testsTSV) {
		if len(cells) != 5 {
			return nil, fmt.Errorf("testdata/tests.tsv, row %d: %d cells, want 5", row+2, len(cells))
		}
		all = append(all, test{pkg: cells[0], tier: cells[1], part: cells[2], name: cells[3], alone: cells[4] == "yes"})
	}
	return all, nil
}

// known returns the reason of each failure that is a decision of the server.
func known() map[string]string {
	reasons := map[string]string{}
	for _, cells := range rowsOf(knownTSV) {
		reasons[cells[0]] = cells[len(cells)-1]
	}
	return reasons
}

// rowsOf splits a table without its heading.
func rowsOf(table string) [][]string {
	var rows [][]string
	for i, line := range strings.Split(strings.TrimSpace(table), "\n") {
		if i > 0 {
			rows = append(rows, strings.Split(line, "\t"))
		}
	}
	return rows
}
