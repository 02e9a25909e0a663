package topic

import (
	"fmt"
	"testing"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

// TestPriorityLevels: a lower level is served first; others are given something when nobody there takes it.
func TestPriorityLevels(t *testing.T) {
	w := newWorld(t)
	p := w.produce("a")
	subscribe := func(priority int32) *testConsumer {
		c, err := w.trySubscribe("a", "s", shared, atPriority(priority))
		if err != nil {
			t.Fatal(err)
		}
		c.Flow(5)
		return c
	}
	low, one, other := subscribe(2), subscribe(1), subscribe(1)
	sendMany(p, 13)
	w.quiet("a")
	if len(one.messages) != 5 || len(other.messages) != 5 || len(low.messages) != 3 {
		t.Fatalf("%d, %d and %d messages, want 5, 5 and 3", len(one.messages), len(other.messages), len(low.messages))
	}
	one.Flow(3)
	for i := range 3 {
		p.send(message(uint64(20+i), "more"))
	}
	w.quiet("a")
	if len(one.messages) != 8 || len(low.messages) != 3 {
		t.Fatalf("%d and %d messages, want 8 and 3", len(one.messages), len(low.messages))
	}
	one.Close()
	other.Close()
	w.quiet("a")
	if len(low.messages) != 5 {
		t.Fatalf("the last one was given %d messages, want its 5", len(low.messages))
	}
}

// payloadOf is a stored payload part with this metadata, and text as its content.
func payloadOf(t testing.TB, m *pulsarproto.MessageMetadata, text string) []byte {
	t.Helper()
	m.ProducerName, m.PublishTime = ptr("p"), ptr(uint64(1))
	if m.SequenceId == nil {
		m.SequenceId = ptr(uint64(0))
	}
	payload, err := pulsarproto.AppendPayload(nil, m, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return payload
}

// textOf is the content of a delivered payload part.
func textOf(t testing.TB, payload []byte) string {
	t.Helper()
	_, content, err := pulsarproto.ParsePayload(payload)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// drain returns the contents of everything that was delivered and not received.
func (c *testConsumer) drain() (texts []string) {
	c.t.Helper()
	for len(c.messages) > 0 {
		texts = append(texts, textOf(c.t, c.next().Payload))
	}
	return texts
}

// TestChunksGoToOneConsumer: all chunks of a message, be they interleaved, delivered again, or held up by a consumer without
// permits, while the others go on.
func TestChunksGoToOneConsumer(t *testing.T) {
	w := newWorld(t)
	p := w.produce("a")
	var consumers []*testConsumer
	for range 3 {
		c, err := w.trySubscribe("a", "s", shared)
		if err != nil {
			t.Fatal(err)
		}
		c.Flow(3)
		consumers = append(consumers, c)
	}
	sequence := uint64(0)
	for chunk := range int32(4) {
		for _, uuid := range []string{"x", "y"} {
			m := &pulsarproto.MessageMetadata{Uuid: &uuid, ChunkId: &chunk, NumChunksFromMsg: ptr(int32(4))}
			msg := message(sequence, "")
			msg.IsChunk, msg.Metadata, msg.Payload = true, m, payloadOf(t, m, fmt.Sprint(uuid, chunk))
			p.send(msg)
			sequence++
		}
		msg := message(sequence, "")
		msg.Payload = payloadOf(t, &pulsarproto.MessageMetadata{}, "plain")
		p.send(msg)
		sequence++
	}
	check := func() {
		t.Helper()
		w.quiet("a")
		owner, plain, chunks := make(map[byte]*testConsumer), 0, 0
		next := make(map[byte]byte)
		for _, c := range consumers {
			c.Flow(100)
		}
		w.quiet("a")
		for _, c := range consumers {
			for _, text := range c.drain() {
				if text == "plain" {
					plain++
					continue
				}
				chunks++
				if owner[text[0]] == nil {
					owner[text[0]], next[text[0]] = c, '0'
				}
				if owner[text[0]] != c || text[1] != next[text[0]] {
					t.Fatalf("chunk %s came to another consumer, or not in order", text)
				}
				next[text[0]]++
			}
		}
		if plain != 4 || chunks != 8 {
			t.Fatalf("%d plain messages and %d chunks, want 4 and 8", plain, chunks)
		}
	}
	check()
	for _, c := range consumers { // all of them, before one gives back what another would be given
		c.setFull(true)
	}
	for _, c := range consumers {
		c.Redeliver(redeliver())
	}
	w.quiet("a")
	for _, c := range consumers {
		c.setFull(false)
		c.Resume()
	}
	check()
}
