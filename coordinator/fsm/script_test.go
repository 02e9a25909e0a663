package fsm_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pulsar-tc/pulsar-tc/coordinator/fsm"
	"github.com/pulsar-tc/pulsar-tc/preserver"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

var rewrite = flag.Bool("rewrite", false, "write what the scripts under testdata give back into them")

// TestScripts runs the stories under testdata/txn. A block is commands, a line "----", and what they leave, up to an empty
// line. The commands of one block are one batch, which becomes durable before the next block begins, unless its last line says
// "lost" (crash before the append) or "torn" and how many of its changes are durable; the next block must then be "crash". Lines with # are for the reader.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/txn/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := newScript(t).run(string(want))
			switch {
			case got == string(want):
			case *rewrite:
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			default:
				t.Errorf("%s: %s", file, firstDifference(string(want), got))
			}
		})
	}
}

func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] {
			return fmt.Sprintf("line %d\nwant %s\ngot  %s", i+1, w[i], g[i])
		}
	}
	return "one has more lines than the other"
}

// script is one machine and its store while a story is told.
type script struct {
	t     *testing.T
	opts  fsm.Options
	store *store
	m     *fsm.Machine
	now   int64
	space fsm.SpaceLevel
	torn  int // changes of the batch that are durable; -1: all
}

func newScript(t *testing.T) *script {
	s := &script{t: t, store: newStore(), opts: fsm.Options{
		TC: 1, MaxTTLMillis: 604_800_000, MaxParticipants: 100, MaxParticipantBytes: 10_000,
		Preserver: preserver.Options{Count: 1000, UnnamedCount: 10_000, Retention: 259_200_000, MinTime: 120_000, Max: 1_000_000},
	}}
	s.restart()
	return s
}

func (s *script) restart() *fsm.Ready {
	m, ready, err := s.store.load(s.opts, s.now, s.space)
	if err != nil {
		s.t.Fatalf("load: %v", err)
	}
	s.m = m
	return ready
}

// run returns text with what its blocks leave now.
func (s *script) run(text string) string {
	var out strings.Builder
	var block []string
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		out.WriteString(line + "\n")
		if line != "----" {
			if line != "" && !strings.HasPrefix(line, "#") {
				block = append(block, line)
			}
			continue
		}
		out.WriteString(s.block(block))
		block = nil
		for i+1 < len(lines) && lines[i+1] != "" {
			i++
		}
	}
	return out.String()
}

func (s *script) block(lines []string) string {
	ready := (*fsm.Ready)(nil)
	s.torn = -1
	for _, line := range lines {
		if line == "crash" {
			ready = s.restart()
			continue
		}
		s.command(line)
	}
	if ready == nil {
		ready = s.m.Take()
	}
	text := render(ready, s.store.end())
	switch {
	case s.torn > 0:
		s.store.append(&ready.Batch, s.torn)
	case s.torn < 0 && ready.Writes():
		s.m.Appended(s.store.append(&ready.Batch, len(ready.Batch.Changes)))
	}
	return text
}

// arguments are the words behind a command: key=value, repeatable, or a bare word.
type arguments map[string][]string

func (a arguments) text(key string) string {
	if len(a[key]) == 0 {
		return ""
	}
	return value(a[key][0])
}

// value reads one argument: plain, a quoted Go string, or letter*times.
func value(word string) string {
	if text, err := strconv.Unquote(word); err == nil {
		return text
	}
	if letter, times, found := strings.Cut(word, "*"); found {
		n, _ := strconv.Atoi(times)
		return strings.Repeat(letter, n)
	}
	return word
}

func (a arguments) has(key string) bool { return a[key] != nil }

func (a arguments) number(key string) uint64 {
	n, _ := strconv.ParseUint(a.text(key), 10, 64)
	return n
}

func (a arguments) owner(key string) txn.Owner {
	return txn.Owner{Role: a.text(key), Known: a.has(key)}
}

func (a arguments) caller() fsm.Caller {
	return fsm.Caller{Owner: a.owner("by"), Super: a.has("super")}
}

