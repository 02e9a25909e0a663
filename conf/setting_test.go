package conf

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// FC-38: arithmetic on units cannot wrap; 0 or less is off where Pulsar documents it.
func TestUnits(t *testing.T) {
	config, _ := load(t, Sources{Set: []string{
		"keepAliveIntervalSeconds=-5", "transactionMetaPersistTimeInHour=2562047788015", "transactionMaxTtlMs=9223372036854",
	}})
	if config.KeepAlive != -5*time.Second {
		t.Errorf("keepAliveIntervalSeconds: %v", config.KeepAlive)
	}
	if config.TransactionMetaPersistTime < 290*365*24*time.Hour {
		t.Errorf("transactionMetaPersistTimeInHour wrapped: %v", config.TransactionMetaPersistTime)
	}
	if config.TransactionMaxTTL != 9223372036854*time.Millisecond {
		t.Errorf("transactionMaxTtlMs: %v", config.TransactionMaxTTL)
	}
	for _, set := range []string{
		"transactionMetaPersistTimeInHour=2562047788016", "transactionMetaPersistTimeInHour=0", "transactionMetaPersistTimeInHour=-1",
		"transactionMetaExpireCheckIntervalInSecond=0", "transactionMetaPersistCount=-1", "transactionMaxTtlMs=0",
		"maxMessageSize=2147483648", "maxMessageSize=0x10", "maxMessageSize=1 000",
	} {
		if got := faults(t, Sources{Set: []string{set}}); len(got) != 1 || got[0].Origin.Kind != Set {
			t.Errorf("%s: faults %v", set, got)
		}
	}
}

// FC-38: the values that break parsers, for an interval, a count and hours. Faults are refused, the rest means what it says.
func TestAwkwardNumbers(t *testing.T) {
	for _, test := range []struct {
		key  string
		good []string
	}{
		{"keepAliveIntervalSeconds", []string{"0", "-1"}},
		{"transactionMetaExpireCheckIntervalInSecond", []string{"2147483648"}},
		{"transactionMetaPersistCount", []string{"0"}},
		{"transactionMetaPersistTimeInHour", []string{"2147483648"}},
		{"maxActiveTransactionsPerCoordinator", []string{"0", "2147483648", "9223372036854775807"}},
	} {
		for _, value := range []string{"0", "-1", "2147483648", "9223372036854775807", "9223372036854775808", "1e3", "1.0", "0x1", "1_000"} {
			config, _, err := Load(Sources{Set: []string{test.key + "=" + value}})
			if good := slices.Contains(test.good, value); good != (err == nil) {
				t.Errorf("%s=%s: %v", test.key, value, err)
			}
			if config != nil && (config.TransactionMetaExpireCheckInterval <= 0 || config.TransactionMetaPersistTime <= 0) {
				t.Errorf("%s=%s wraps: %+v", test.key, value, config)
			}
		}
	}
}

// FC-42: an absent key has the documented default, and so has an empty one.
func TestDefaults(t *testing.T) {
	for i := range settings() {
		s := &settings()[i]
		for _, text := range []string{"", s.key + "="} {
			config, report := load(t, Sources{File: write(t, text)})
			got := s.text(reflect.ValueOf(config).Elem().Field(s.field))
			if want := strings.TrimSpace(s.fallback + " " + s.unit); got != want {
				t.Errorf("%q: %s is %q, documented is %q", text, s.key, got, want)
			}
			if origin := report.Origin(s.key); text == "" && origin.Kind != Default {
				t.Errorf("%s comes from %v", s.key, origin)
			}
		}
	}
}

// FC-42: the documented default is the effective one when the key is absent. The document is made from the tags.
func TestMarkdown(t *testing.T) {
	compareFile(t, filepath.Join("..", "docs", "settings.md"), Markdown())
	seen := map[string]bool{}
	for key := range canonicalKeys() {
		seen[key] = true
	}
	for _, k := range notHonoured {
		if seen[k.key] {
			t.Errorf("%s is both honoured and not", k.key)
		}
		seen[k.key] = true
	}
}

// The keys that docs/settings.md calls ours are those that no stock file has. Two of Pulsar's are read by its token provider and in
// none of them either.
func TestOwnKeys(t *testing.T) {
	stock := map[string]bool{"tokenAllowedClockSkewSeconds": true, "tokenPublicAlg": true}
	for _, file := range []string{"broker-4.0.7.good.conf", "standalone.good.conf", "proxy.good.conf"} {
		content, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(content)) {
			key, _, _ := strings.Cut(line, "=")
			stock[strings.TrimSpace(key)] = true
		}
	}
	var own []string
	for i := range settings() {
		if key := settings()[i].key; !stock[key] {
			own = append(own, key)
		}
	}
	if !slices.Equal(own, ownKeys) {
		t.Errorf("no stock file has %q, said to be ours: %q", own, ownKeys)
	}
}
