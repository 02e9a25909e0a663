package conf

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Sources are where settings come from.
type Sources struct {
	File    string   // path of a configuration file; empty: none
	Environ []string // NAME=value, as os.Environ returns it
	Set     []string // key=value, as --set takes it

	NeedsEtcd bool // a metadataStoreUrl that names no etcd cluster is a fault
}

// Load reads all sources. The report is complete as far as the sources could be read, also beside an error. Errors:
// *FaultsError; a file that cannot be read.
func Load(sources Sources) (*Config, *Report, error) {
	report := &Report{origins: map[string]Origin{}}
	loader := loader{report: report, given: map[string][]assignment{}}
	if sources.File != "" {
		assignments, faults, err := readFile(sources.File)
		if err != nil {
			return nil, report, err
		}
		loader.faults = append(loader.faults, faults...)
		loader.add(assignments)
	}
	bare, prefixed := loader.environment(sources.Environ)
	loader.add(bare)
	loader.add(prefixed)
	loader.add(loader.flags(sources.Set))

	config := loader.config(sources.File != "")
	loader.checkNotHonoured()
	loader.checkStore(config, sources.NeedsEtcd)
	loader.checkAdvertised(config)
	checkTransactions(config, report)
	loader.switchOffPorts(config)
	loader.checkTLS(config)
	loader.checkAuthentication(config)
	checkBind(config, report)
	if len(loader.faults) > 0 {
		slices.SortStableFunc(loader.faults, func(a, b Fault) int {
			return cmp.Or(cmp.Compare(a.Origin.Kind, b.Origin.Kind), cmp.Compare(a.Origin.Line, b.Origin.Line))
		})
		return nil, report, &FaultsError{Faults: loader.faults}
	}
	return config, report, nil
}

// loader gathers assignments, then turns them into a Config.
type loader struct {
	report *Report
	faults []Fault
	given  map[string][]assignment // by the key as given, rising precedence
	order  []string                // keys of given, in order of appearance
}

// add takes the assignments of one source, which wins over those before.
func (l *loader) add(assignments []assignment) {
	for _, a := range assignments {
		earlier := l.given[a.key]
		if len(earlier) == 0 {
			l.order = append(l.order, a.key)
		} else if last := earlier[len(earlier)-1]; last.origin.Kind == a.origin.Kind {
			l.report.Duplicates = append(l.report.Duplicates, Duplicate{Key: a.key, Ignored: last.origin, Used: a.origin})
		}
		l.given[a.key] = append(earlier, a)
	}
}

// environment picks the settings out of environ. An entry that is none disables no other.
func (l *loader) environment(environ []string) (bare, prefixed []assignment) {
	for _, entry := range environ {
		name, value, ok := strings.Cut(entry, "=")
		if !ok {
			continue
		}
		value = strings.TrimSpace(value)
		key, hasPrefix := strings.CutPrefix(name, environmentPrefix)
		switch {
		case hasPrefix && key == "":
			l.report.warn("environment %s names no key", environmentPrefix)
		case hasPrefix:
			prefixed = append(prefixed, assignment{key, value, Origin{Kind: Prefixed, Key: key}})
		case isKnown(name):
			bare = append(bare, assignment{name, value, Origin{Kind: Environment, Key: name}})
		}
	}
	return bare, prefixed
}

// flags reads the values of --set.
func (l *loader) flags(set []string) []assignment {
	var assignments []assignment
	for _, flag := range set {
		key, value, ok := strings.Cut(flag, "=")
		key = strings.TrimSpace(key)
		if !ok || key == "" {
			l.faults = append(l.faults, Fault{Origin: Origin{Kind: Set, Key: key}, Rule: "must be key=value"})
			continue
		}
		assignments = append(assignments, assignment{key, strings.TrimSpace(value), Origin{Kind: Set, Key: key}})
	}
	return assignments
}

func isKnown(key string) bool {
	_, honoured := canonicalKeys()[key]
	_, known := notHonouredKeys[key]
	return honoured || known
}

// config fills a Config. A field whose value is at fault keeps its default.
func (l *loader) config(withFile bool) *Config {
	config := &Config{}
	fields := reflect.ValueOf(config).Elem()
	circumstances := circumstances{withFile: withFile, external: l.external()}
	for i := range settings() {
		s := &settings()[i]
		winner, given := l.winner(s)
		if !given {
			setDefault(fields, s, circumstances)
			continue
		}
		l.report.origins[s.key] = winner.origin
		parsed, ok := s.parse(winner.value)
		if !ok {
			l.fault(winner, "must be "+s.rule())
			setDefault(fields, s, circumstances)
			continue
		}
		fields.Field(s.field).Set(parsed)
	}
	return config
}

// setDefault gives the field of s its default. A default that breaks its own rule is a mistake in a tag.
func setDefault(fields reflect.Value, s *setting, in circumstances) {
	value := s.defaultValue(in)
	if value == "" {
		return
	}
	parsed, ok := s.parse(value)
	if !ok {
		panic(fmt.Sprintf("default tag of %s: %q must be %s", s.key, value, s.rule()))
	}
	fields.Field(s.field).Set(parsed)
}

// winner returns the assignment of s that counts; false if none does or its value is empty. Two spellings with different
// values in the same source are a fault (P-5).
func (l *loader) winner(s *setting) (assignment, bool) {
	var best assignment
	found := false
	for _, key := range append([]string{s.key}, s.also...) {
		given := l.given[key]
		if len(given) == 0 {
			continue
		}
		last := given[len(given)-1]
		if found && last.origin.Kind == best.origin.Kind && last.value != best.value {
			l.fault(last, fmt.Sprintf("must not differ from %s=%q (%s), another spelling of the same key", best.key, best.value, best.origin))
		}
		if !found || last.origin.Kind > best.origin.Kind {
			best, found = last, true
		}
	}
	return best, found && best.value != ""
}

func (l *loader) fault(a assignment, rule string) {
	l.faults = append(l.faults, Fault{Origin: a.origin, Key: a.key, Value: shown(a.key, a.value), Rule: rule})
}

// checkNotHonoured reports every given key that no field of Config takes.
func (l *loader) checkNotHonoured() {
	for _, key := range l.order {
		if _, honoured := canonicalKeys()[key]; honoured {
			continue
		}
		given := l.given[key]
		last := given[len(given)-1]
		k := notHonouredKeys[key]
		switch {
		case k == nil:
			l.report.Unknown = append(l.report.Unknown, Unknown{Origin: last.origin, Key: key, Suggestion: nearestKey(key)})
		case k.harmlessValue(last.value):
		case k.refuse:
			l.fault(last, "must not be set: "+k.reason)
		default:
			l.report.Unsupported = append(l.report.Unsupported, Unsupported{last.origin, key, shown(key, last.value), k.reason})
		}
	}
}
