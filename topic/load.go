package topic

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/pulsar-tc/pulsar-tc/keyspace"
	"github.com/pulsar-tc/pulsar-tc/topic/cursor"
	"github.com/pulsar-tc/pulsar-tc/topic/dedup"
	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
	"github.com/pulsar-tc/pulsar-tc/topic/pendingack"
	"github.com/pulsar-tc/pulsar-tc/topic/txnbuffer"
	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// read loads a topic: it takes the fence first, then reads what is behind m/. No entry is read and no history replayed.
func (ts *Topics) read(ctx context.Context, name topicname.Name, create bool) (*Topic, error) {
	taken, err := ts.own(ctx, name, create)
	if err != nil {
		return nil, err
	}
	t := ts.newTopic(name, taken)
	l := loader{topic: t, subscriptions: make(map[uint64]*storedSubscription)}
	if err := ts.store.scanPrefix(ctx, taken.keys.MetaPrefix(), l.take); err != nil {
		t.cancel()
		return nil, err
	}
	if err := l.finish(); err != nil {
		t.cancel()
		return nil, err
	}
	t.tidyCompaction()
	if taken.left != nil {
		t.wake(*taken.left)
	}
	return t, nil
}

func (ts *Topics) newTopic(name topicname.Name, taken ownership) *Topic {
	t := &Topic{
		name: name, fullName: name.String(), options: &ts.options, keys: taken.keys, store: ts.store, registry: ts,
		log:   ts.options.Log.With().Str("topic", name.String()).Logger(),
		fence: taken.fence, ledger: uint64(taken.fence), lost: taken.lost,
		buffer: txnbuffer.New(), dedup: dedup.New(), reads: make(chan struct{}, maxReads),
		aborting: make(map[txn.ID]*abortion), unsaved: make(map[*subscription]struct{}), asking: make(map[openRef]*registration),
		settling: newSettling(), folding: folding{subscriptions: make(map[*subscription]struct{})},
		producers: make(map[string]*producer), subscriptions: make(map[string]*subscription), creating: make(map[string]bool),
	}
	t.measured = ts.options.Now()
	t.hash = t.participant().Hash()
	t.ctx, t.cancel = context.WithCancel(ts.ctx)
	t.settle = t.round
	t.cache = cache{budget: &ts.budget, from: t.end()}
	t.first = t.end()
	t.trim.marks = []endMark{{ts.options.Now(), t.end()}}
	return t
}

// loader gathers the stored state of a topic.
type loader struct {
	topic         *Topic
	tail          *tail
	marks         []storedMark
	subscriptions map[uint64]*storedSubscription
}

type storedSubscription struct {
	name       string
	properties map[string]string
	frontier   []byte
	buckets    []cursor.BucketValue
	partials   []cursor.PartialValue
	pending    []storedPending
	committed  []txn.ID
}

type storedPending struct {
	id     txn.ID
	number uint64
	held   pendingack.Held
}

func (l *loader) take(key, value []byte) error {
	if err := l.takeValue(key, value); err != nil {
		return &txn.CorruptError{Key: string(key), Reason: err.Error()}
	}
	return nil
}

var errUnknownKey = errors.New("no key of this layout")

func (l *loader) takeValue(key, value []byte) error {
	keys := l.topic.keys
	text := string(key)
	switch {
	case text == keys.Tail():
		tail, err := decodeTail(value)
		l.tail = &tail
		return err
	case text == keys.Compaction():
		return l.topic.compaction.restore(value)
	case text == keys.Epoch():
		epoch, err := decodeNumber(value)
		l.topic.epoch, l.topic.hasEpoch = epoch, true
		return err
	case text == keys.Terminated():
		l.topic.terminated = true
		return nil
	case strings.HasPrefix(text, keys.DedupPrefix()):
		number, ok := keys.ParseDedup(key)
		if !ok {
			return errUnknownKey
		}
		return l.topic.dedup.RestorePage(number, value)
	case strings.HasPrefix(text, keys.LedgerPrefix()):
		id, ok := keys.ParseLedger(key)
		earlier, err := decodeLedger(id, value)
		if !ok {
			return errUnknownKey
		}
		l.topic.ledgers = append(l.topic.ledgers, earlier)
		return err
	case strings.HasPrefix(text, keys.TxnPrefix()):
		id, ok := keys.ParseTxn(key)
		if !ok {
			return errUnknownKey
		}
		mark, err := decodeMark(value)
		mark.id = id
		l.marks = append(l.marks, mark)
		return err
	}
	id, rest, ok := keys.ParseSubscription(key)
	if !ok {
		return errUnknownKey
	}
	s := l.subscriptions[id]
	if s == nil {
		s = &storedSubscription{}
		l.subscriptions[id] = s
	}
	return s.take(rest, value)
}

