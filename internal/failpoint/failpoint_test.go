package failpoint

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/keyspace"
	"github.com/pulsar-tc/pulsar-tc/txn"
	"github.com/pulsar-tc/pulsar-tc/txnlog"
)

var (
	space        = keyspace.New("p", "c")
	topic        = space.Topic(7)
	subscription = topic.Subscription(3)
	id           = txn.ID{Most: 1, Least: 5}
)

func logPut(records ...txn.Record) clientv3.Op {
	var e txnlog.Encoder
	e.Reset()
	for i := range records {
		e.Add(&records[i])
	}
	return clientv3.OpPut(space.Log(1, 9), string(e.Value()))
}

func put(key string) clientv3.Op    { return clientv3.OpPut(key, "") }
func remove(key string) clientv3.Op { return clientv3.OpDelete(key) }

func TestKinds(t *testing.T) {
	deciding := txn.Record{Op: txn.OpUpdate, Expected: txn.Open, Status: txn.Committing}
	ended := txn.Record{Op: txn.OpUpdate, Expected: txn.Committing, Status: txn.Committed}
	settled := txn.Record{Op: txn.OpUpdate, Expected: txn.Open, Status: txn.Committed}
	atOnce := txn.Record{Op: txn.OpUpdate, Expected: txn.Open, Status: txn.Aborted}
	for name, c := range map[string]struct {
		ops  []clientv3.Op
		want []Kind
	}{
		"leader":          {[]clientv3.Op{put(space.Leader(1))}, []Kind{Leader}},
		"load":            {[]clientv3.Op{clientv3.OpGet(space.LogPrefix(1), clientv3.WithPrefix())}, []Kind{Load}},
		"new":             {[]clientv3.Op{put(space.Next(1)), logPut(txn.Record{Op: txn.OpNew})}, []Kind{Log, New}},
		"add":             {[]clientv3.Op{logPut(txn.Record{Op: txn.OpAddPartition}), put(space.Open(id, txn.Participant{Topic: "t"}))}, []Kind{Log, Add}},
		"decision":        {[]clientv3.Op{logPut(deciding), remove(space.OpenPrefix(id))}, []Kind{Log, Decision}},
		"outcome":         {[]clientv3.Op{logPut(ended)}, []Kind{Log, Terminal}},
		"end at once":     {[]clientv3.Op{logPut(atOnce)}, []Kind{Log, Decision, Terminal}},
		"settle":          {[]clientv3.Op{logPut(settled), remove(topic.Txn(id)), put(subscription.Committed(id))}, []Kind{Log, Decision, Terminal, Settle}},
		"settle messages": {[]clientv3.Op{logPut(settled), remove(topic.Txn(id))}, []Kind{Log, Decision, Terminal, Settle}},
		"rolling":         {[]clientv3.Op{logPut(), clientv3.OpDelete(space.Log(1, 0), clientv3.WithRange(space.Log(1, 4)))}, []Kind{Log, Rolling}},
		"topic load":      {[]clientv3.Op{put(topic.Owner())}, []Kind{TopicLoad}},
		"plain":           {[]clientv3.Op{put(topic.Entries(1, 2)), put(topic.Tail())}, []Kind{Plain}},
		"send":            {[]clientv3.Op{put(topic.TxnEntries(1, 2, id)), put(topic.Txn(id))}, []Kind{Send}},
		"subscribe":       {[]clientv3.Op{put(subscription.Name()), put(subscription.Frontier())}, []Kind{Subscribe}},
		"ack":             {[]clientv3.Op{put(subscription.Pending(id, 1))}, []Kind{Ack}},
		"plain ack":       {[]clientv3.Op{put(subscription.Acked(1, 0))}, []Kind{PlainAck}},
		"ack commit":      {[]clientv3.Op{remove(subscription.PendingPrefix(id)), put(subscription.Frontier())}, []Kind{AckCommit}},
		"ack abort":       {[]clientv3.Op{remove(subscription.PendingPrefix(id))}, []Kind{AckAbort}},
		"topic commit":    {[]clientv3.Op{remove(topic.Txn(id))}, []Kind{TopicCommit}},
		"topic abort":     {[]clientv3.Op{remove(topic.TxnEntries(1, 2, id)), remove(topic.Txn(id))}, []Kind{TopicAbort}},
		"terminate":       {[]clientv3.Op{put(topic.Terminated())}, []Kind{Terminate}},
		"delete": {[]clientv3.Op{
			remove(space.TopicName("persistent", "public", "default", "t")), remove(topic.Owner()), put(space.Deleted(7)),
		}, []Kind{Delete}},
		"nothing": {[]clientv3.Op{clientv3.OpGet(space.Leader(1))}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := kindsOf(c.ops); !slices.Equal(got, c.want) {
				t.Errorf("kinds %v, want %v", got, c.want)
			}
		})
	}
}

