package etcdlog_test

import (
	"fmt"
	"testing"

	"github.com/rs/zerolog"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/etcdstore"
	"github.com/pulsar-tc/pulsar-tc/internal/etcdtest"
	"github.com/pulsar-tc/pulsar-tc/leader/etcdleader"
	"github.com/pulsar-tc/pulsar-tc/txn"
	"github.com/pulsar-tc/pulsar-tc/txnlog/etcdlog"
	"github.com/pulsar-tc/pulsar-tc/txnlog/logtest"
)

func benchLog(b *testing.B, store *etcdstore.Store) *etcdlog.Log {
	b.Helper()
	leader, err := etcdleader.New(store.Client(), etcdtest.Space, etcdleader.Options{Exclusive: true}, zerolog.Nop())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(leader.Close)
	term, err := leader.Win(b.Context(), logtest.TC)
	if err != nil {
		b.Fatal(err)
	}
	log := etcdlog.New(store.Client(), etcdtest.Space, logtest.TC, term.Number(),
		etcdlog.Options{MaxOps: 8192, MaxBytes: 6 << 20, Wrote: store.Wrote, Pin: store.Pin})
	if _, err := log.Load(b.Context(), func(txn.LogEntry) error { return nil }); err != nil {
		b.Fatal(err)
	}
	return log
}

// ends are n terminal records of unnamed clients or of 1,000 names.
func ends(n int, named bool) txn.Batch {
	var batch txn.Batch
	for i := range n {
		r := txn.Record{Op: txn.OpUpdate, Least: 1<<50 + uint64(i), Status: txn.Committed, StartTime: 1_764_460_800_000 + int64(i),
			Time: 1_764_460_800_020 + int64(i), TimeoutMillis: 60000, Place: 1 << 20}
		if named {
			r.ClientName = fmt.Sprintf("client-%03d", i%1000)
		}
		batch.Changes = append(batch.Changes, txn.Change{Record: r})
	}
	return batch
}

// BenchmarkAppend compares a group commit of 256 records with its ceiling, one put of the same bytes.
func BenchmarkAppend(b *testing.B) {
	batch := ends(256, false)
	var size int
	b.Run("append", func(b *testing.B) {
		log := benchLog(b, etcdtest.Open(b, nil))
		b.ReportAllocs()
		for b.Loop() {
			appended, err := log.Append(b.Context(), batch)
			if err != nil {
				b.Fatal(err)
			}
			size = appended.Bytes
		}
		b.SetBytes(int64(size))
	})
	b.Run("put", func(b *testing.B) {
		client, value := etcdtest.Open(b, nil).Client(), string(make([]byte, size))
		b.ReportAllocs()
		i := uint64(0)
		for b.Loop() {
			if _, err := client.Put(b.Context(), etcdtest.Space.Log(logtest.TC, i), value); err != nil {
				b.Fatal(err)
			}
			i++
		}
		b.SetBytes(int64(size))
	})
}

// BenchmarkAppendParticipants is a group commit of 128 transactions, each with a participant that is opened and closed.
func BenchmarkAppendParticipants(b *testing.B) {
	var batch txn.Batch
	for least := range uint64(128) {
		p := []txn.Participant{{Topic: fmt.Sprintf("persistent://public/default/topic-%d", least%8)}}
		batch.Changes = append(batch.Changes,
			txn.Change{Record: txn.Record{Op: txn.OpNew, Least: least, TimeoutMillis: 60000}},
			txn.Change{Record: txn.Record{Op: txn.OpAddPartition, Least: least, Participants: p}, Opens: p},
			txn.Change{Record: txn.Record{Op: txn.OpUpdate, Least: least + 1<<20, Status: txn.Committing}, CloseAll: true})
	}
	log := benchLog(b, etcdtest.Open(b, nil))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := log.Append(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkLoad loads a million outcomes of 1,000 names.
func BenchmarkLoad(b *testing.B) {
	store := etcdtest.Open(b, nil)
	log := benchLog(b, store)
	batch := ends(250, true)
	for range 4000 {
		if _, err := log.Append(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		records := 0
		if _, err := log.Load(b.Context(), func(entry txn.LogEntry) error {
			records += len(entry.Records)
			return nil
		}); err != nil {
			b.Fatal(err)
		}
		if records != 1_000_000 {
			b.Fatalf("%d records", records)
		}
	}
}

var _ etcdlog.KV = (*clientv3.Client)(nil)
