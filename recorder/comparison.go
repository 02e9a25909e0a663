package recorder

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// Listed is a difference that is ours: for all lines of one scenario, step and request, the answers and the requirement that
// asks for them.
type Listed struct {
	Scenario, Step, Request string
	Answers                 string // joined as in answersOf
	Requirement             string // id of a spec's or the design's requirement, or "later"
}

// Difference is one that is not listed, or a listed one that is gone.
type Difference struct {
	Listed
	Observed string // what Pulsar answered
}

func (d Difference) String() string {
	return fmt.Sprintf("%s\t%s\t%s\n\tPulsar: %s\n\tours:   %s", d.Scenario, d.Step, d.Request, d.Observed, d.Answers)
}

const separator = " || " // between the answers of one key

// lineKey is what lines of two recordings have in common.
type lineKey struct{ scenario, step, request string }

// notCompared are texts, which are for people, and the time that an answer took, which a busy machine makes longer; codes decide. Where a
// wait is the point, the scenario gives up on the answer and the line says so.
var notCompared = regexp.MustCompile(` (msg|reason)="(\\.|[^"\\])*"| t=\d+s$`)

// answersOf joins the answers of lines with the same key, in order, and returns the keys in order of appearance.
func answersOf(lines []Line) (map[lineKey]string, []lineKey) {
	answers := map[lineKey]string{}
	var order []lineKey
	for _, line := range lines {
		key := lineKey{line.Scenario, line.Step, line.Request}
		answer := notCompared.ReplaceAllString(line.Answer, "")
		if earlier, ok := answers[key]; ok {
			answers[key] = earlier + separator + answer
			continue
		}
		answers[key] = answer
		order = append(order, key)
	}
	return answers, order
}

// Compare returns how ours differs from observed, all differences and those that listed does not have.
func Compare(ours, observed []Line, listed []Listed) (all, unlisted []Difference) {
	ourAnswers, ourOrder := answersOf(ours)
	observedAnswers, observedOrder := answersOf(observed)
	known := map[lineKey]Listed{}
	for _, l := range listed {
		known[lineKey{l.Scenario, l.Step, l.Request}] = l
	}
	keys := observedOrder
	for _, key := range ourOrder {
		if _, ok := observedAnswers[key]; !ok {
			keys = append(keys, key)
		}
	}
	for _, key := range keys {
		l, isListed := known[key]
		if ourAnswers[key] == observedAnswers[key] && !isListed {
			continue
		}
		answers := orNone(ourAnswers, key)
		d := Difference{Listed{key.scenario, key.step, key.request, answers, l.Requirement}, orNone(observedAnswers, key)}
		all = append(all, d)
		if !isListed || l.Answers != answers || d.Answers == d.Observed {
			unlisted = append(unlisted, d)
		}
	}
	return all, unlisted
}

// orNone is what a recording has under key.
func orNone(answers map[lineKey]string, key lineKey) string {
	if answer, ok := answers[key]; ok {
		return answer
	}
	return "(no such line)"
}

// ReadLines reads a recording.
func ReadLines(r io.Reader) ([]Line, error) {
	var lines []Line
	err := readTable(r, 4, func(c []string) { lines = append(lines, Line{c[0], c[1], c[2], c[3]}) })
	return lines, err
}

// ReadListed reads a table of differences.
func ReadListed(r io.Reader) ([]Listed, error) {
	var listed []Listed
	err := readTable(r, 5, func(c []string) { listed = append(listed, Listed{c[0], c[1], c[2], c[4], c[3]}) })
	return listed, err
}

// WriteListed writes a table of differences: scenario, step, request, requirement, our answers.
func WriteListed(w io.Writer, listed []Listed) error {
	for _, l := range listed {
		columns := []string{l.Scenario, l.Step, l.Request, l.Requirement, l.Answers}
		if _, err := fmt.Fprintln(w, strings.Join(columns, "\t")); err != nil {
			return fmt.Errorf("write differences: %w", err)
		}
	}
	return nil
}

// readTable calls row for each line that has as many columns as it must.
func readTable(r io.Reader, columns int, row func([]string)) error {
	scanner := bufio.NewScanner(r)
	scanner.Buffer(nil, 1<<20)
	for number := 1; scanner.Scan(); number++ {
		cells := strings.Split(scanner.Text(), "\t")
		if len(cells) != columns {
			return fmt.Errorf("line %d has %d columns, want %d", number, len(cells), columns)
		}
		row(slices.Clone(cells))
	}
	if err := scanner.Err(); err != nil {
		return fmt.Errorf("read table: %w", err)
	}
	return nil
}
