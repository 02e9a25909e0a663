package failpoint

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Variable is the environment variable that holds the rules.
const Variable = "PULSAR_TC_FAILPOINT"

// mode is what a rule does.
type mode string

const (
	before mode = "before"
	after  mode = "after"
	hold   mode = "hold"
	late   mode = "late"
	early  mode = "early"
)

// rule is one thing to do to effects of a kind.
type rule struct {
	mode  mode
	kind  Kind
	nth   int64         // 0: every one
	delay time.Duration // of early
	file  string        // of hold and late
	seen  atomic.Int64
}

func (r *rule) String() string { return fmt.Sprintf("%s %s %d", r.mode, r.kind, r.nth) }

// meets counts an effect of kinds and says whether the rule is about it.
func (r *rule) meets(kinds []Kind) bool {
	if !slices.Contains(kinds, r.kind) {
		return false
	}
	return r.seen.Add(1) == r.nth || r.nth == 0
}

// parse reads the value of Variable.
func parse(text string) ([]*rule, error) {
	var rules []*rule
	for _, part := range strings.Split(text, ";") {
		r, err := parseRule(strings.Split(part, ":"))
		if err != nil {
			return nil, fmt.Errorf("%s: rule %q: %w", Variable, part, err)
		}
		rules = append(rules, r)
	}
	return rules, nil
}

func parseRule(words []string) (*rule, error) {
	want := map[mode]int{before: 3, after: 3, hold: 4, late: 4, early: 3}[mode(words[0])]
	if want == 0 || len(words) != want {
		return nil, fmt.Errorf("want before:KIND:N, after:KIND:N, hold:KIND:N:FILE, late:KIND:N:FILE or early:KIND:DURATION")
	}
	r := &rule{mode: mode(words[0]), kind: Kind(words[1])}
	rest := words[2:]
	if r.mode != early {
		n, err := strconv.ParseInt(rest[0], 10, 64)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("number %q: want one from 1", rest[0])
		}
		r.nth, rest = n, rest[1:]
	}
	if len(rest) == 0 {
		return r, nil
	}
	if r.mode != early {
		r.file = rest[0]
		return r, nil
	}
	delay, err := time.ParseDuration(rest[0])
	if err != nil {
		return nil, err
	}
	r.delay = delay
	return r, nil
}