func (s *storedSubscription) take(key string, value []byte) error {
	kind, rest, _ := strings.Cut(key, "/")
	switch kind {
	case "name":
		s.name = string(value)
		return nil
	case "frontier":
		s.frontier = value
		return nil
	case "properties":
		properties, err := decodeProperties(value)
		s.properties = properties
		return err
	case "pending":
		if id, ok := keyspace.ParseCommitted(rest); ok {
			s.committed = append(s.committed, id)
			return nil
		}
		id, number, ok := keyspace.ParsePending(rest)
		if !ok {
			return errUnknownKey
		}
		held, err := pendingack.Decode(value)
		s.pending = append(s.pending, storedPending{id, number, held})
		return err
	}
	a, b, ok := keyspace.ParsePair(rest)
	switch {
	case ok && kind == "acked":
		s.buckets = append(s.buckets, cursor.BucketValue{Bucket: cursor.Bucket{Ledger: a, Index: b}, Value: value})
	case ok && kind == "batch":
		s.partials = append(s.partials, cursor.PartialValue{Position: ledger.Position{Ledger: a, Entry: b}, Value: value})
	default:
		return errUnknownKey
	}
	return nil
}

func (l *loader) finish() error {
	t := l.topic
	slices.SortFunc(t.ledgers, func(a, b earlierLedger) int {
		return ledger.Position{Ledger: a.id}.Compare(ledger.Position{Ledger: b.id})
	})
	if n := len(t.ledgers); l.tail != nil && (n == 0 || t.ledgers[n-1].id != l.tail.last.Ledger) {
		before := earlierLedger{l.tail.last.Ledger, l.tail.last.Entry, l.tail.sizes}
		t.ledgers, t.unnamed = append(t.ledgers, before), &before
	}
	if l.tail != nil {
		t.sizes = sizes{l.tail.through, l.tail.through}
	}
	if len(t.ledgers) > 0 {
		t.first = ledger.Position{Ledger: t.ledgers[0].id}
	}
	slices.SortFunc(l.marks, func(a, b storedMark) int { return a.first.Compare(b.first) })
	for _, m := range l.marks {
		t.buffer.Restore(m.id, m.first, m.last)
		t.dedup.Restore(m.id, m.dedup)
	}
	for id, stored := range l.subscriptions {
		s, err := stored.restore(t, id)
		if err != nil {
			return &txn.CorruptError{Key: t.keys.Subscription(id).Prefix(), Reason: err.Error()}
		}
		t.subscriptions[s.name] = s
		t.settling.add(s.name, s.keys)
		t.nextSubID = max(t.nextSubID, id+1)
	}
	return nil
}

func (s *storedSubscription) restore(t *Topic, id uint64) (*subscription, error) {
	if s.name == "" || s.frontier == nil {
		return nil, errors.New("subscription without name or frontier")
	}
	c, err := cursor.Restore(s.frontier)
	if err != nil {
		return nil, err
	}
	for _, b := range s.buckets {
		if err := c.RestoreBucket(b.Bucket, b.Value); err != nil {
			return nil, err
		}
	}
	for _, p := range s.partials {
		if err := c.RestorePartial(p.Position, p.Value); err != nil {
			return nil, err
		}
	}
	restored := t.newSubscription(s.name, true, c)
	restored.keys, restored.properties = t.keys.Subscription(id), s.properties
	// What is committed goes first: only one transaction at a time holds a cumulative acknowledgement, and another may have come
	// behind it.
	committed := make(map[txn.ID]bool, len(s.committed))
	for _, id := range s.committed {
		committed[id] = true
	}
	restore := func(those bool) {
		for _, p := range s.pending {
			if committed[p.id] == those {
				restored.pending.Restore(p.id, p.held)
				restored.nextPending = max(restored.nextPending, p.number+1)
			}
		}
	}
	restore(true)
	for _, id := range s.committed {
		restored.committed(id)
		t.folding.due = true
	}
	restore(false)
	restored.read = c.Frontier()
	return restored, nil
}
