package server

import (
	"slices"
	"testing"

	"github.com/apache/pulsar-client-go/pulsar"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

// The hash of a list is over its names in order, so the list of both domains has to be in order, too.
func TestTopicsOfBothDomainsAreInOrder(t *testing.T) {
	s := start(t, load(t))
	client := officialClient(t, s)
	for _, name := range []string{"persistent://public/default/a", "non-persistent://public/default/b"} {
		producer, err := client.CreateProducer(pulsar.ProducerOptions{Topic: name})
		if err != nil {
			t.Fatal(err)
		}
		defer producer.Close()
	}
	names, err := s.namedTopics().TopicsOfNamespace(t.Context(), "public/default", pulsarproto.CommandGetTopicsOfNamespace_ALL)
	if err != nil || len(names) != 2 || !slices.IsSorted(names) {
		t.Errorf("%v, %v", names, err)
	}
}
