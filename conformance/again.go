package main

import (
	"context"
	"fmt"
)

// seekByTime seeks to now and wants none of the messages that it published before. Where the last of them was published
// within the same millisecond, Pulsar's rule, the first message at or after the time, delivers it.
const seekByTime = "TestReaderWithSeekByTime"

// triesOf is how often a test is run before its failure counts: many of the suite give the server a fixed time.
func triesOf(name string) int {
	if name == seekByTime {
		return 8
	}
	return 3
}

// mostAgain is how many failures of a group may be chance. Where there are more, none is tried again.
const mostAgain = 10

// again runs what failed again, each test alone, but for what is known to fail and for the admin client's tests, whose floor has room.
func (c *conformance) again(ctx context.Context, tests []test, results map[string]result) error {
	var failed []test
	reasons := known()
	for _, t := range tests {
		if r := results[t.name]; !r.passed && !r.skipped && reasons[t.name] == "" && t.pkg != adminPackage {
			failed = append(failed, t)
		}
	}
	if len(failed) > mostAgain {
		return nil
	}
	for _, t := range failed {
		first := firstComplaint(results[t.name].output)
		for try := 2; try <= triesOf(t.name) && !results[t.name].passed; try++ {
			again, err := c.suite.run(ctx, t.pkg, []string{t.name})
			if err != nil {
				return err
			}
			r := again[t.name]
			if r.passed {
				r.before = fmt.Sprintf("passed at try %d; the first: %s", try, first)
			}
			results[t.name] = r
		}
	}
	return nil
}