func TestRules(t *testing.T) {
	rules, err := parse("before:NEW:2;after:ROLLING:1;late:END:3:/x;early:LOG:50ms")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(rules), "[before NEW 2 after ROLLING 1 late END 3 early LOG 0]"; got != want {
		t.Errorf("rules %s, want %s", got, want)
	}
	if rules[2].file != "/x" || rules[3].delay != 50*time.Millisecond {
		t.Errorf("file %q and delay %v", rules[2].file, rules[3].delay)
	}
	for _, bad := range []string{"x", "before:NEW", "before:NEW:0", "after:NEW:1:1s", "hold:END:1", "late:END:1", "early:LOG:soon", "early:LOG:1:1s"} {
		if _, err := parse(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

// recorder is an etcd that applies everything and notes what.
type recorder struct {
	clientv3.KV
	applied chan []Kind
}

func (r *recorder) Txn(context.Context) clientv3.Txn { return &recorded{recorder: r} }

func (r *recorder) Put(_ context.Context, key, value string, _ ...clientv3.OpOption) (*clientv3.PutResponse, error) {
	r.applied <- kindsOf([]clientv3.Op{clientv3.OpPut(key, value)})
	return &clientv3.PutResponse{}, nil
}

type recorded struct {
	recorder *recorder
	ops      []clientv3.Op
}

func (r *recorded) If(...clientv3.Cmp) clientv3.Txn      { return r }
func (r *recorded) Then(ops ...clientv3.Op) clientv3.Txn { r.ops = ops; return r }
func (r *recorded) Else(...clientv3.Op) clientv3.Txn     { return r }
func (r *recorded) Commit() (*clientv3.TxnResponse, error) {
	r.recorder.applied <- kindsOf(r.ops)
	return &clientv3.TxnResponse{Succeeded: true}, nil
}

func wrapped(t *testing.T, rules string) (*client, *recorder) {
	t.Helper()
	parsed, err := parse(rules)
	if err != nil {
		t.Fatal(err)
	}
	store := &recorder{applied: make(chan []Kind, 10)}
	return &client{KV: store, rules: parsed, die: func(r *rule) { panic(r) }}, store
}

// died runs f and returns the rule that ended the process.
func died(f func()) (by any) {
	defer func() { by = recover() }()
	f()
	return nil
}

func TestDies(t *testing.T) {
	for _, c := range []struct {
		rule    string
		applied int // effects when the process dies
	}{{"before:NEW:2", 1}, {"after:NEW:2", 2}} {
		kv, store := wrapped(t, c.rule)
		opened := func() {
			if _, err := kv.Txn(t.Context()).If().Then(logPut(txn.Record{Op: txn.OpNew})).Else().Commit(); err != nil {
				t.Error(err)
			}
		}
		if by := died(opened); by != nil {
			t.Errorf("%s: the first effect met %v", c.rule, by)
		}
		if by := died(opened); by == nil {
			t.Errorf("%s: the second effect met nothing", c.rule)
		}
		if got := len(store.applied); got != c.applied {
			t.Errorf("%s: %d effects happened, want %d", c.rule, got, c.applied)
		}
	}
}

func TestDiesAtPut(t *testing.T) {
	kv, store := wrapped(t, "before:TOPIC_LOAD:1")
	load := func() {
		if _, err := kv.Put(t.Context(), topic.Owner(), ""); err != nil {
			t.Error(err)
		}
	}
	if by := died(load); by == nil || len(store.applied) != 0 {
		t.Errorf("met %v after %d effects", by, len(store.applied))
	}
	load()
	if len(store.applied) != 1 {
		t.Errorf("%d effects behind the rule", len(store.applied))
	}
}

// release makes the file that a rule waits for.
func release(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestHold(t *testing.T) {
	file := filepath.Join(t.TempDir(), "go")
	kv, store := wrapped(t, "hold:NEW:1:"+file)
	opened := make(chan error)
	go func() {
		_, err := kv.Txn(t.Context()).Then(logPut(txn.Record{Op: txn.OpNew})).Commit()
		opened <- err
	}()
	if _, err := kv.Txn(t.Context()).Then(logPut(txn.Record{Op: txn.OpAddPartition})).Commit(); err != nil {
		t.Error(err)
	}
	if got := <-store.applied; slices.Contains(got, New) {
		t.Error("the effect was not held")
	}
	release(t, file)
	if err := <-opened; err != nil {
		t.Error(err)
	}
	if got := <-store.applied; !slices.Contains(got, New) {
		t.Errorf("what was held: %v", got)
	}
}

func TestLate(t *testing.T) {
	file := filepath.Join(t.TempDir(), "go")
	kv, store := wrapped(t, "late:NEW:1:"+file)
	_, err := kv.Txn(t.Context()).Then(logPut(txn.Record{Op: txn.OpNew})).Commit()
	if !errors.Is(err, context.DeadlineExceeded) || len(store.applied) != 0 {
		t.Errorf("answered %v after %d effects", err, len(store.applied))
	}
	release(t, file)
	if got := <-store.applied; !slices.Contains(got, New) {
		t.Errorf("what happened later: %v", got)
	}
}

func TestEarly(t *testing.T) {
	kv, store := wrapped(t, "early:LOG:1ms")
	for _, op := range []txn.Op{txn.OpNew, txn.OpAddPartition} {
		response, err := kv.Txn(t.Context()).Then(logPut(txn.Record{Op: op})).Commit()
		if err != nil || !response.Succeeded {
			t.Errorf("answered %v, %v", response, err)
		}
	}
	for _, want := range []Kind{New, Add} {
		if got := <-store.applied; !slices.Contains(got, want) {
			t.Errorf("happened %v, want %s: promises are kept in order", got, want)
		}
	}
}

func TestWrapWithoutRules(t *testing.T) {
	t.Setenv(Variable, "")
	store := &recorder{}
	if got := Wrap(store); got != clientv3.KV(store) {
		t.Errorf("wrapped in %T", got)
	}
}
