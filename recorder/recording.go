package recorder

import (
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

// Target is the server that is recorded.
type Target struct {
	Address string // host:port of the binary protocol
	WebURL  string // of its HTTP service, without a slash at the end
	Run     string // part of every topic name, so that runs on one server do not meet
}

// Line is one answer.
type Line struct {
	Scenario, Step, Request, Answer string
}

func (l Line) String() string {
	return strings.Join([]string{l.Scenario, l.Step, l.Request, l.Answer}, "\t")
}

// recording is one scenario while it runs. One goroutine uses it.
type recording struct {
	target      Target
	scenario    string
	names       map[uint64]string // least significant halves of ids by the name that the lines show
	connections []*connection
	lines       []Line
}

// Record plays one scenario. Scenarios are no more than their steps and take it that the server is there: one that stops
// because it is not returns an error beside the lines so far.
func Record(target Target, scenario Scenario) (lines []Line, err error) {
	r := &recording{target: target, scenario: scenario.Name, names: map[uint64]string{}}
	defer func() {
		if reason := recover(); reason != nil {
			lines, err = r.lines, fmt.Errorf("scenario stopped: %v\n%s", reason, debug.Stack())
		}
		for _, x := range r.connections {
			x.close()
		}
	}()
	scenario.play(r)
	return r.lines, nil
}

// topic is the full name of a topic of this run.
func (r *recording) topic(part string) string {
	return "persistent://public/default/or-" + r.target.Run + "-" + part
}

// name makes lines show name in place of the id half.
func (r *recording) name(least uint64, name string) uint64 {
	r.names[least] = name
	return least
}

// txnName is id as a line shows it.
func (r *recording) txnName(id *txn.ID) string {
	name, ok := r.names[id.Least]
	if !ok {
		name = fmt.Sprint(id.Least)
	}
	return fmt.Sprintf("<%d,%s>", id.Most, name)
}

// line records one answer.
func (r *recording) line(step, request, answer string) {
	r.lines = append(r.lines, Line{r.scenario, step, r.normalize(request), r.normalize(answer)})
}
