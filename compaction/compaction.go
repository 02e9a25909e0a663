package compaction

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
)

// Options say what is kept.
type Options struct {
	// RetainNullKey keeps messages without a key. Source: broker.conf topicCompactionRetainNullKey.
	RetainNullKey bool
}

// Compaction is one run over a topic. First Note every entry, then Keep every entry, then Close.
type Compaction struct {
	options Options
	codec   codec
	newest  map[string]place
	// noted and kept are the chunked messages, by uuid, of which a pass has not come to the last chunk.
	noted, kept map[string]place
}

// place is where a message is: in an entry, or in the chunks with a uuid of which the first is there. A producer that starts anew
// may use a uuid again, for another message.
type place struct {
	at    ledger.Position
	index int
	uuid  string
}

// New returns a run that has noted nothing.
func New(options Options) *Compaction {
	return &Compaction{options: options, newest: map[string]place{}, noted: map[string]place{}, kept: map[string]place{}}
}

// Close gives back what the run holds besides memory.
func (c *Compaction) Close() { c.codec.close() }

// Keys is the number of keys in memory.
func (c *Compaction) Keys() int { return len(c.newest) }

// Note is the first pass over e; gone is Kept.Gone of an earlier compaction that kept it.
func (c *Compaction) Note(e *ledger.Entry, gone ledger.Bits) {
	opened := c.codec.open(e, gone)
	if opened.opaque {
		return
	}
	if opened.chunk() {
		c.noteChunk(e.Position, &opened)
		return
	}
	for i := range opened.messages {
		c.note(&opened.messages[i], place{at: e.Position, index: i})
	}
}

func (c *Compaction) note(m *message, at place) {
	switch {
	case !m.keyed || m.gone:
	case m.tombstone:
		delete(c.newest, m.key)
	default:
		c.newest[m.key] = at
	}
}

// noteChunk counts a chunked message when its last chunk is there.
func (c *Compaction) noteChunk(at ledger.Position, opened *content) {
	if of, last, found := chunkOf(c.noted, at, opened); found && last {
		c.note(&opened.messages[0], of)
	}
}

// chunkOf returns the message that a chunk belongs to, and whether it is its last chunk. It is not found without its first one, and
// behind its last one: what a producer sends again there belongs to nothing.
func chunkOf(unfinished map[string]place, at ledger.Position, opened *content) (of place, last, found bool) {
	uuid := opened.metadata.GetUuid()
	if opened.metadata.GetChunkId() == 0 {
		unfinished[uuid] = place{at: at, uuid: uuid}
	}
	of, found = unfinished[uuid]
	last = opened.metadata.GetChunkId() >= opened.metadata.GetNumChunksFromMsg()-1
	if last {
		delete(unfinished, uuid)
	}
	return of, last, found
}

// Kept is an entry that stays.
type Kept struct {
	ledger.Entry
	Gone ledger.Bits // indexes of the batch that count as placeholders; nil: none
	// Last is the index of the last message of a batch that stays; -1 without batch, or if nobody can look into it.
	Last int32
}

// mayGrowTo is the size in bytes up to which a payload may be larger than it was.
const mayGrowTo = 64 << 10

// Keep is the second pass over e: it returns what stays of it, if anything does. The payload is e's own unless messages of a
// batch go. It is so then, too, if it would become larger: a producer may compress better than codec does, and the store takes
// nothing larger than a message. gone is that of Note.
func (c *Compaction) Keep(e *ledger.Entry, gone ledger.Bits) (Kept, bool, error) {
	opened := c.codec.open(e, gone)
	kept := Kept{Entry: *e, Last: -1}
	switch {
	case opened.opaque:
		return kept, true, nil
	case opened.chunk():
		return kept, c.keepsChunk(e.Position, &opened), nil
	case opened.metadata.NumMessagesInBatch == nil:
		return kept, c.keeps(&opened.messages[0], place{at: e.Position}), nil
	}
	gone = make(ledger.Bits, len(ledger.AllBits(len(opened.messages))))
	changes := false
	for i := range opened.messages {
		m := &opened.messages[i]
		if c.keeps(m, place{at: e.Position, index: i}) {
			kept.Last = int32(i)
			continue
		}
		gone[i/64] |= 1 << (i % 64)
		changes = changes || !m.gone
	}
	if kept.Last < 0 {
		return Kept{}, false, nil
	}
	if !gone.Empty() {
		kept.Gone = gone
	}
	if !changes {
		return kept, true, nil
	}
	payload, err := c.rewrite(&opened, gone)
	if err != nil {
		return Kept{}, false, fmt.Errorf("rewrite the batch at %v: %w", e.Position, err)
	}
	if len(payload) <= max(len(e.Payload), mayGrowTo) {
		kept.Payload = payload
	}
	return kept, true, nil
}

func (c *Compaction) keeps(m *message, at place) bool {
	switch {
	case m.gone:
		return false
	case !m.keyed:
		return c.options.RetainNullKey
	}
	newest, live := c.newest[m.key]
	return live && newest == at
}

func (c *Compaction) keepsChunk(at ledger.Position, opened *content) bool {
	of, _, found := chunkOf(c.kept, at, opened)
	if unfinished, is := c.noted[of.uuid]; found && is && unfinished == of {
		return true
	}
	return c.keeps(&opened.messages[0], of)
}

// rewrite returns the payload of a batch with placeholders for what is gone.
func (c *Compaction) rewrite(opened *content, gone ledger.Bits) ([]byte, error) {
	batch, err := join(opened.messages, gone)
	if err != nil {
		return nil, err
	}
	metadata := opened.metadata
	metadata.UncompressedSize = proto.Uint32(uint32(len(batch)))
	compressed, err := c.codec.compress(metadata.GetCompression(), batch)
	if err != nil {
		return nil, fmt.Errorf("compress with %v: %w", metadata.GetCompression(), err)
	}
	return pulsarproto.AppendPayload(nil, metadata, compressed)
}
