package etcdlog_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/etcdstore"
	"github.com/pulsar-tc/pulsar-tc/internal/etcdtest"
	"github.com/pulsar-tc/pulsar-tc/txn"
	"github.com/pulsar-tc/pulsar-tc/txnlog/etcdlog"
	"github.com/pulsar-tc/pulsar-tc/txnlog/logtest"
)

func isUnknown(err error) bool { return errors.Is(err, txn.ErrUnknownResult) }
func isFenced(err error) bool  { return errors.Is(err, txn.ErrFenced) }

// batchOf is n transactions, each opened, with one participant, and decided.
func batchOf(n int) txn.Batch {
	var batch txn.Batch
	for least := range uint64(n) {
		p := []txn.Participant{{Topic: fmt.Sprintf("persistent://public/default/topic-%d", least)}}
		batch.Changes = append(batch.Changes,
			txn.Change{Record: txn.Record{Op: txn.OpNew, Least: least}},
			txn.Change{Record: txn.Record{Op: txn.OpAddPartition, Least: least, Participants: p}, Opens: p},
			txn.Change{Record: txn.Record{Op: txn.OpUpdate, Least: least, Status: txn.Committing}, CloseAll: true})
	}
	return batch
}

// settlements is n commits, each with one put and a number of fences, which hold: no key has their names.
func settlements(n, fences int, shared bool) txn.Batch {
	var batch txn.Batch
	for least := range uint64(n) {
		s := &txn.Settlement{Puts: []string{fmt.Sprintf("%sput/%d", logtest.Participants, least)}}
		for i := range fences {
			owner := least
			if shared {
				owner = 0
			}
			s.Fences = append(s.Fences, txn.Fence{Key: fmt.Sprintf("%sfence/%d/%d", logtest.Participants, owner, i)})
		}
		batch.Changes = append(batch.Changes, txn.Change{
			Record: txn.Record{Op: txn.OpUpdate, Least: least, Status: txn.Committed}, CloseAll: true, Settlement: s})
	}
	return batch
}

func loaded(t testing.TB, store *store) *etcdlog.Log {
	t.Helper()
	log := store.NewTerm(t).(*etcdlog.Log)
	if _, err := log.Load(t.Context(), func(txn.LogEntry) error { return nil }); err != nil {
		t.Fatal(err)
	}
	return log
}

