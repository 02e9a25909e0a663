package conf

import (
	"fmt"
	"strings"
)

// Fault is a value that breaks a rule.
type Fault struct {
	Origin Origin
	Key    string // empty if the line has none
	Value  string // *** if secret
	Rule   string
}

func (f Fault) String() string {
	if f.Key == "" {
		return fmt.Sprintf("%s: %s", f.Origin, f.Rule)
	}
	return fmt.Sprintf("%s: %s=%q: %s", f.Origin, f.Key, f.Value, f.Rule)
}

// FaultsError is every fault of every source, in the order of the sources.
type FaultsError struct{ Faults []Fault }

func (e *FaultsError) Error() string {
	lines := make([]string, 0, len(e.Faults)+1)
	lines = append(lines, fmt.Sprintf("%d faults in the configuration:", len(e.Faults)))
	if len(e.Faults) == 1 {
		lines[0] = "1 fault in the configuration:"
	}
	for _, f := range e.Faults {
		lines = append(lines, "  "+f.String())
	}
	return strings.Join(lines, "\n")
}

// Unknown is a key that nothing here reads. Suggestion is a known key of nearly the same spelling, if there is one.
type Unknown struct {
	Origin     Origin
	Key        string
	Suggestion string
}

// Unsupported is a key of Pulsar that asks for something this version does not have.
type Unsupported struct {
	Origin Origin
	Key    string
	Value  string // *** if secret
	Reason string
}

// Duplicate is a key that one source gives more than once. The last one wins, as in Java properties.
type Duplicate struct {
	Key           string
	Ignored, Used Origin
}

// Report is what a start tells its operator about the configuration, once.
type Report struct {
	Unknown     []Unknown
	Unsupported []Unsupported
	Duplicates  []Duplicate
	Warnings    []string

	origins map[string]Origin
}

// Origin tells where the effective value of a key of Config came from. An empty value counts as not given.
func (r *Report) Origin(key string) Origin {
	origin, ok := r.origins[key]
	if !ok {
		return Origin{Kind: Default, Key: key}
	}
	return origin
}

func (r *Report) warn(format string, args ...any) {
	r.Warnings = append(r.Warnings, fmt.Sprintf(format, args...))
}
