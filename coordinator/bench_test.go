package coordinator_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/rs/zerolog"

	"github.com/pulsar-tc/pulsar-tc/coordinator"
	"github.com/pulsar-tc/pulsar-tc/coordinator/fsm"
	"github.com/pulsar-tc/pulsar-tc/txn"
	"github.com/pulsar-tc/pulsar-tc/txnlog"
)

// queueLog is a log that costs nothing but the encoding: a queue of values.
type queueLog struct {
	mu      sync.Mutex // guards the following
	first   uint64
	values  [][]byte
	encoder txnlog.Encoder
}

func (l *queueLog) Load(context.Context, func(txn.LogEntry) error) (uint64, error) { return 0, nil }

func (l *queueLog) Prove(context.Context) error { return nil }

func (l *queueLog) Append(_ context.Context, batch txn.Batch) (txn.Appended, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.encoder.Reset()
	for i := range batch.Changes {
		l.encoder.Add(&batch.Changes[i].Record)
	}
	l.values = append(l.values, slices.Clone(l.encoder.Value()))
	if batch.DropBefore > l.first {
		l.values = l.values[batch.DropBefore-l.first:]
		l.first = batch.DropBefore
	}
	index := l.first + uint64(len(l.values)) - 1
	return txn.Appended{First: index, Last: index, Bytes: l.encoder.Len()}, nil
}

func (l *queueLog) ReadPrefix(_ context.Context, maxBytes int) ([]txn.LogEntry, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var entries []txn.LogEntry
	for size := 0; size < maxBytes && len(entries) < len(l.values); {
		var decoder txnlog.Decoder
		value := l.values[len(entries)]
		records, err := decoder.Decode("value", value)
		if err != nil {
			return nil, err
		}
		entries = append(entries, txn.LogEntry{Index: l.first + uint64(len(entries)), Bytes: len(value), Records: records})
		size += len(value)
	}
	return entries, nil
}

// benchmarked returns a started group on a queueLog.
func benchmarked(b *testing.B) *coordinator.Group {
	r := newRig(b)
	open := func(uint64, coordinator.Term) coordinator.Log { return &queueLog{first: 1} }
	c := coordinator.New(0, r.opts, contender{r, r.election.Contender()}, open, r.participants, zerolog.Nop())
	group := coordinator.NewGroup([]*coordinator.Coordinator{c}, r.opts)
	group.Start(b.Context())
	b.Cleanup(group.Close)
	return group
}

// BenchmarkNewEnd opens and commits transactions over a log that is instant, which costs what the driver, the machine and the
// encoding cost; one operation is one transaction.
func BenchmarkNewEnd(b *testing.B) {
	for _, inFlight := range []int{1, 256} {
		b.Run(fmt.Sprint(inFlight, " in flight"), func(b *testing.B) {
			group := benchmarked(b)
			var clients sync.WaitGroup
			left := make(chan struct{}, inFlight)
			for range inFlight {
				clients.Go(func() { transact(b, group, left) })
			}
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				left <- struct{}{}
			}
			close(left)
			clients.Wait()
		})
	}
}

// transact runs one transaction for each token.
func transact(b *testing.B, group *coordinator.Group, tokens <-chan struct{}) {
	type result struct {
		id  txn.ID
		err error
	}
	answers := make(chan result, 1)
	for range tokens {
		group.NewTxn(context.Background(), 0, txn.Owner{}, 60_000, "", false, func(id txn.ID, err error) { answers <- result{id, err} })
		opened := <-answers
		if opened.err != nil {
			b.Error(opened.err)
			return
		}
		group.EndTxn(context.Background(), opened.id, fsm.Caller{}, txn.Commit, false, func(err error) { answers <- result{err: err} })
		if ended := <-answers; ended.err != nil {
			b.Error(ended.err)
			return
		}
	}
}

// BenchmarkRepeatedEnd asks for one outcome again and again.
func BenchmarkRepeatedEnd(b *testing.B) {
	group := benchmarked(b)
	answers := make(chan error, 256)
	var id txn.ID
	group.NewTxn(context.Background(), 0, txn.Owner{}, 60_000, "", false, func(opened txn.ID, err error) { id = opened; answers <- err })
	if err := <-answers; err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		group.EndTxn(context.Background(), id, fsm.Caller{}, txn.Commit, false, func(err error) { answers <- err })
		if i < 128 {
			continue
		}
		if err := <-answers; err != nil {
			b.Fatal(err)
		}
	}
}
