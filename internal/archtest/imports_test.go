package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pulsar-tc/pulsar-tc/conf"
)

// rows are the packages from the bottom up. A package knows lower rows only, never one of its own row.
var rows = [][]string{
	{"txn", "topicname", "pulsarproto", "conf", "outage"},
	{"keyspace", "cnx", "txnlog", "topic/ledger"},
	{"preserver", "coordinator/cleaning", "compaction", "authentication", "authorization", "certificate", "schema"},
	{"coordinator/fsm", "topic/txnbuffer", "topic/pendingack", "topic/dedup", "topic/cursor", "topic/stickykey"},
	{"etcdstore", "etcdcreator", "topic/activeconsumer"},
	{"topic", "nonpersistent", "resources", "cluster", "schema/registry", "topicfeed", "txnlog/etcdlog", "txnlog/memlog", "leader/etcdleader", "leader/memleader"},
	{"coordinator", "participant/*", "peer"},
	{"conn", "lookup", "admin", "pulsaradmin", "terminatedtopic"},
	{"server"},
	{"cmd/pulsar-tc"},
}

// kits are packages that tests and tools are made of. They may import anything; what is in rows imports none of them, except
// as said in lent.
var kits = []string{"internal/...", "pulsarproto/internal/...", "txnlog/logtest", "leader/leadertest", "bench", "chaos", "conformance", "crash", "faults", "recorder", "examples/*"}

// lent are kits that the product itself uses.
var lent = map[string][]string{
	"internal/wireclient": {"cmd/pulsar-tc"},
}

func rowOf(name string) int {
	return slices.IndexFunc(rows, func(row []string) bool { return matches(row, name) })
}

func TestImportsPointDown(t *testing.T) {
	packages := loadModule(t)
	for name, p := range packages {
		if matches(kits, name) {
			continue
		}
		row := rowOf(name)
		if row < 0 {
			t.Errorf("%s is in no row: say in rows or kits where it belongs", name)
			continue
		}
		for _, imported := range p.imports {
			if _, ours := packages[imported]; !ours {
				continue
			}
			if matches(kits, imported) {
				if !matches(lent[imported], name) {
					t.Errorf("%s imports %s: the product does not stand on its test kit", name, imported)
				}
				continue
			}
			if rowOf(imported) >= row {
				t.Errorf("%s imports %s: imports point down, and two packages of one row do not know each other", name, imported)
			}
		}
	}
}

// pure are the cores that neither wait nor look around: the same input gives the same output, byte for byte.
var pure = []string{
	"coordinator/fsm", "coordinator/cleaning", "preserver", "topic/txnbuffer", "topic/pendingack", "topic/dedup", "topic/cursor", "topic/stickykey", "topic/activeconsumer", "topic/ledger",
	"txn", "topicname", "keyspace",
}

// bans lists what packages must not import. They cover what the package imports of ours, too.
var bans = []struct {
	packages []string
	imported []string
	reason   string
}{
	{pure, []string{"sync", "sync/..."}, "one goroutine owns it (P-9)"},
	{pure, []string{"context"}, "it waits for nothing"},
	{pure, []string{"net", "net/http", "os", "os/...", "io/ioutil", "syscall", "golang.org/x/sys/..."}, "no IO"},
	{pure, []string{"math/rand", "math/rand/...", "crypto/rand"}, "the same commands give the same result"},
	{pure, []string{"log", "log/...", "github.com/rs/zerolog", "github.com/rs/zerolog/..."}, "cores log nothing, drivers report"},
	{pure, []string{"go.etcd.io/...", "github.com/prometheus/..."}, "storage and metrics belong to the drivers"},
	{[]string{"compaction"}, []string{"context", "net", "os", "go.etcd.io/...", "github.com/rs/zerolog"}, "it is given entries, the topic reads and writes"},
	{[]string{"coordinator", "conn", "lookup"}, []string{"go.etcd.io/..."}, "they know storage by the interfaces they declare"},
	{[]string{"coordinator"}, []string{"topic", "topic/...", "pulsarproto", "cnx"}, "it knows participants by its interface, and no wire"},
	{[]string{"topic"}, []string{"coordinator", "coordinator/...", "txnlog", "txnlog/..."}, "a participant knows transactions by their open keys"},
	{[]string{"conn"}, []string{"topic", "topic/...", "coordinator", "coordinator/..."}, "it declares the services it calls"},
	{[]string{"topic", "nonpersistent", "topicfeed", "resources", "schema/registry", "authentication", "authorization", "certificate", "txnlog/*", "leader/*",
		"etcdstore", "etcdcreator", "cluster", "peer", "coordinator", "participant/*", "conn", "lookup", "admin", "pulsaradmin", "terminatedtopic"}, []string{"conf"},
		"only server and cmd see settings; the rest takes Options of its own"},
	{[]string{"txn", "topicname", "pulsarproto", "keyspace", "cnx", "conn", "topic", "terminatedtopic", "coordinator", "preserver", "compaction", "txnlog", "lookup"},
		[]string{"github.com/apache/pulsar-client-go/..."}, "the protocol is ours; the official client is for tests"},
}

