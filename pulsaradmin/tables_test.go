package pulsaradmin

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// docs/admin.md names every policy that has no effect here, and no other.
func TestPoliciesWithoutEffectAreSaid(t *testing.T) {
	text, err := os.ReadFile("../docs/admin.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range []struct {
		of       string
		policies []policy
	}{{"namespace", namespacePolicies(nil)}, {"topic", topicPolicies}} {
		for _, p := range table.policies {
			line := fmt.Sprintf("| %s | `%s` |", table.of, p.path)
			if said := strings.Contains(string(text), line); said == p.effect {
				t.Errorf("%s %s: effect %v, said to have none: %v", table.of, p.path, p.effect, said)
			}
		}
	}
}

// Members of both tables are the same, so that a topic's policy is looked for under the name of its namespace's.
func TestTablesAgree(t *testing.T) {
	members := map[string]bool{"max_message_size": true} // a topic's only
	for _, p := range namespacePolicies(nil) {
		members[p.member] = true
	}
	for _, p := range topicPolicies {
		if !members[p.member] {
			t.Errorf("topic policy %s: no namespace policy has the member %s", p.path, p.member)
		}
	}
}

func TestKinds(t *testing.T) {
	for _, test := range []struct {
		name string
		kind kind
		text string
		want string // status and value, or the status of the refusal
	}{
		{"whole", whole(0, ""), "5", "5"},
		{"whole as text", whole(0, ""), `"5"`, "5"},
		{"too small", whole(0, ""), "-1", "412"},
		{"no number", whole(0, ""), `"x"`, "400"},
		{"truth", truth, "true", "true"},
		{"truth as text", truth, `"False"`, "false"},
		{"no truth", truth, "1", "400"},
		{"word", word("A", "B"), `"B"`, "B"},
		{"bare word", word("A", "B"), `B`, "B"},
		{"other word", word("A", "B"), `"C"`, "400"},
		{"retention", object(checkRetention), `{"retentionTimeInMinutes":-1,"retentionSizeInMB":-1}`, ""},
		{"one zero", object(checkRetention), `{"retentionTimeInMinutes":3,"retentionSizeInMB":0}`, "412"},
		{"below -1", object(checkRetention), `{"retentionTimeInMinutes":-2,"retentionSizeInMB":1}`, "412"},
		{"no object", object(checkRetention), `[]`, "400"},
		{"delay without tick", object(checkDelayedDelivery), `{"active":true}`, "412"},
		{"inactive mode", object(checkInactiveTopics), `{"inactiveTopicDeleteMode":"x","maxInactiveDurationSeconds":1}`, "412"},
	} {
		value, err := test.kind([]byte(test.text))
		got := fmt.Sprint(value)
		if err != nil {
			got = fmt.Sprint(statusOf(err))
		}
		if test.want != "" && got != test.want || test.want == "" && err != nil {
			t.Errorf("%s: %s: %s, want %s", test.name, test.text, got, test.want)
		}
	}
}
