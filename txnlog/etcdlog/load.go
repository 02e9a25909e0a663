package etcdlog

import (
	"context"
	"fmt"
	"strconv"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/pulsar-tc/pulsar-tc/txn"
	"github.com/pulsar-tc/pulsar-tc/txnlog"
)

// Load reads the whole log at one linearizable revision at which the term held; see coordinator.Log. Beside it returns
// txn.ErrFenced if the term is over.
func (l *Log) Load(ctx context.Context, visit func(entry txn.LogEntry) error) (next uint64, err error) {
	r := reader{log: l, limit: firstPage, target: pageBytes}
	defer r.release()
	l.index = firstIndex
	l.oldest.Store(firstIndex)
	defer func() {
		if err != nil {
			l.index = 0
		}
	}()
	page, next, err := r.first(ctx)
	if err != nil {
		return 0, err
	}
	var decoder txnlog.Decoder
	for {
		following := r.prefetch(ctx, page)
		if err = l.visitPage(&decoder, page, visit); err != nil {
			following.abandon()
			return 0, err
		}
		if following == nil {
			return next, nil
		}
		if page, err = following.wait(); err != nil {
			return 0, err
		}
	}
}

func (l *Log) visitPage(decoder *txnlog.Decoder, p page, visit func(txn.LogEntry) error) error {
	for _, kv := range p.kvs {
		if err := l.visit(decoder, kv, visit); err != nil {
			return err
		}
	}
	return nil
}

// visit hands one stored entry on. The first may have any index, as the log is dropped from the front.
func (l *Log) visit(decoder *txnlog.Decoder, kv *mvccpb.KeyValue, visit func(txn.LogEntry) error) error {
	entry, err := l.decode(decoder, kv)
	if err != nil {
		return err
	}
	if l.index == firstIndex {
		l.oldest.Store(entry.Index)
	} else if entry.Index != l.index {
		return &txn.CorruptError{Key: string(kv.Key), Reason: fmt.Sprintf("the entry of index %d is missing before it", l.index)}
	}
	l.index = entry.Index + 1
	return visit(entry)
}

// decode reads a stored entry. Its records are valid until the decoder is used again.
func (l *Log) decode(decoder *txnlog.Decoder, kv *mvccpb.KeyValue) (txn.LogEntry, error) {
	key := string(kv.Key)
	index, err := strconv.ParseUint(key[len(l.prefix):], 16, 64)
	if err != nil || index < firstIndex || key != l.space.Log(l.tc, index) {
		return txn.LogEntry{}, &txn.CorruptError{Key: key, Reason: "not the key of a log entry"}
	}
	records, err := decoder.Decode(key, kv.Value)
	if err != nil {
		return txn.LogEntry{}, err
	}
	return txn.LogEntry{Index: index, Bytes: len(kv.Value), Records: records}, nil
}

// ReadPrefix reads the oldest entries up to maxBytes, at least one; see coordinator.Log.
//
// It asks for ranges of as many keys as it wants: etcd visits every key of a range, whatever the limit.
func (l *Log) ReadPrefix(ctx context.Context, maxBytes int) ([]txn.LogEntry, error) {
	r := reader{log: l, limit: l.oldestPage, target: max(1, min(maxBytes, pageBytes))}
	defer func() {
		r.release()
		l.oldestPage = r.limit
	}()
	var decoder txnlog.Decoder
	var entries []txn.LogEntry
	from, read := l.oldest.Load(), 0
	for {
		asked := r.limit
		page, _, err := r.fenced(ctx, l.space.Log(l.tc, from), l.space.Log(l.tc, from+uint64(asked)))
		if err != nil {
			return nil, err
		}
		for _, kv := range page.kvs {
			if len(entries) > 0 && read+len(kv.Value) > maxBytes {
				return entries, nil
			}
			entry, err := l.decode(&decoder, kv)
			if err != nil {
				return nil, err
			}
			entry.Records = append([]txn.Record(nil), entry.Records...)
			entries = append(entries, entry)
			read += len(kv.Value)
		}
		if read >= maxBytes || int64(len(page.kvs)) < asked {
			return entries, nil
		}
		from += uint64(asked)
	}
}
