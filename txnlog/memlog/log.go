package memlog

import (
	"context"
	"fmt"

	"github.com/pulsar-tc/pulsar-tc/keyspace"
	"github.com/pulsar-tc/pulsar-tc/txn"
	"github.com/pulsar-tc/pulsar-tc/txnlog"
)

// names are the keys in errors.
var names = keyspace.New("memlog", "memory")

// Options are the limits of one write. The zero value has none.
type Options struct {
	// MaxChanges is how many changes fit into one write; 0 is no limit.
	MaxChanges int
}

// Log is the log of one coordinator in one term.
type Log struct {
	store   *Store
	tc      uint64
	holds   func() bool
	options Options
	encoder txnlog.Encoder
	index   uint64 // of the next entry
}

// New opens the log of a coordinator. holds reports whether the term still holds; it is called under the store's lock at the
// moment a write is applied.
func New(store *Store, tc uint64, holds func() bool, options Options) *Log {
	return &Log{store: store, tc: tc, holds: holds, options: options}
}

// Load reads the whole log; see coordinator.Log.
func (l *Log) Load(ctx context.Context, visit func(entry txn.LogEntry) error) (uint64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	indexes, values, next := l.store.read(l.tc)
	var decoder txnlog.Decoder
	l.index = 0
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
		l.index = index + 1
	}
	return next, nil
}

// Append writes a batch; see coordinator.Log.
func (l *Log) Append(ctx context.Context, batch txn.Batch) (txn.Appended, error) {
	if err := ctx.Err(); err != nil {
		return txn.Appended{}, err
	}
	if len(batch.Changes) == 0 && batch.Next == 0 && batch.DropBefore == 0 {
		return txn.Appended{}, l.Prove(ctx)
	}
	appended := txn.Appended{First: l.index}
	rest := batch.Changes
	for first := true; first || len(rest) > 0; first = false {
		n := len(rest)
		if l.options.MaxChanges > 0 {
			n = min(n, l.options.MaxChanges)
		}
		w := Write{Index: l.index, Changes: rest[:n]}
		rest = rest[n:]
		if first {
			w.Next = batch.Next
		}
		if len(rest) == 0 {
			w.Drop = batch.DropBefore
		}
		size, err := l.write(w)
		if err != nil {
			return txn.Appended{}, err
		}
		appended.Last = l.index
		appended.Bytes += size
		l.index++
	}
	return appended, nil
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
	if !l.holds() || part.values[w.Index] != nil {
		return 0, txn.ErrFenced
	}
	for i := range w.Changes {
		part.change(&w.Changes[i])
	}
	part.values[w.Index] = value
	if w.Next != 0 {
		part.next = w.Next
	}
	for index := range part.values {
		if index < w.Drop {
			delete(part.values, index)
		}
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
