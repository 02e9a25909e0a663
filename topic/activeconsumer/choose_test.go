package activeconsumer

import (
	"fmt"
	"slices"
	"testing"

	"github.com/pulsar-tc/pulsar-tc/topicname"
)

func topicNamed(local string) topicname.Name {
	return topicname.Name{Domain: topicname.Persistent, Tenant: "public", Namespace: "default", Local: local}
}

// Partition p has number p modulo n of the consumers of the best priority level, by name.
func TestPartitionsSpread(t *testing.T) {
	consumers := []Consumer{{"aaa", 1}, {"bbb2", 0}, {"bbb1", 0}, {"bbb4", 1}, {"bbb3", 0}}
	for partition := range 9 {
		got := consumers[Choose(topicNamed(fmt.Sprint("a-partition-", partition)), consumers)].Name
		if want := fmt.Sprint("bbb", 1+partition%3); got != want {
			t.Errorf("partition %d is with %s, want %s", partition, got, want)
		}
	}
}

// Topics without partitions spread over the best priority level too, whatever the order in which consumers came, and one that goes
// moves only the topics that it had.
func TestTopicsSpread(t *testing.T) {
	consumers := []Consumer{{"worse", 1}, {"a", 0}, {"b", 0}, {"c", 0}}
	backwards := slices.Clone(consumers)
	slices.Reverse(backwards)
	had := map[string]int{}
	for i := range 300 {
		topic := topicNamed(fmt.Sprint("topic", i))
		name := consumers[Choose(topic, consumers)].Name
		had[name]++
		if other := backwards[Choose(topic, backwards)].Name; other != name {
			t.Fatalf("%s is with %s or %s", topic, name, other)
		}
		if left := consumers[:3]; name != "c" && left[Choose(topic, left)].Name != name {
			t.Fatalf("%s moved away from %s", topic, name)
		}
	}
	if had["worse"] != 0 || len(had) != 3 {
		t.Errorf("300 topics spread as %v", had)
	}
}

func TestSameNames(t *testing.T) {
	same := []Consumer{{"a", 0}, {"a", 0}}
	if got := Choose(topicNamed("t"), same); got != 0 {
		t.Errorf("of two of the same name %d, want the first", got)
	}
}
