package conf

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FC-38: blanks, byte order mark, CRLF, empty values, words for booleans.
func TestFileSyntax(t *testing.T) {
	text := "\ufeff  brokerServicePort \t = \t 7001 \t\r\n" +
		"! a comment with a backslash at its end \\\r\n" +
		"webServicePort:7002\r\n" +
		"clusterName a\\\r\n    b\\u00e9\r\n" +
		"transactionMaxParticipants=\r\n" +
		"allowAutoSubscriptionCreation=True\r\n" +
		"allowAutoTopicCreation=FALSE\r\n" +
		"dataDir=c:\\\\data\r\n" +
		"advertisedAddress"
	config, report := load(t, Sources{File: write(t, text)})
	for name, equal := range map[string]bool{
		"brokerServicePort":             config.BrokerServicePort == 7001,
		"webServicePort":                config.WebServicePort == 7002,
		"clusterName":                   config.ClusterName == "abé",
		"transactionMaxParticipants":    config.TransactionMaxParticipants == 10000,
		"allowAutoSubscriptionCreation": config.AllowAutoSubscriptionCreationEnabled,
		"allowAutoTopicCreation":        !config.AllowAutoTopicCreation,
		"dataDir":                       config.DataDir == `c:\data`,
		"advertisedAddress":             config.AdvertisedAddress == "",
	} {
		if !equal {
			t.Errorf("%s: got %+v", name, config)
		}
	}
	for key, line := range map[string]int{"brokerServicePort": 1, "webServicePort": 3, "clusterName": 4, "dataDir": 9} {
		if got := report.Origin(key).Line; got != line {
			t.Errorf("%s is in line %d, want %d", key, got, line)
		}
	}
}

// Java reads properties as ISO-8859-1; a file that is valid UTF-8 means what its author sees.
func TestFileEncoding(t *testing.T) {
	for _, text := range []string{"clusterName=caf\xe9", "clusterName=caf\u00e9"} {
		if config, _ := load(t, Sources{File: write(t, text)}); config.ClusterName != "café" {
			t.Errorf("%q gives %q", text, config.ClusterName)
		}
	}
}

func TestUnreadable(t *testing.T) {
	if _, _, err := Load(Sources{File: filepath.Join(t.TempDir(), "absent.conf")}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("absent file: %v", err)
	}
	if _, _, err := Load(Sources{File: write(t, strings.Repeat("#\n", maxFileBytes/2+1))}); err == nil {
		t.Error("a file without end is refused")
	}
	if got := faults(t, Sources{Set: []string{"novalue", "=x"}}); len(got) != 2 {
		t.Errorf("--set without key or value: %v", got)
	}
}

func FuzzParseProperties(f *testing.F) {
	for _, seed := range []string{"a=b", "a=b\\\n  c", "\\u12", "=", "\ufeffk:v\r\n!c", "a\\", "a=\\u0041\\\\", "\xff=\xfe", "a\\\r\nb=c", "k\f\f v"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		assignments, faults := parseProperties("f", text)
		lines := strings.Count(string(text), "\n") + strings.Count(string(text), "\r") + 1
		for _, a := range assignments {
			if a.key == "" || a.origin.Line < 1 || a.origin.Line > lines {
				t.Errorf("assignment %+v of %d lines", a, lines)
			}
		}
		if len(assignments)+len(faults) > lines {
			t.Errorf("%d assignments and %d faults of %d lines", len(assignments), len(faults), lines)
		}
	})
}
