package topic

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/keyspace"
	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// store is etcd with a bound on every call.
type store struct {
	kv      clientv3.KV
	timeout time.Duration
}

func (s store) get(ctx context.Context, key string, options ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	got, err := s.kv.Get(ctx, key, options...)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	return got, nil
}

func (s store) delete(ctx context.Context, key string, options ...clientv3.OpOption) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if _, err := s.kv.Delete(ctx, key, options...); err != nil {
		return fmt.Errorf("delete %s: %w", key, err)
	}
	return nil
}

func (s store) txn(ctx context.Context, compares []clientv3.Cmp, then, otherwise []clientv3.Op) (*clientv3.TxnResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return s.kv.Txn(ctx).If(compares...).Then(then...).Else(otherwise...).Commit()
}

const (
	// keysOfPage is the number of keys that one read of keys without values asks for.
	keysOfPage = 1000
	// firstValues and mostValues bound the number of values of one read: their sizes are not known before, and each may be as
	// large as a request.
	firstValues, mostValues = 4, 256
	// valueBytes is about how many bytes a read of values is to return.
	valueBytes = 1 << 20
)

// scan visits every key from key on that lies before end, page by page. The pages may be of different revisions.
func (s store) scan(ctx context.Context, key, end string, visit func(key, value []byte) error, options ...clientv3.OpOption) error {
	limit, keysOnly := int64(firstValues), clientv3.OpGet(key, options...).IsKeysOnly()
	if keysOnly {
		limit = keysOfPage
	}
	for {
		got, err := s.get(ctx, key, append(options[:len(options):len(options)], clientv3.WithRange(end), clientv3.WithLimit(limit))...)
		if err != nil {
			return err
		}
		bytes := 0
		for _, kv := range got.Kvs {
			bytes += len(kv.Key) + len(kv.Value)
			if err := visit(kv.Key, kv.Value); err != nil {
				return err
			}
		}
		if !got.More || len(got.Kvs) == 0 {
			return nil
		}
		key = string(got.Kvs[len(got.Kvs)-1].Key) + "\x00"
		switch {
		case keysOnly:
		case bytes <= valueBytes/2:
			limit = min(2*limit, mostValues)
		case bytes > valueBytes:
			limit = max(1, limit*valueBytes/int64(bytes))
		}
	}
}

func (s store) scanPrefix(ctx context.Context, prefix string, visit func(key, value []byte) error, options ...clientv3.OpOption) error {
	return s.scan(ctx, prefix, clientv3.GetPrefixRangeEnd(prefix), visit, options...)
}

// page is entries as read from the store: all there are from From on that lie before To.
type page struct {
	ledger.Range
	entries []ledger.Entry
	bytes   int
	// generation is that of compacted entries; 0: they are the log's.
	generation uint64
	gone       map[ledger.Position]ledger.Bits // indexes of batches that compaction took out
}

const (
	// firstReadKeys is the number of blocks that a page reads first: their size is not known.
	firstReadKeys = 4
	// mostReadKeys bounds the number of blocks of one read. It grows to that by doubling, while blocks are small.
	mostReadKeys = 32
)

// page reads entries from from on, until maxBytes are read, and nothing at or behind limit. What was read before a read
// that failed is a page.
func (s store) page(ctx context.Context, keys keyspace.Topic, from, limit ledger.Position, maxBytes int) (page, error) {
	out := page{Range: ledger.Range{From: from, To: limit}}
	for n := int64(firstReadKeys); ; n = min(2*n, mostReadKeys) {
		entries, more, err := s.blocks(ctx, keys, from, limit, n)
		if err != nil && len(out.entries) > 0 {
			out.To = from
			return out, nil
		}
		if err != nil {
			return page{}, err
		}
		for i := range entries {
			out.bytes += len(entries[i].Payload) + slotOverhead
		}
		out.entries = append(out.entries, entries...)
		if !more || len(entries) == 0 {
			return out, nil
		}
		from = entries[len(entries)-1].Position.Next()
		if out.bytes >= maxBytes/2 {
			out.To = from
			return out, nil
		}
	}
}

// blocks reads the entries at or behind from of the first n blocks that reach from, and nothing at or behind limit. A block that
// cannot be read is an error where it is the first; else there is more.
func (s store) blocks(ctx context.Context, keys keyspace.Topic, from, limit ledger.Position, n int64) (entries []ledger.Entry, more bool, err error) {
	key := keys.Entries(from.Ledger, from.Entry)
	got, err := s.get(ctx, key, clientv3.WithRange(keys.Entries(limit.Ledger, limit.Entry)), clientv3.WithLimit(n))
	if err != nil {
		return nil, false, err
	}
	for _, kv := range got.Kvs {
		block, err := decodeBlock(keys, kv.Key, kv.Value)
		if err != nil && len(entries) > 0 {
			return entries, true, nil
		}
		if err != nil {
			return nil, false, err
		}
		for i := range block.Entries {
			if !block.Entries[i].Position.Before(from) {
				entries = append(entries, block.Entries[i])
			}
		}
	}
	return entries, got.More, nil
}

func decodeBlock(keys keyspace.Topic, key, value []byte) (ledger.Block, error) {
	l, last, id, inTxn, ok := keys.ParseEntries(key)
	if !ok {
		return ledger.Block{}, &txn.CorruptError{Key: string(key), Reason: "it is no key of a block"}
	}
	block, err := ledger.DecodeBlock(ledger.Position{Ledger: l, Entry: last}, value)
	if err != nil {
		return ledger.Block{}, &txn.CorruptError{Key: string(key), Reason: err.Error()}
	}
	if block.InTxn != inTxn || block.Txn != id {
		return ledger.Block{}, &txn.CorruptError{Key: string(key), Reason: "key and value name different transactions"}
	}
	return block, nil
}

// blockAt returns the last position of the first block at or behind p that lies before limit.
func (s store) blockAt(ctx context.Context, keys keyspace.Topic, p, limit ledger.Position) (last ledger.Position, found bool, err error) {
	got, err := s.get(ctx, keys.Entries(p.Ledger, p.Entry), clientv3.WithRange(keys.Entries(limit.Ledger, limit.Entry)),
		clientv3.WithLimit(1), clientv3.WithKeysOnly())
	if err != nil || len(got.Kvs) == 0 {
		return ledger.Position{}, false, err
	}
	l, entry, _, _, ok := keys.ParseEntries(got.Kvs[0].Key)
	if !ok {
		return ledger.Position{}, false, &txn.CorruptError{Key: string(got.Kvs[0].Key), Reason: "it is no key of a block"}
	}
	return ledger.Position{Ledger: l, Entry: entry}, true, nil
}
