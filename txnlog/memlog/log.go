package memlog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/pulsar-tc/pulsar-tc/keyspace"
	"github.com/pulsar-tc/pulsar-tc/txn"
	"github.com/pulsar-tc/pulsar-tc/txnlog"
)

// firstIndex is the index of the first entry of all, so that 0 can mean none.
const firstIndex = 1

// names are the keys in errors.
var names = keyspace.New("memlog", "memory")

// Options are the limits of one write. The zero value has none.
type Options struct {
	// MaxChanges is how many changes fit into one write; 0 is no limit.
	MaxChanges int
	// MaxParticipants is how many participants of one addition fit into one write; 0 is no limit.
	MaxParticipants int
}

// Log is the log of one coordinator in one term.
type Log struct {
	store   *Store
	tc      uint64
	holds   func() bool
	options Options
	encoder txnlog.Encoder
	index   uint64 // of the next entry; 0 before Load
}

// New opens the log of a coordinator. holds reports whether the term still holds; it is called under the store's lock at the
// moment a write is applied.
func New(store *Store, tc uint64, holds func() bool, options Options) *Log {
	return &Log{store: store, tc: tc, holds: holds, options: options}
}

// Load reads the whole log; see coordinator.Log. Beside it returns txn.ErrFenced if the term is over.
func (l *Log) Load(ctx context.Context, visit func(entry txn.LogEntry) error) (uint64, error) {
	if err := l.Prove(ctx); err != nil {
		return 0, err
	}
	indexes, values, next := l.store.read(l.tc)
	var decoder txnlog.Decoder
	l.index = 0
	following := uint64(firstIndex)
	for i, index := range indexes {
		key := names.Log(l.tc, index)
		if i > 0 && index != indexes[i-1]+1 {
			return 0, &txn.CorruptError{Key: key, Reason: fmt.Sprintf("no entry between index %d and %d", indexes[i-1], index)}
		}
		records, err := decoder.Decode(key, values[index])
		if err != nil {
			return 0, err
		}
		if err := visit(txn.LogEntry{Index: index, Bytes: len(values[index]), Records: records}); err != nil {
			return 0, err
		}
		following = index + 1
	}
	l.index = following
	return next, nil
}

// Append writes a batch; see coordinator.Log.
func (l *Log) Append(ctx context.Context, batch txn.Batch) (txn.Appended, error) {
	if l.index == 0 {
		return txn.Appended{}, errors.New("append before load")
	}
	if err := ctx.Err(); err != nil {
		return txn.Appended{}, err
	}
	if len(batch.Changes) == 0 && batch.Next == 0 && batch.DropBefore == 0 {
		return txn.Appended{}, l.Prove(ctx)
	}
	writes := l.cut(batch)
	appended := txn.Appended{First: l.index, Last: l.index + uint64(len(writes)) - 1}
	for i, w := range writes {
		w.Index = l.index
		size, err := l.write(w)
		if i > 0 && errors.Is(err, txn.ErrFenced) {
			return txn.Appended{}, fmt.Errorf("%w: a part was written before the term ended", txn.ErrUnknownResult)
		}
		if err != nil {
			return txn.Appended{}, err
		}
		appended.Bytes += size
		l.index++
	}
	return appended, nil
}

// cut makes one or more writes of a batch.
func (l *Log) cut(batch txn.Batch) []Write {
	changes := l.cutAdditions(batch.Changes)
	size := len(changes)
	if l.options.MaxChanges > 0 {
		size = l.options.MaxChanges
	}
	var writes []Write
	for part := range slices.Chunk(changes, max(size, 1)) {
		writes = append(writes, Write{Changes: part})
	}
	if len(writes) == 0 {
		writes = []Write{{}}
	}
	writes[0].Next = batch.Next
	writes[len(writes)-1].DropBefore = batch.DropBefore
	return writes
}

// cutAdditions cuts additions between participants. Each part opens the keys of its own.
func (l *Log) cutAdditions(changes []txn.Change) []txn.Change {
	limit := l.options.MaxParticipants
	if limit == 0 {
		return changes
	}
	var result []txn.Change
	for _, c := range changes {
		adds := c.Record.Op == txn.OpAddPartition || c.Record.Op == txn.OpAddSubscription
		if !adds || len(c.Record.Participants) <= limit {
			result = append(result, c)
			continue
		}
		for part := range slices.Chunk(c.Record.Participants, limit) {
			cut := txn.Change{Record: c.Record}
			cut.Record.Participants = part
			for _, p := range c.Opens {
				if slices.Contains(part, p) {
					cut.Opens = append(cut.Opens, p)
				}
			}
			result = append(result, cut)
		}
	}
	return result
}

func (l *Log) write(w Write) (int, error) {
	fate := Apply
	if intercept := l.store.interceptor(); intercept != nil {
		fate = intercept(l.tc, w)
	}
	if fate == LoseWrite {
		return 0, txn.ErrUnknownResult
	}
	size, err := l.apply(w)
	if fate == LoseAnswer {
		return 0, txn.ErrUnknownResult
	}
	return size, err
}

func (l *Log) apply(w Write) (int, error) {
	l.encoder.Reset()
	for i := range w.Changes {
		l.encoder.Add(&w.Changes[i].Record)
	}
	value := append([]byte(nil), l.encoder.Value()...)

	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	part := l.store.of(l.tc)
	if !l.holds() || part.values[w.Index] != nil || !l.store.holds(w.Changes) {
		return 0, txn.ErrFenced
	}
	for i := range w.Changes {
		part.change(&w.Changes[i])
		if settlement := w.Changes[i].Settlement; settlement != nil {
			l.store.settle(settlement)
		}
	}
	part.values[w.Index] = value
	if w.Next != 0 {
		part.next = w.Next
	}
	if w.DropBefore != 0 {
		maps.DeleteFunc(part.values, func(index uint64, _ []byte) bool { return index < w.DropBefore })
	}
	return len(value), nil
}

func (p *stored) change(c *txn.Change) {
	for _, participant := range c.Opens {
		p.open[OpenKey{c.Record.Least, participant}] = true
	}
	if !c.CloseAll {
		return
	}
	for key := range p.open {
		if key.Least == c.Record.Least {
			delete(p.open, key)
		}
	}
}

// Prove confirms that the term holds; see coordinator.Log.
func (l *Log) Prove(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	if !l.holds() {
		return txn.ErrFenced
	}
	return nil
}

// ReadPrefix reads the oldest entries; see coordinator.Log.
func (l *Log) ReadPrefix(ctx context.Context, maxBytes int) ([]txn.LogEntry, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	indexes, values, _ := l.store.read(l.tc)
	var entries []txn.LogEntry
	read := 0
	for _, index := range indexes {
		value := values[index]
		if len(entries) > 0 && read+len(value) > maxBytes {
			break
		}
		var decoder txnlog.Decoder
		records, err := decoder.Decode(names.Log(l.tc, index), value)
		if err != nil {
			return nil, err
		}
		entries = append(entries, txn.LogEntry{Index: index, Bytes: len(value), Records: records})
		read += len(value)
	}
	return entries, nil
}
