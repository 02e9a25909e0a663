package topic

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

func withProperties(properties ...string) subscribeOption {
	return func(cmd *pulsarproto.CommandSubscribe) {
		for i := 0; i < len(properties); i += 2 {
			cmd.SubscriptionProperties = append(cmd.SubscriptionProperties, &pulsarproto.KeyValue{Key: &properties[i], Value: &properties[i+1]})
		}
	}
}

// TestSubscriptionProperties: they are those of the command that created the subscription, over a reload, and bounded.
func TestSubscriptionProperties(t *testing.T) {
	w := newWorld(t)
	want := map[string]string{"k": "v", "": "empty", "long": strings.Repeat("x", 300)}
	w.subscribe("a", "s", shared, withProperties("k", "v", "", "empty", "long", want["long"]))
	w.subscribe("a", "s", shared, withProperties("other", "comes too late"))
	w.subscribe("a", "none", shared)
	for range 2 {
		stats, err := w.topics.TopicStats(context.Background(), parse(t, "a"))
		if err != nil {
			t.Fatal(err)
		}
		if got := stats.Subscriptions["s"].SubscriptionProperties; !maps.Equal(got, want) {
			t.Fatalf("properties %v, want %v", got, want)
		}
		if got := stats.Subscriptions["none"].SubscriptionProperties; len(got) != 0 {
			t.Fatalf("properties %v, want none", got)
		}
		w.restart()
	}
	if _, err := w.trySubscribe("a", "large", withProperties("k", strings.Repeat("x", maxPropertiesBytes))); !errors.Is(err, txn.ErrNotAllowed) {
		t.Fatalf("properties that are too large: %v", err)
	}
}

func TestPropertiesRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		properties := rapid.MapOf(rapid.String(), rapid.String()).Draw(t, "properties")
		got, err := decodeProperties(encodeProperties(properties))
		if err != nil || !maps.Equal(got, properties) {
			t.Fatalf("%v, %v, want %v", got, err, properties)
		}
	})
}

// FuzzProperties: stored bytes that are broken are refused, and inflate nothing.
func FuzzProperties(f *testing.F) {
	f.Add(encodeProperties(map[string]string{"k": "v"}))
	f.Add([]byte{1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Add([]byte{1, 1, 'k'})
	f.Fuzz(func(t *testing.T, value []byte) {
		properties, err := decodeProperties(value)
		if err != nil {
			return
		}
		again, err := decodeProperties(encodeProperties(properties))
		if err != nil || !maps.Equal(again, properties) {
			t.Fatalf("%v reads back as %v, %v", properties, again, err)
		}
	})
}
