package etcdlog

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/keyspace"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// firstIndex is the index of the first entry of all, so that 0 can mean none.
const firstIndex = 1

// Log is the log of one coordinator in one term. It satisfies coordinator.Log.
type Log struct {
	kv      KV
	space   keyspace.Space
	tc      uint64
	term    int64 // create revision of the leader key
	options Options

	leader string // key
	prefix string // of log keys
	piece  piece
	index  uint64 // of the next entry; 0 before Load

	// oldest is the index of the first entry, or of the next one if there is none. ReadPrefix may run beside Append.
	oldest atomic.Uint64
	// oldestPage is how many entries ReadPrefix asks for first: as many as fitted the last time. Only ReadPrefix uses it.
	oldestPage int64
}

// New opens the log of coordinator tc in a term, which is the create revision of the leader key.
func New(kv KV, space keyspace.Space, tc uint64, term int64, options Options) *Log {
	l := &Log{
		kv: kv, space: space, tc: tc, term: term, options: options.withDefaults(),
		leader: space.Leader(tc), prefix: space.LogPrefix(tc), oldestPage: firstPage,
	}
	l.piece.init(space, tc, l.options.MaxOps, l.options.MaxBytes)
	return l
}

// end is behind the last possible log key.
func (l *Log) end() string { return clientv3.GetPrefixRangeEnd(l.prefix) }

// fence is the condition that the term holds.
func (l *Log) fence() clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(l.leader), "=", l.term)
}

// readLeader is the linearizable read that goes with the fence.
func (l *Log) readLeader() clientv3.Op { return clientv3.OpGet(l.leader, clientv3.WithKeysOnly()) }

// Append writes a batch in as few etcd transactions as the limits allow; see coordinator.Log. An empty batch is a proof.
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
	appended := txn.Appended{First: l.index}
	rest := changes{list: batch.Changes}
	for pieces := 0; pieces == 0 || !rest.empty(); pieces++ {
		l.piece.reset()
		if pieces == 0 && batch.Next != 0 {
			l.piece.add(clientv3.OpPut(l.space.Next(l.tc), strconv.FormatUint(batch.Next, 10)), len(l.prefix))
		}
		if batch.DropBefore != 0 {
			l.piece.reserve(2 * len(l.prefix))
		}
		l.piece.fill(&rest)
		if rest.empty() && batch.DropBefore != 0 {
			l.piece.ops = append(l.piece.ops,
				clientv3.OpDelete(l.space.Log(l.tc, 0), clientv3.WithRange(l.space.Log(l.tc, batch.DropBefore))))
		}
		size, err := l.write(ctx)
		if err != nil {
			return txn.Appended{}, behind(pieces, err)
		}
		appended.Last = l.index
		appended.Bytes += size
		l.index++
	}
	l.oldest.Store(max(l.oldest.Load(), batch.DropBefore))
	return appended, nil
}

// behind makes an error of a later piece say what is true of the batch: a prefix of it was written.
func behind(pieces int, err error) error {
	if pieces == 0 || errors.Is(err, txn.ErrUnknownResult) {
		return err
	}
	return fmt.Errorf("%w: %d pieces of the batch were written, then: %v", txn.ErrUnknownResult, pieces, err)
}

// write commits the piece as the entry of the next index and returns the size of its value.
func (l *Log) write(ctx context.Context) (int, error) {
	key := l.space.Log(l.tc, l.index)
	value := l.piece.encoder.Value()
	ops := l.piece.finish(clientv3.OpPut(key, string(value)))
	conditions := append(make([]clientv3.Cmp, 0, fixedCompares+len(l.piece.fences)),
		l.fence(), clientv3.Compare(clientv3.CreateRevision(key), "=", 0))
	for _, fence := range l.piece.fences {
		conditions = append(conditions, clientv3.Compare(clientv3.ModRevision(fence.Key), "=", fence.Revision))
	}
	response, err := l.kv.Txn(ctx).
		If(conditions...).
		Then(ops...).
		Else(l.readLeader(), clientv3.OpGet(key, clientv3.WithKeysOnly())).
		Commit()
	if err != nil && refused(err) {
		return 0, fmt.Errorf("append log entry %d: %w", l.index, err)
	}
	l.options.Wrote(l.piece.bytes + len(value))
	if err != nil {
		return 0, fmt.Errorf("append log entry %d: %w: %w", l.index, txn.ErrUnknownResult, err)
	}
	if !response.Succeeded {
		return 0, fmt.Errorf("append log entry %d: %w", l.index, l.fenced(response))
	}
	return len(value), nil
}

// refused tells the errors with which etcd says that it did not even try: the request itself is wrong. Everything else may
// have been applied, or may be later; so may ErrNoSpace.
func refused(err error) bool {
	return errors.Is(err, rpctypes.ErrTooManyOps) || errors.Is(err, rpctypes.ErrRequestTooLarge) ||
		errors.Is(err, rpctypes.ErrDuplicateKey) || errors.Is(err, rpctypes.ErrEmptyKey)
}

// fenced says why a condition was false: the response holds the leader key as it was then and, of an append, the entry.
func (l *Log) fenced(response *clientv3.TxnResponse) error {
	if len(response.Responses) == 0 {
		return txn.ErrFenced
	}
	leaders := response.Responses[0].GetResponseRange().GetKvs()
	switch {
	case len(leaders) == 0:
		return fmt.Errorf("%w: term %d has no leader key", txn.ErrFenced, l.term)
	case leaders[0].CreateRevision != l.term:
		return fmt.Errorf("%w: term %d was followed by term %d", txn.ErrFenced, l.term, leaders[0].CreateRevision)
	}
	if len(response.Responses) > 1 && len(response.Responses[1].GetResponseRange().GetKvs()) == 0 {
		return fmt.Errorf("%w: a participant of a commit was loaded again", txn.ErrFenced)
	}
	return fmt.Errorf("%w: the entry exists", txn.ErrFenced)
}

// Prove confirms by a linearizable read that the term still holds; see coordinator.Log.
func (l *Log) Prove(ctx context.Context) error {
	response, err := l.kv.Txn(ctx).If(l.fence()).Then(l.readLeader()).Else(l.readLeader()).Commit()
	if err != nil {
		return fmt.Errorf("prove term %d: %w: %w", l.term, txn.ErrUnknownResult, err)
	}
	if !response.Succeeded {
		return fmt.Errorf("prove term %d: %w", l.term, l.fenced(response))
	}
	return nil
}
