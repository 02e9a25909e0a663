package conf

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"
)

var rewrite = flag.Bool("rewrite", false, "write the expected files instead of comparing with them")

// write puts text into a file and returns its path.
func write(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "broker.conf")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// load fails the test at any fault.
func load(t testing.TB, sources Sources) (*Config, *Report) {
	t.Helper()
	config, report, err := Load(sources)
	if err != nil {
		t.Fatal(err)
	}
	return config, report
}

// faults fails the test if there are none.
func faults(t testing.TB, sources Sources) []Fault {
	t.Helper()
	_, _, err := Load(sources)
	var all *FaultsError
	if !errors.As(err, &all) {
		t.Fatalf("Load returned %v, want faults", err)
	}
	return all.Faults
}

// Pulsar's own files load unchanged (C-1, C-2, FC-42): no fault, nothing reported as unsupported, no key twice.
func TestStockFiles(t *testing.T) {
	for _, test := range []struct {
		file        string
		unknown     int
		unsupported []string
	}{
		{"broker-4.0.7.good.conf", 320, nil},
		{"standalone.good.conf", 150, nil},
		{"proxy.good.conf", 20, nil},
	} {
		t.Run(test.file, func(t *testing.T) {
			config, report := load(t, Sources{File: filepath.Join("testdata", test.file)})
			if len(report.Unknown) < test.unknown {
				t.Errorf("%d unknown keys listed, want at least %d", len(report.Unknown), test.unknown)
			}
			var unsupported []string
			for _, u := range report.Unsupported {
				unsupported = append(unsupported, u.Key)
			}
			if strings.Join(unsupported, " ") != strings.Join(test.unsupported, " ") {
				t.Errorf("unsupported: %v, want %v", report.Unsupported, test.unsupported)
			}
			if len(report.Duplicates) != 0 {
				t.Errorf("duplicates: %v", report.Duplicates)
			}
			for _, u := range report.Unknown {
				if u.Suggestion != "" {
					t.Errorf("%s is taken for a misspelt %s", u.Key, u.Suggestion)
				}
			}
			warnings := report.Warnings
			if !config.TransactionCoordinatorEnabled {
				if !strings.HasPrefix(warnings[0], "transactionCoordinatorEnabled=false") {
					t.Errorf("warnings: %q, want one of transactions that are off", warnings)
				}
				warnings = warnings[1:]
			}
			if len(warnings) != 1 || !strings.HasPrefix(warnings[0], "bindAddress=0.0.0.0") {
				t.Errorf("warnings: %q, want the one of an open bindAddress", warnings)
			}
		})
	}
}

// The stock standalone.conf turns coordinators off; the ready line needs to say where (design: absent means true).
func TestCoordinatorEnabled(t *testing.T) {
	path := filepath.Join("testdata", "standalone.good.conf")
	config, report := load(t, Sources{File: path})
	origin := report.Origin("transactionCoordinatorEnabled")
	if config.TransactionCoordinatorEnabled || origin.Kind != File || origin.Line == 0 || origin.File != path {
		t.Errorf("enabled=%v from %v, want false from the file", config.TransactionCoordinatorEnabled, origin)
	}
	config, report = load(t, Sources{File: path, Set: []string{"transactionCoordinatorEnabled=true"}})
	if !config.TransactionCoordinatorEnabled || report.Origin("transactionCoordinatorEnabled").String() != "--set transactionCoordinatorEnabled" {
		t.Errorf("--set does not win: %v", report.Origin("transactionCoordinatorEnabled"))
	}
	config, _ = load(t, Sources{})
	if !config.TransactionCoordinatorEnabled {
		t.Error("absent means true")
	}
}

// Each x.bad.conf gives the faults of x.bad.txt, all at once; its x.good.conf gives none.
func TestFixtures(t *testing.T) {
	bad, err := filepath.Glob("testdata/*.bad.conf")
	if err != nil || len(bad) == 0 {
		t.Fatalf("fixtures: %v %v", bad, err)
	}
	for _, path := range bad {
		t.Run(filepath.Base(path), func(t *testing.T) {
			got := strings.ReplaceAll((&FaultsError{faults(t, Sources{File: path})}).Error(), path, filepath.Base(path)) + "\n"
			compareFile(t, strings.TrimSuffix(path, ".conf")+".txt", got)
		})
	}
	good, err := filepath.Glob("testdata/*.good.conf")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range good {
		t.Run(filepath.Base(path), func(t *testing.T) { load(t, Sources{File: path}) })
	}
}

func compareFile(t *testing.T, path, got string) {
	t.Helper()
	if *rewrite {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (run with -rewrite and look at the difference); got:\n%s", path, got)
	}
}