func TestBans(t *testing.T) {
	packages := loadModule(t)
	for _, ban := range bans {
		for name := range packages {
			if !matches(ban.packages, name) {
				continue
			}
			for _, p := range closure(packages, name) {
				for _, imported := range p.imports {
					if matches(ban.imported, imported) {
						t.Errorf("%s imports %s (through %s): %s", name, imported, p.name, ban.reason)
					}
				}
			}
		}
	}
}

// clocks are what a pure core must not ask: times come in as arguments.
var clocks = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick"}

func TestCoresReadNoClock(t *testing.T) {
	packages := loadModule(t)
	for _, name := range pure {
		for _, file := range packages[name].files {
			path := filepath.Join(packages[name].dir, file)
			parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, call := range clockCalls(parsed) {
				t.Errorf("%s asks time.%s: times come in as arguments", path, call)
			}
		}
	}
}

// clockCalls returns the names of package time's functions in file that read or start a clock.
func clockCalls(file *ast.File) []string {
	if !slices.ContainsFunc(file.Imports, func(spec *ast.ImportSpec) bool { return spec.Path.Value == `"time"` }) {
		return nil
	}
	var calls []string
	ast.Inspect(file, func(node ast.Node) bool {
		selector, ok := node.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if of, ok := selector.X.(*ast.Ident); ok && of.Name == "time" && slices.Contains(clocks, selector.Sel.Name) {
			calls = append(calls, selector.Sel.Name)
		}
		return true
	})
	return calls
}

// The rules would be worth nothing if they saw nothing.
func TestRulesSee(t *testing.T) {
	parsed, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\nimport \"time\"\nvar a = time.Now\nfunc f() { time.Sleep(1) }", 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(clockCalls(parsed), " "); got != "Now Sleep" {
		t.Errorf("clock calls seen: %q", got)
	}
	for name, want := range map[string]bool{"net/http/pprof": true, "net": true, "network": false, "sync/atomic": false} {
		if got := matches([]string{"net", "net/http/..."}, name); got != want {
			t.Errorf("%s matches: %v", name, got)
		}
	}
	packages := map[string]pkg{"a": {name: "a", imports: []string{"b", "fmt"}}, "b": {name: "b", imports: []string{"net"}}}
	if got := closure(packages, "a"); len(got) != 2 || got[1].imports[0] != "net" {
		t.Errorf("closure: %v", got)
	}
}

// A setting that nothing reads is a promise that nobody keeps.
func TestSettingsAreRead(t *testing.T) {
	packages := loadModule(t)
	read := map[string]bool{}
	for _, name := range []string{"server", "cmd/pulsar-tc"} {
		for _, file := range packages[name].files {
			parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(packages[name].dir, file), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(parsed, func(node ast.Node) bool {
				if selector, ok := node.(*ast.SelectorExpr); ok {
					read[selector.Sel.Name] = true
				}
				return true
			})
		}
	}
	for field := range reflect.TypeFor[conf.Config]().Fields() {
		if field.Name != "MetadataStoreURL" && !read[field.Name] {
			t.Errorf("nothing reads %s: make it a key that is known and not honoured", field.Tag.Get("conf"))
		}
	}
}
