package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"text/tabwriter"
)

// line is one figure beside what it is compared with.
type line struct {
	What    string  `json:"what"`
	Figure  float64 `json:"figure"`
	Unit    string  `json:"unit"`
	Against string  `json:"against,omitempty"` // what Ceiling is
	Ceiling float64 `json:"ceiling,omitempty"`
	Ratio   float64 `json:"ratio,omitempty"` // Figure / Ceiling
	Target  string  `json:"target,omitempty"`
	Verdict string  `json:"verdict,omitempty"` // holds, missed, or left out: and why
}

// ceiling is a figure of something else, measured in the same run.
type ceiling struct {
	name  string
	value float64
}

func verdict(holds bool) string {
	if holds {
		return "holds"
	}
	return "missed"
}

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// figure is a line without a target.
func figure(what string, value float64, unit string) line {
	return line{What: what, Figure: value, Unit: unit}
}

func (l line) compared(c ceiling) line {
	l.Against, l.Ceiling = c.name, c.value
	if c.value != 0 {
		l.Ratio = l.Figure / c.value
	}
	return l
}

func (l line) atLeast(bound float64) line {
	l.Target, l.Verdict = ">= "+number(bound), verdict(l.Figure >= bound)
	return l
}

func (l line) atMost(bound float64) line {
	l.Target, l.Verdict = "<= "+number(bound), verdict(l.Figure <= bound)
	return l
}

func (l line) ratioAtLeast(bound float64) line {
	l.Target, l.Verdict = "ratio >= "+number(bound), verdict(l.Ratio >= bound)
	return l
}

func (l line) ratioAtMost(bound float64) line {
	l.Target, l.Verdict = "ratio <= "+number(bound), verdict(l.Ratio <= bound)
	return l
}

func leftOut(what, why string) line { return line{What: what, Verdict: "left out: " + why} }

// short is a number for people: three digits that count.
func short(f float64) string {
	switch {
	case f == 0:
		return ""
	case f >= 100:
		return strconv.FormatFloat(f, 'f', 0, 64)
	}
	return strconv.FormatFloat(f, 'g', 3, 64)
}

func printTable(w io.Writer, lines []line) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "what\tfigure\tunit\tbeside\tits figure\tratio\ttarget\tverdict")
	for _, l := range lines {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n",
			l.What, short(l.Figure), l.Unit, l.Against, short(l.Ceiling), short(l.Ratio), l.Target, l.Verdict)
	}
	return table.Flush()
}

func writeJSON(path string, lines []line) error {
	encoded, err := json.MarshalIndent(lines, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(encoded, '\n'), 0o644)
}
