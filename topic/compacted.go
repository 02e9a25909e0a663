package topic

import (
	"context"
	"sort"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/compaction"
	"github.com/pulsar-tc/pulsar-tc/keyspace"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// A subscription with readCompacted is given the compacted entries before the horizon, and the log from there on. What
// compaction took out counts as acknowledged by it, messages of batches too: they are never delivered to it, whatever its client
// thinks of placeholders.

// setReadCompacted says what the consumers of s want to read, from now on.
func (s *subscription) setReadCompacted(is bool) {
	if s.readCompacted != is {
		s.readCompacted = is
		s.setAhead(page{})
	}
}

// readsCompacted reports whether what s reads at p is compacted.
func (s *subscription) readsCompacted(p ledger.Position) bool {
	c := &s.topic.compaction
	return s.readCompacted && c.generation > 0 && p.Before(c.horizon)
}

// earliest is where a reader starts that wants everything: compacted entries stay when the log is trimmed.
func (t *Topic) earliest(compacted bool) ledger.Position {
	if compacted && t.compaction.generation > 0 {
		return ledger.Position{}
	}
	return t.oldest()
}

// lookupCompacted is lookup where s reads compacted entries.
func (s *subscription) lookupCompacted(at ledger.Position) (e *ledger.Entry, to ledger.Position, known bool) {
	c := &s.topic.compaction
	if s.ahead.generation != c.generation || !s.ahead.Contains(at) {
		s.readCompactedAhead(at)
		return nil, at, false
	}
	entries := s.ahead.entries
	i := sort.Search(len(entries), func(i int) bool { return !entries[i].Position.Before(at) })
	if i == len(entries) {
		return nil, s.ahead.To, true
	}
	e = &entries[i]
	if gone := s.ahead.gone[e.Position]; gone != nil && !s.cursor.Done(e.Position) {
		s.cursor.AckBits(e.Position, gone, e.BatchSize())
	}
	return e, s.ahead.To, true
}

// readCompactedAhead is readAhead of compacted entries. A page of a generation that does not count any more is dropped: some of
// it may have been deleted while it was read.
func (s *subscription) readCompactedAhead(at ledger.Position) {
	if s.reading {
		return
	}
	s.reading = true
	t, head := s.topic, s.topic.compaction.compactionHead
	t.async(func() {
		got, err := t.store.compactedPage(t.ctx, t.keys, head, at, readBytes)
		if err != nil && t.ctx.Err() == nil {
			t.log.Warn().Err(err).Str("sub", s.name).Msg("compacted entries cannot be read, tried again later")
			select {
			case <-time.After(retryRead):
			case <-t.ctx.Done():
			}
		}
		t.post(func(alive bool) {
			s.reading = false
			if alive && err == nil && !s.gone && t.compaction.generation == head.generation {
				s.setAhead(got)
			}
		})
	})
}

// compactedPage reads compacted entries from at on, until maxBytes are read.
func (s store) compactedPage(ctx context.Context, keys keyspace.Topic, head compactionHead, at ledger.Position, maxBytes int) (page, error) {
	out := page{
		Range: ledger.Range{From: at, To: head.horizon}, generation: head.generation, gone: map[ledger.Position]ledger.Bits{},
	}
	from, end := keys.Compacted(head.generation, at.Ledger, at.Entry), clientv3.GetPrefixRangeEnd(keys.Generation(head.generation))
	for n := int64(1); ; n = min(2*n, mostReadKeys) {
		got, err := s.get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(n))
		if err != nil {
			return page{}, err
		}
		for _, kv := range got.Kvs {
			kept, err := decodeCompacted(kv.Key, kv.Value)
			if err != nil {
				return page{}, err
			}
			out.keep(kept, at)
		}
		if !got.More || len(got.Kvs) == 0 {
			return out, nil
		}
		from = string(got.Kvs[len(got.Kvs)-1].Key) + "\x00"
		if out.bytes >= maxBytes/2 {
			out.To = out.entries[len(out.entries)-1].Position.Next()
			return out, nil
		}
	}
}

// keep adds what lies at or behind at.
func (p *page) keep(kept []compaction.Kept, at ledger.Position) {
	for i := range kept {
		k := &kept[i]
		if k.Position.Before(at) {
			continue
		}
		p.entries = append(p.entries, k.Entry)
		p.bytes += len(k.Payload) + slotOverhead
		if k.Gone != nil {
			p.gone[k.Position] = k.Gone
		}
	}
}

func decodeCompacted(key, value []byte) ([]compaction.Kept, error) {
	kept, err := compaction.DecodeBlock(value)
	if err != nil {
		return nil, &txn.CorruptError{Key: string(key), Reason: err.Error()}
	}
	return kept, nil
}

// lastCompacted returns the id of the last message that s can be given, if last is that of the log.
func (s *subscription) lastCompacted(last *pulsarproto.MessageIdData) *pulsarproto.MessageIdData {
	t, c := s.topic, &s.topic.compaction
	at := ledger.Position{Ledger: last.GetLedgerId(), Entry: last.GetEntryId()}
	if !s.readCompacted || c.generation == 0 || at.Ledger != none && !at.Before(c.horizon) {
		return last
	}
	if c.entries == 0 {
		return t.messageID(ledger.Position{Ledger: none}, -1)
	}
	return t.messageID(c.last.Next(), c.lastIndex)
}
