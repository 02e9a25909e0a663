package conn

import (
	"slices"
	"strings"
	"testing"
)

// The hashes are those of TopicList.calculateHash of Pulsar 4.0.7.
func TestTopicsHash(t *testing.T) {
	for want, topics := range map[string][]string{
		"00000000": nil,
		"e4a876e3": {"persistent://public/default/a"},
		"75d7a367": {"persistent://public/default/a-partition-0", "persistent://public/default/b"},
	} {
		if got := topicsHash(topics); got != want {
			t.Errorf("hash of %q: %s, want %s", topics, got, want)
		}
	}
}

func TestTopicPattern(t *testing.T) {
	all := []string{"non-persistent://a/b/x", "persistent://a/b/x", "persistent://a/b/x-partition-0", "persistent://a/b/xy", "persistent://a/b/z x"}
	for pattern, want := range map[string][]int{
		`a/b/x`:                     {0, 1, 2}, // the whole name, without domain and partition
		`persistent://a/b/x`:        {0, 1, 2},
		`non-persistent://a/b/x`:    {0, 1, 2},
		`^persistent://a/b/x.*`:     {0, 1, 2, 3},
		`a/b/(xy|z .)`:              {3, 4},
		`a/b/xy|a/b/z`:              {3},
		`.*`:                        {0, 1, 2, 3, 4},
		`x`:                         {},
		`persistent://.*-partition`: {},
	} {
		p, err := (&Options{}).withDefaultsForTest().topicPattern(pattern)
		if err != nil {
			t.Errorf("%s: %v", pattern, err)
			continue
		}
		wanted := []string{}
		for _, i := range want {
			wanted = append(wanted, all[i])
		}
		if got := p.filter(all); !slices.Equal(got, wanted) {
			t.Errorf("%s: %q, want %q", pattern, got, wanted)
		}
	}
	if all[0] != "non-persistent://a/b/x" || all[4] != "persistent://a/b/z x" {
		t.Error("filter changed what it was given")
	}
}

func TestPatternsThatAreNotMatchedHere(t *testing.T) {
	for pattern, text := range map[string]string{
		strings.Repeat("é", 51): "Pattern longer than maximum: 50",
		`a/b/(?=x)`:             "no RE2 expression",
		`segment://a/b/x`:       "topic domain",
		`(persistent)?://a/b/x`: "topic domain",
		`a/b/(`:                 "no RE2 expression",
		`)|(`:                   "no RE2 expression",
		strings.Repeat("(", 50): "no RE2 expression",
		`((a{100}){100}){100}`:  "no RE2 expression",
		"\xff":                  "no RE2 expression",
	} {
		if _, err := (&Options{}).withDefaultsForTest().topicPattern(pattern); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%q: error %v, want %q", pattern, err, text)
		}
	}
	if _, err := (&Options{}).withDefaultsForTest().topicPattern(strings.Repeat("é", 50)); err != nil {
		t.Errorf("50 characters: %v", err)
	}
	off := Options{MaxPatternLength: -1}.withDefaults()
	if _, err := off.topicPattern("x"); err == nil || !strings.Contains(err.Error(), "disabled") {
		t.Errorf("switched off: %v", err)
	}
}

func (o *Options) withDefaultsForTest() *Options {
	with := o.withDefaults()
	return &with
}