// A batch takes as few etcd transactions as its operations and bytes need, and etcd accepts each.
func TestPieces(t *testing.T) {
	client := etcdtest.Open(t, func(o *etcdstore.Options) { o.MaxTxnOps = 128 }).Client()
	for _, c := range []struct {
		name             string
		batch            txn.Batch
		maxOps, maxBytes int
		want             uint64
	}{
		{"two operations each, folded into one", batchOf(127), 128, 1 << 20, 1},
		{"one more than fits", batchOf(128), 128, 1 << 20, 2},
		{"room for next and drop", txn.Batch{Changes: batchOf(125).Changes, Next: 7, DropBefore: 1}, 128, 1 << 20, 1},
		{"no room for next and drop", txn.Batch{Changes: batchOf(126).Changes, Next: 7, DropBefore: 1}, 128, 1 << 20, 2},
		{"records alone need no operations", ends(5000, false), 128, 2 << 20, 1},
		{"bytes", ends(5000, false), 128, 64 << 10, 3},
		{"two operations of a settlement each", settlements(63, 2, true), 128, 1 << 20, 1},
		{"one settlement more than fits", settlements(64, 2, true), 128, 1 << 20, 2},
		{"more fences than a transaction compares", settlements(40, 6, false), 128, 1 << 20, 2},
		{"bytes of settlements", settlements(63, 2, true), 128, 8 << 10, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			store := newStore(t, client, logtest.Normal)
			store.options = etcdlog.Options{MaxOps: c.maxOps, MaxBytes: c.maxBytes}
			at, err := loaded(t, store).Append(t.Context(), c.batch)
			if err != nil {
				t.Fatal(err)
			}
			if got := at.Last - at.First + 1; got != c.want {
				t.Errorf("%d pieces, want %d", got, c.want)
			}
			for index := at.First; index <= at.Last; index++ {
				if size := len(store.Value(t, index)); size > c.maxBytes {
					t.Errorf("value of %d bytes", size)
				}
			}
			records := 0
			if _, err := store.NewTerm(t).Load(t.Context(), func(entry txn.LogEntry) error {
				records += len(entry.Records)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if records != len(c.batch.Changes) {
				t.Errorf("%d records, want %d", records, len(c.batch.Changes))
			}
		})
	}
}

// Keys that are opened after a decision of the same batch cannot share its transaction, as etcd refuses a put in a range
// that is deleted.
func TestOpenBehindDecision(t *testing.T) {
	store := newStore(t, etcdtest.Open(t, nil).Client(), logtest.Normal)
	batch := batchOf(1)
	batch.Changes = append(batch.Changes, batch.Changes[1])
	at, err := loaded(t, store).Append(t.Context(), batch)
	if err != nil {
		t.Fatal(err)
	}
	if at.Last != at.First+1 || len(store.OpenKeys(t, 0)) != 1 {
		t.Errorf("entries %d to %d, %d open keys", at.First, at.Last, len(store.OpenKeys(t, 0)))
	}
}

// What etcd refuses before it tries was not written, and is not of unknown fate.
func TestDefiniteRefusal(t *testing.T) {
	client := etcdtest.Open(t, func(o *etcdstore.Options) { o.MaxTxnOps, o.MaxMessageBytes = 128, 1<<20 }).Client()
	var many []txn.Participant
	for i := range 200 {
		many = append(many, txn.Participant{Topic: fmt.Sprint(i)})
	}
	long := []txn.Participant{{Topic: strings.Repeat("x", 3<<20)}}
	for _, c := range []struct {
		name  string
		batch txn.Batch
	}{
		{"too many operations", txn.Batch{Changes: []txn.Change{{
			Record: txn.Record{Op: txn.OpAddPartition, Participants: many}, Opens: many}}}},
		{"too large", txn.Batch{Changes: []txn.Change{{
			Record: txn.Record{Op: txn.OpSnapshot, Participants: long}}}}},
		{"drop of the entry itself", txn.Batch{DropBefore: 1 << 40}},
	} {
		t.Run(c.name, func(t *testing.T) {
			store := newStore(t, client, logtest.Normal)
			store.options = etcdlog.Options{MaxOps: 8192, MaxBytes: 1 << 30}
			log := loaded(t, store)
			_, err := log.Append(t.Context(), c.batch)
			if err == nil || isUnknown(err) || isFenced(err) {
				t.Fatalf("%v, want a definite refusal", err)
			}
			if _, err := log.Append(t.Context(), batchOf(1)); err != nil {
				t.Errorf("append behind a refusal: %v", err)
			}
		})
	}
}

// answerKV gives every transaction the same answer.
type answerKV struct {
	clientv3.KV
	err error
}

func (kv *answerKV) Txn(ctx context.Context) clientv3.Txn {
	return &answerTxn{Txn: kv.KV.Txn(ctx), err: kv.err}
}

type answerTxn struct {
	clientv3.Txn
	err error
}

func (t *answerTxn) If(...clientv3.Cmp) clientv3.Txn        { return t }
func (t *answerTxn) Then(...clientv3.Op) clientv3.Txn       { return t }
func (t *answerTxn) Else(...clientv3.Op) clientv3.Txn       { return t }
func (t *answerTxn) Commit() (*clientv3.TxnResponse, error) { return nil, t.err }

// TC-20, FC-48: whatever is not clearly refused may have been applied, above all ErrNoSpace, as the alarm may be raised
// behind the request.
func TestUnknownErrors(t *testing.T) {
	store := newStore(t, etcdtest.Open(t, nil).Client(), logtest.Normal)
	for _, answer := range []error{
		rpctypes.ErrNoSpace, rpctypes.ErrTimeout, rpctypes.ErrTimeoutDueToLeaderFail, rpctypes.ErrLeaderChanged,
		rpctypes.ErrTooManyRequests, rpctypes.ErrStopped, rpctypes.ErrCorrupt, context.DeadlineExceeded, context.Canceled,
		errors.New("anything"),
	} {
		loaded(t, store)
		term := store.term.Number()
		kv := &answerKV{KV: store.client}
		log := etcdlog.New(&switchKV{before: store.client, behind: kv}, etcdtest.Space, logtest.TC, term, store.options)
		if _, err := log.Load(t.Context(), func(txn.LogEntry) error { return nil }); err != nil {
			t.Fatal(err)
		}
		kv.err = answer
		if _, err := log.Append(t.Context(), batchOf(1)); !isUnknown(err) || !errors.Is(err, answer) {
			t.Errorf("append: %v, want %v because of %v", err, txn.ErrUnknownResult, answer)
		}
		if err := log.Prove(t.Context()); !isUnknown(err) {
			t.Errorf("prove: %v, want %v", err, txn.ErrUnknownResult)
		}
	}
}

// switchKV uses behind as soon as it has an error to give.
type switchKV struct {
	before clientv3.KV
	behind *answerKV
}

func (kv *switchKV) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	return kv.before.Get(ctx, key, opts...)
}