func (a arguments) participants() []txn.Participant {
	var all []txn.Participant
	for _, name := range a["to"] {
		all = append(all, participant(value(name)))
	}
	return all
}

func (a arguments) action() txn.Action {
	if a.has("abort") {
		return txn.Abort
	}
	return txn.Commit
}

func (s *script) command(line string) {
	words := strings.Fields(line)
	a := arguments{}
	for _, word := range words[1:] {
		key, value, _ := strings.Cut(word, "=")
		a[key] = append(a[key], value)
	}
	switch words[0] {
	case "options":
		s.configure(a)
	case "at":
		s.now, _ = strconv.ParseInt(words[1], 10, 64)
	case "lost":
		s.torn = 0
	case "torn":
		s.torn, _ = strconv.Atoi(words[1])
	case "clean":
		n := len(s.store.values)
		switch {
		case a.has("through"):
			n = int(a.number("through") - s.store.first + 1)
		case a.has("nothing"):
			n = 0
		}
		s.m.Step(s.now, &fsm.Cleaned{Prefix: s.store.entries(n)})
	default:
		s.m.Step(s.now, s.parse(words[0], a))
	}
}

func (s *script) parse(name string, a arguments) fsm.Command {
	to, least := any(a.text("req")), a.number("txn")
	switch name {
	case "new":
		return &fsm.NewTxn{To: to, Owner: a.owner("owner"), TTLMillis: a.number("ttl"), ClientName: a.text("name"), Named: a.has("name")}
	case "add":
		return &fsm.AddParticipants{To: to, Caller: a.caller(), Least: least, Participants: a.participants()}
	case "end":
		cmd := &fsm.EndTxn{To: to, Caller: a.caller(), Least: least, Action: a.action(), Named: a.has("named")}
		if a.has("settled") {
			return settle(s.m, cmd)
		}
		return cmd
	case "applied":
		return &fsm.Applied{Least: least, Participant: participant(a.text("to"))}
	case "failed":
		return &fsm.Failed{Least: least, Participant: participant(a.text("to")), Reason: a.text("reason")}
	case "resolve":
		return &fsm.Resolve{To: to, Least: least, Participant: participant(a.text("to")), Who: a.text("who")}
	case "tick":
		return &fsm.Tick{Expire: a.has("expire")}
	case "describe":
		return &fsm.Describe{To: to, Least: least}
	case "list":
		return &fsm.List{To: to, Limit: int(a.number("limit"))}
	case "space":
		for i, level := range []string{"normal", "refuse-new", "refuse-end"} {
			if a.has(level) {
				s.space = fsm.SpaceLevel(i)
			}
		}
		return &fsm.Space{Level: s.space}
	}
	s.t.Fatalf("unknown command %q", name)
	return nil
}

// configure starts an empty machine with other limits.
func (s *script) configure(a arguments) {
	o, p := &s.opts, &s.opts.Preserver
	numbers := map[string]func(uint64){
		"max-ttl":      func(n uint64) { o.MaxTTLMillis = n },
		"active":       func(n uint64) { o.MaxActive = int(n) },
		"participants": func(n uint64) { o.MaxParticipants = int(n) },
		"bytes":        func(n uint64) { o.MaxParticipantBytes = int(n) },
		"count":        func(n uint64) { p.Count = int(n) },
		"unnamed":      func(n uint64) { p.UnnamedCount = int(n) },
		"retention":    func(n uint64) { p.Retention = int64(n) },
		"min-time":     func(n uint64) { p.MinTime = int64(n) },
		"max":          func(n uint64) { p.Max = int(n) },
		"names":        func(n uint64) { p.NamesPerOwner = int(n) },
	}
	for _, key := range slices.Sorted(maps.Keys(a)) {
		set, known := numbers[key]
		if !known {
			s.t.Fatalf("unknown option %q", key)
		}
		set(a.number(key))
	}
	s.store = newStore()
	s.restart()
}
