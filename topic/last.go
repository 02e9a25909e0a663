package topic

import (
	"context"
	"sort"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/keyspace"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
)

// lastVisible is the answer to the last search for the last entry that can be read, and how far could be read then.
type lastVisible struct {
	known bool
	limit ledger.Position
	id    *pulsarproto.MessageIdData
}

// findLast finds the last entry that can really be delivered (FC-20, FC-21). then runs in the topic, maybe later.
func (t *Topic) findLast(then func(*pulsarproto.MessageIdData, error)) {
	limit := t.maxRead()
	if t.lastVisible.known && t.lastVisible.limit == limit {
		then(t.lastVisible.id, nil)
		return
	}
	if e := t.cache.before(limit); e != nil {
		t.foundLast(limit, e, then)
		return
	}
	from := limit
	if t.cache.from.Before(from) {
		from = t.cache.from
	}
	ledgers, first := t.extents(from), t.first
	t.asyncRead(func() {
		e, err := t.store.lastEntry(t.ctx, t.keys, ledgers)
		t.ask(func(alive bool) {
			switch {
			case !alive || err != nil:
				then(nil, ErrPersistence)
			case t.first != first: // it may have been trimmed since
				t.findLast(then)
			default:
				t.foundLast(limit, e, then)
			}
		})
	})
}

func (t *Topic) foundLast(limit ledger.Position, e *ledger.Entry, then func(*pulsarproto.MessageIdData, error)) {
	id := t.messageID(ledger.Position{Ledger: none}, -1) // -1:-1, nothing
	if e != nil {
		batchIndex := int32(-1)
		if e.IsBatch {
			batchIndex = int32(e.NumMessages) - 1
		}
		id = t.messageID(e.Position.Next(), batchIndex)
	}
	t.lastVisible = lastVisible{known: true, limit: limit, id: id}
	then(id, nil)
}

// extent is the part of a ledger that is looked at.
type extent struct {
	ledger uint64
	end    uint64 // entry ids lie before it
}

// extents returns every ledger that may have entries before limit, in order.
func (t *Topic) extents(limit ledger.Position) []extent {
	var out []extent
	for _, l := range append(t.ledgers[:len(t.ledgers):len(t.ledgers)], earlierLedger{id: t.ledger, last: t.next - 1}) {
		end := l.last + 1
		if l.id == limit.Ledger {
			end = min(end, limit.Entry)
		}
		if l.id <= limit.Ledger && end > 0 {
			out = append(out, extent{l.id, end})
		}
	}
	return out
}

// lastEntry returns the last entry of ledgers, or nil. It asks for the first key behind a place only, which costs etcd the
// same however many keys there are.
func (s store) lastEntry(ctx context.Context, keys keyspace.Topic, ledgers []extent) (*ledger.Entry, error) {
	for i := len(ledgers) - 1; i >= 0; i-- {
		last, found, err := s.lastBlock(ctx, keys, ledgers[i])
		if err != nil {
			return nil, err
		}
		if !found {
			continue
		}
		entries, _, err := s.blocks(ctx, keys, last, last.Next(), 1)
		if err != nil {
			return nil, err
		}
		if len(entries) > 0 {
			return &entries[0], nil
		}
	}
	return nil, nil
}

func (s store) lastBlock(ctx context.Context, keys keyspace.Topic, x extent) (last ledger.Position, found bool, err error) {
	end := ledger.Position{Ledger: x.ledger, Entry: x.end}
	// empty is a place behind which nothing is.
	empty := x.end
	for window := uint64(1); !found; window *= 2 {
		from := x.end - min(window, x.end)
		if last, found, err = s.blockAt(ctx, keys, ledger.Position{Ledger: x.ledger, Entry: from}, end); err != nil {
			return last, false, err
		}
		if !found {
			if from == 0 {
				return last, false, nil
			}
			empty = from
		}
	}
	for last.Entry+1 < empty {
		middle := last.Entry + 1 + (empty-last.Entry-1)/2
		block, later, err := s.blockAt(ctx, keys, ledger.Position{Ledger: x.ledger, Entry: middle}, end)
		switch {
		case err != nil:
			return last, false, err
		case later:
			last = block
		default:
			empty = middle
		}
	}
	return last, true, nil
}

// findTime finds the first entry that was published at millis or later, or the end of what can be read. Publish times are
// taken to grow, as Pulsar's own search takes them. then runs in the topic, maybe later.
// Source: OpFindNewest.
func (t *Topic) findTime(millis uint64, then func(ledger.Position, error)) {
	limit := t.maxRead()
	ledgers := t.extents(limit)
	t.asyncRead(func() {
		p, err := t.store.firstLate(t.ctx, t.keys, ledgers, limit, func(_ *ledger.Block, e *ledger.Entry) bool { return e.PublishTime >= millis })
		t.ask(func(alive bool) {
			if !alive || err != nil {
				then(ledger.Position{}, ErrPersistence)
				return
			}
			then(p, nil)
		})
	})
}

// firstLate returns the first entry from which on all are late, or limit. It reads a few blocks of each ledger.
func (s store) firstLate(ctx context.Context, keys keyspace.Topic, ledgers []extent, limit ledger.Position, late func(*ledger.Block, *ledger.Entry) bool) (ledger.Position, error) {
	for _, x := range ledgers {
		var failed error
		// read returns the first block that reaches an entry id of the ledger.
		read := func(entry uint64) *ledger.Block {
			block, err := s.blockFrom(ctx, keys, ledger.Position{Ledger: x.ledger, Entry: entry}, ledger.Position{Ledger: x.ledger, Entry: x.end})
			if err != nil {
				failed = err
			}
			return block
		}
		at := sort.Search(int(x.end), func(entry int) bool {
			block := read(uint64(entry))
			return block == nil || late(block, &block.Entries[len(block.Entries)-1])
		})
		block := read(uint64(at))
		if failed != nil {
			return ledger.Position{}, failed
		}
		if block == nil {
			continue
		}
		for i := range block.Entries {
			if e := &block.Entries[i]; e.Position.Entry >= uint64(at) && late(block, e) {
				return e.Position, nil
			}
		}
	}
	return limit, nil
}

// blockFrom returns the first block that reaches from and ends before limit, or nil.
func (s store) blockFrom(ctx context.Context, keys keyspace.Topic, from, limit ledger.Position) (*ledger.Block, error) {
	got, err := s.get(ctx, keys.Entries(from.Ledger, from.Entry), clientv3.WithRange(keys.Entries(limit.Ledger, limit.Entry)), clientv3.WithLimit(1))
	if err != nil || len(got.Kvs) == 0 {
		return nil, err
	}
	block, err := decodeBlock(keys, got.Kvs[0].Key, got.Kvs[0].Value)
	if err != nil {
		return nil, err
	}
	return &block, nil
}

// findStored finds the first entry that was stored at or after a time, by the clock of this server, or the end of what can be
// read. then runs in the topic, maybe later.
func (t *Topic) findStored(at time.Time, then func(ledger.Position, error)) {
	limit := t.maxRead()
	ledgers := t.extents(limit)
	millis := uint64(max(0, at.UnixMilli()))
	t.asyncRead(func() {
		p, err := t.store.firstLate(t.ctx, t.keys, ledgers, limit, func(b *ledger.Block, _ *ledger.Entry) bool { return b.Written >= millis })
		t.ask(func(alive bool) {
			if !alive || err != nil {
				then(ledger.Position{}, ErrPersistence)
				return
			}
			then(p, nil)
		})
	})
}