func (kv *switchKV) Txn(ctx context.Context) clientv3.Txn {
	if kv.behind.err != nil {
		return kv.behind.Txn(ctx)
	}
	return kv.before.Txn(ctx)
}

// FC-49: the revision of a load may be compacted while it reads; it goes on at a newer one, for only its own term writes the log.
func TestLoadOutlivesCompaction(t *testing.T) {
	store := newStore(t, etcdtest.Open(t, nil).Client(), logtest.Normal)
	log := loaded(t, store)
	const entries = 1000
	for range entries {
		if _, err := log.Append(t.Context(), batchOf(1)); err != nil {
			t.Fatal(err)
		}
	}
	var pinned atomic.Int64
	store.options.Pin = func(int64) func() { pinned.Add(1); return func() { pinned.Add(-1) } }
	visits, pins := 0, int64(0)
	if _, err := store.NewTerm(t).Load(t.Context(), func(txn.LogEntry) error {
		visits++
		pins = max(pins, pinned.Load())
		if visits != 1 {
			return nil
		}
		now, err := store.client.Put(t.Context(), "elsewhere", "")
		if err != nil {
			return err
		}
		_, err = store.client.Compact(t.Context(), now.Header.Revision)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if visits != entries {
		t.Errorf("%d entries, want %d", visits, entries)
	}
	if pins != 1 || pinned.Load() != 0 {
		t.Errorf("%d revisions pinned while reading, %d behind it", pins, pinned.Load())
	}
}

func TestKeysThatCannotBeRead(t *testing.T) {
	client := etcdtest.Open(t, nil).Client()
	for what, key := range map[string]string{
		"bound":          etcdtest.Space.Next(logtest.TC),
		"short index":    etcdtest.Space.LogPrefix(logtest.TC) + "1",
		"upper case":     etcdtest.Space.LogPrefix(logtest.TC) + "000000000000000A",
		"index of none":  etcdtest.Space.Log(logtest.TC, 0),
		"something else": etcdtest.Space.Log(logtest.TC, 1) + "/x",
	} {
		t.Run(what, func(t *testing.T) {
			store := newStore(t, client, logtest.Normal)
			if _, err := client.Put(t.Context(), key, "x"); err != nil {
				t.Fatal(err)
			}
			_, err := store.NewTerm(t).Load(t.Context(), func(txn.LogEntry) error { return nil })
			var corrupt *txn.CorruptError
			if !errors.As(err, &corrupt) || corrupt.Key != key {
				t.Errorf("%v, want a *txn.CorruptError of %s", err, key)
			}
		})
	}
}
