package topic

import (
	"context"
	"errors"
	"testing"

	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
)

// TestDelete: a deleted topic is gone with its data, and a topic of the same name is another one.
func TestDelete(t *testing.T) {
	w := newWorld(t)
	ctx, name := context.Background(), parse(t, "t")
	if err := w.topics.DeleteTopic(ctx, name, false); !errors.Is(err, ErrTopicNotFound) {
		t.Fatalf("delete what is not there: %v", err)
	}
	p := w.produce("t")
	first := p.send(message(0, "old"))
	keys := w.space("t")
	if err := w.topics.DeleteTopic(ctx, name, false); !errors.Is(err, ErrTopicBusy) {
		t.Fatalf("delete with a producer: %v", err)
	}
	p.send(message(1, "still there"))
	c := w.subscribe("t", "s", earliest)
	if err := w.topics.DeleteTopic(ctx, name, true); err != nil {
		t.Fatal(err)
	}
	happens(t, p.disconnected)
	happens(t, c.disconnected)
	if exists, err := w.topics.TopicExists(ctx, name); exists || err != nil {
		t.Fatalf("exists %v, %v", exists, err)
	}
	eventually(t, "data and tombstone are gone", func() bool {
		return w.keysUnder(keys.Prefix()) == 0 && w.keysUnder(w.keys.DeletedPrefix()) == 0
	})
	again := w.produce("t").send(message(0, "new"))
	if !first.Before(again) {
		t.Fatalf("position %v behind %v", again, first)
	}
	w.subscribe("t", "s", earliest).want("new")
}

// TestDeletePartitioned: all partitions go at once, those that nobody used among them.
func TestDeletePartitioned(t *testing.T) {
	w := newWorld(t)
	ctx, name := context.Background(), parse(t, "p")
	if err := w.topics.CreatePartitioned(ctx, name, 3, nil); err != nil {
		t.Fatal(err)
	}
	p := w.produce("p-partition-1")
	p.send(message(0, "m"))
	if err := w.topics.DeletePartitioned(ctx, name, false); !errors.Is(err, ErrTopicBusy) {
		t.Fatalf("with a producer: %v", err)
	}
	if err := w.topics.DeletePartitioned(ctx, name, true); err != nil {
		t.Fatal(err)
	}
	happens(t, p.disconnected)
	got, err := w.topics.TopicsOfNamespace(ctx, "public/default", 0)
	if err != nil || len(got) != 0 {
		t.Fatalf("topics %q, %v", got, err)
	}
	if err := w.topics.DeletePartitioned(ctx, name, true); !errors.Is(err, ErrTopicNotFound) {
		t.Fatalf("again: %v", err)
	}
	w.produce("p").send(message(0, "plain"))
}

// TestUnload: nothing is lost and nothing is delivered twice to a subscription whose acknowledgements were answered.
func TestUnload(t *testing.T) {
	w := newWorld(t)
	ctx, name := context.Background(), parse(t, "t")
	p, c := w.produce("t"), w.subscribe("t", "s")
	at := p.send(message(0, "a"))
	c.want("a")
	c.ack(at)
	p.send(message(1, "b"))
	if err := w.topics.Unload(ctx, name); err != nil {
		t.Fatal(err)
	}
	happens(t, p.disconnected)
	happens(t, c.disconnected)
	w.subscribe("t", "s").want("b")
	if err := w.topics.Unload(ctx, parse(t, "none")); !errors.Is(err, ErrTopicNotFound) {
		t.Fatalf("unload what is not there: %v", err)
	}
}

// TestTerminate: what was sent before is stored, nothing behind it, for ever.
func TestTerminate(t *testing.T) {
	w := newWorld(t)
	ctx, name := context.Background(), parse(t, "t")
	p := w.produce("t")
	w.subscribe("t", "s")
	last := p.send(message(0, "a"))
	got, err := w.topics.Terminate(ctx, name)
	if err != nil || (ledger.Position{Ledger: got.GetLedgerId(), Entry: got.GetEntryId()}) != last {
		t.Fatalf("terminated at %v, %v, want %v", got, err, last)
	}
	happens(t, p.disconnected)
	w.restart()
	if _, err := w.tryProduce("t", nil); !errors.Is(err, ErrTopicTerminated) {
		t.Fatalf("produce: %v", err)
	}
	c := w.subscribe("t", "s")
	c.want("a")
	if len(c.ends) != 0 {
		t.Fatal("end of the topic before the last acknowledgement")
	}
	c.ack(last)
	happens(t, c.ends)
}