// P-5, C-3: both spellings count; different values within one source are refused; a stronger source wins in any spelling.
func TestSpellings(t *testing.T) {
	config, _ := load(t, Sources{File: write(t, "TransactionMetaPersistCount=7\nservicePort=7000")})
	if config.TransactionMetaPersistCount != 7 || config.BrokerServicePort != 7000 {
		t.Errorf("other spellings: %d %d", config.TransactionMetaPersistCount, config.BrokerServicePort)
	}
	config, _ = load(t, Sources{File: write(t, "transactionMetaPersistCount=7"), Set: []string{"TransactionMetaPersistCount=9"}})
	if config.TransactionMetaPersistCount != 9 {
		t.Errorf("--set of the other spelling: %d", config.TransactionMetaPersistCount)
	}
	got := faults(t, Sources{File: write(t, "transactionMetaPersistCount=7\nTransactionMetaPersistCount=8")})
	if len(got) != 1 || got[0].Origin.Line != 2 {
		t.Errorf("different values: %v", got)
	}
}

// FC-42: a duplicate is reported and the last one wins; a misspelt key is reported with the key it looks like.
func TestDuplicatesAndMisspellings(t *testing.T) {
	config, report := load(t, Sources{File: write(t,
		"#brokerServicePort=1\nbrokerServicePort=2\nBrokerServicePort=9\nbrokerServicePort=3\ntransactionCoordinatorEnabeld=true")})
	if config.BrokerServicePort != 3 {
		t.Errorf("brokerServicePort=%d, the last one wins", config.BrokerServicePort)
	}
	if len(report.Duplicates) != 1 || report.Duplicates[0].Ignored.Line != 2 || report.Duplicates[0].Used.Line != 4 {
		t.Errorf("duplicates: %v", report.Duplicates)
	}
	if len(report.Unknown) != 2 || report.Unknown[0].Suggestion != "brokerServicePort" ||
		report.Unknown[1].Suggestion != "transactionCoordinatorEnabled" || report.Unknown[1].Origin.Line != 5 {
		t.Errorf("unknown: %v", report.Unknown)
	}
}

// C-2: a key that is set but not supported is reported with its reason, except where it asks for nothing.
func TestUnsupported(t *testing.T) {
	_, report := load(t, Sources{Set: []string{"numIOThreads=8", "haProxyProtocolEnabled=false", "transactionLogBatchedWriteEnabled=true"}})
	if len(report.Unsupported) != 2 || report.Unsupported[0].Key != "numIOThreads" || report.Unsupported[1].Reason != groupCommit {
		t.Errorf("unsupported: %v", report.Unsupported)
	}
}

func TestBindAddress(t *testing.T) {
	config, report := load(t, Sources{})
	if config.BindAddress != "127.0.0.1" || config.AdvertisedAddress != "localhost" || len(report.Warnings) != 0 {
		t.Errorf("without a file: %s %s %v", config.BindAddress, config.AdvertisedAddress, report.Warnings)
	}
	for address, warnings := range map[string]int{"localhost": 0, "::1": 0, "127.1.2.3": 0, "0.0.0.0": 1, "10.0.0.1": 1, "::": 1} {
		if _, report := load(t, Sources{Set: []string{"bindAddress=" + address}}); len(report.Warnings) != warnings {
			t.Errorf("%s: %v, want %d warnings", address, report.Warnings, warnings)
		}
	}
}

// FC-41: the effective configuration can be inspected.
func TestCheck(t *testing.T) {
	var out strings.Builder
	file := write(t, "brokerServicePort=7\nunheardOf=1\nnumIOThreads=3\nbrokerServicePort=8\nbindadress=x\nforeign=2")
	if err := Check(&out, Sources{File: file}); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{
		"brokerServicePort 8 " + file + ":4", "keepAliveIntervalSeconds 30 s default", "transactionMetaPersistTimeInHour 72 h default",
		"not supported: " + file + `:3: numIOThreads="3"`, "duplicate: " + file + ":4: brokerServicePort again, wins over " + file + ":1",
		"keys that nothing here reads: 2 unheardOf foreign", "unknown: " + file + ":5: bindadress (did you mean bindAddress?)", "warning: bindAddress=0.0.0.0 (default)",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

// C-1: unknown keys are listed once, together; what is worth a look gets a line of its own.
func TestLog(t *testing.T) {
	var out strings.Builder
	_, report := load(t, Sources{File: write(t, "numIOThreads=3\nnumIOThreads=4\na=1\nb=2\nbindadress=x"), Set: []string{"bindAddress=0.0.0.0"}})
	report.Log(zerolog.New(&out))
	for _, want := range []string{
		`"key":"numIOThreads","value":"4"`, `"message":"setting is given twice"`, `"warning":"bindAddress=0.0.0.0`,
		`"suggestion":"bindAddress"`, `"count":3`,
	} {
		if strings.Count(out.String(), want) != 1 {
			t.Errorf("want one %s in\n%s", want, out.String())
		}
	}
}
