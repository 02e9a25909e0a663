package topic

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// TestSeekOverPendingAcks: what transactions hold stays held behind a seek, is given back by the abort and not by the commit.
func TestSeekOverPendingAcks(t *testing.T) {
	w := newWorld(t)
	at, _ := sendMany(w.produce("a"), 5)
	c := w.subscribe("a", "s", earliest)
	c.want("m0", "m1", "m2", "m3", "m4")
	x, y := w.coord.begin(), w.coord.begin()
	if err := c.tryAck(ackInTxn(x, ackOf(pulsarproto.CommandAck_Cumulative, at[2]))); err != nil {
		t.Fatal(err)
	}
	if err := c.ackIn(y, at[3]); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	c.Seek(&pulsarproto.CommandSeek{MessageId: idOf(at[0])}, func(err error) { done <- err })
	if err := wait(t, done); err != nil {
		t.Fatal(err)
	}
	c = w.subscribe("a", "s")
	c.want("m4")
	c.wantNothing(w, "a")
	w.end(x, txn.Abort, "a", "s")
	c.want("m0", "m1", "m2")
	w.end(y, txn.Commit, "a", "s")
	c.wantNothing(w, "a")
	w.restart()
	c = w.subscribe("a", "s")
	c.want("m0", "m1", "m2", "m4")
	c.wantNothing(w, "a")
}

// TestUnsubscribeWithPendingAcks: they go with the subscription. A new one of the same name knows nothing of them, and an
// acknowledgement that waited for its registration meanwhile does nothing to it.
func TestUnsubscribeWithPendingAcks(t *testing.T) {
	w := newWorld(t)
	at, _ := sendMany(w.produce("a"), 3)
	c := w.subscribe("a", "s", earliest)
	c.want("m0", "m1", "m2")
	x, late := w.coord.begin(), w.coord.begin()
	if err := c.ackIn(x, at[0]); err != nil {
		t.Fatal(err)
	}
	before := w.keysUnder(w.space("a").MetaPrefix())
	held := make(chan struct{})
	w.coord.mu.Lock()
	w.coord.held = map[txn.ID]chan struct{}{late: held}
	w.coord.mu.Unlock()
	lateDone, done := make(chan error, 1), make(chan error, 1)
	c.Ack(ackInTxn(late, ackOf(pulsarproto.CommandAck_Individual, at[1])), func(err error) { lateDone <- err })
	loaded := w.topics.loaded(parse(t, "a").String())
	w.until(func() bool { return len(loaded.asking) == 1 }, loaded)
	c.Unsubscribe(false, func(err error) { done <- err })
	if err := wait(t, done); err != nil {
		t.Fatal(err)
	}
	c = w.subscribe("a", "s", earliest)
	c.want("m0", "m1", "m2")
	close(held)
	wait(t, lateDone)
	if now := w.keysUnder(w.space("a").MetaPrefix()); now >= before {
		t.Errorf("%d keys of the topic, before %d: something is left of the old subscription", now, before)
	}
	for _, id := range []txn.ID{x, late} {
		w.end(id, txn.Commit, "a", "s")
	}
	w.restart()
	w.subscribe("a", "s").want("m0", "m1", "m2")
}

// TestCumulativePendingAckWithinABatch: it may only grow, hides exactly what it has, and gives back exactly that.
func TestCumulativePendingAckWithinABatch(t *testing.T) {
	w := newWorld(t)
	p := w.produce("a")
	p.send(message(0, "m"))
	at := p.send(batchOf(4, message(1, "b")))
	c := w.subscribe("a", "s", earliest)
	c.want("m", "b")
	x, y := w.coord.begin(), w.coord.begin()
	ack := func(id txn.ID, acked int64) error {
		cmd := ackInTxn(id, ackOf(pulsarproto.CommandAck_Cumulative, at))
		cmd.MessageId[0].AckSet = []int64{^acked}
		return c.tryAck(cmd)
	}
	for _, step := range []struct {
		id    txn.ID
		acked int64
		want  error
	}{{x, 0b0001, nil}, {x, 0b0110, txn.ErrConflict}, {x, 0b0001, txn.ErrConflict}, {y, 0b0111, txn.ErrConflict}, {x, 0b0011, nil}} {
		if err := ack(step.id, step.acked); !errors.Is(err, step.want) || step.want == nil && err != nil {
			t.Fatalf("%v acknowledges %b: %v, want %v", step.id, step.acked, err, step.want)
		}
	}
	w.restart()
	c = w.subscribe("a", "s")
	if d := c.want("b")[0]; len(d.AckSet) != 1 || d.AckSet[0] != 0b1100 {
		t.Fatalf("ack set %b beside the pending ones, want indexes 2 and 3", d.AckSet)
	}
	w.end(x, txn.Abort, "a", "s")
	c.want("m")
	if d := c.want("b")[0]; len(d.AckSet) != 1 || d.AckSet[0] != 0b0011 {
		t.Fatalf("given back with ack set %b, want indexes 0 and 1", d.AckSet)
	}
	if err := ack(y, 0b0111); err != nil {
		t.Fatal(err)
	}
	w.end(y, txn.Commit, "a", "s")
	w.restart()
	c = w.subscribe("a", "s")
	if d := c.want("b")[0]; len(d.AckSet) != 1 || d.AckSet[0] != 0b1000 {
		t.Fatalf("after the commit ack set %b, want index 3", d.AckSet)
	}
	c.wantNothing(w, "a")
}

// beforeCreation runs a function once, before the first write that creates a topic.
type beforeCreation struct {
	clientv3.KV
	once atomic.Pointer[func()]
}

func (b *beforeCreation) Txn(ctx context.Context) clientv3.Txn {
	if f := b.once.Swap(nil); f != nil {
		(*f)()
	}
	return b.KV.Txn(ctx)
}

// TestPlainOrPartitioned: of a plain topic and a partitioned one of the same name that are made at the same time there is one.
func TestPlainOrPartitioned(t *testing.T) {
	kv := &beforeCreation{KV: storeClient.KV}
	w := newWorld(t, func(o *Options) { o.KV = kv })
	name := parse(t, "a")
	other := New(Options{KV: storeClient.KV, Keys: w.keys, Registrar: w.coord, Log: w.options.Log})
	defer other.Close(context.Background())
	meanwhile := func() {
		if err := other.CreatePartitioned(context.Background(), name, 2, nil); err != nil {
			t.Error(err)
		}
	}
	kv.once.Store(&meanwhile)
	if _, err := w.tryProduce("a", &pulsarproto.CommandProducer{}); !errors.Is(err, txn.ErrNotAllowed) {
		t.Fatalf("plain topic beside a partitioned one: %v", err)
	}
	if p := w.produce("a-partition-1").send(message(0, "m")); p == (ledger.Position{}) {
		t.Fatal("no position")
	}
	if _, err := w.tryProduce("a-partition-2", &pulsarproto.CommandProducer{}); !errors.Is(err, txn.ErrNotAllowed) {
		t.Fatalf("partition that does not exist: %v", err)
	}
}

// TestCommitBehindASeekOfARefusedGroup: a commit behind a seek acknowledges what the transaction holds, also if the write that both
// were in is made again.
func TestCommitBehindASeekOfARefusedGroup(t *testing.T) {
	w := newWorld(t)
	p := w.produce("a")
	at, _ := sendMany(p, 3)
	c := w.subscribe("a", "s", earliest)
	c.want("m0", "m1", "m2")
	id := w.coord.begin()
	if err := c.ackIn(id, at[1]); err != nil {
		t.Fatal(err)
	}
	release := w.hold()
	p.Send(message(3, "m3"))
	w.posted("a")
	sought, ended := make(chan error, 1), make(chan error, 1)
	c.Seek(&pulsarproto.CommandSeek{MessageId: idOf(at[0])}, func(err error) { sought <- err })
	w.coord.decide(t, id)
	w.topics.EndTxn(context.Background(), id, w.participant("a", "s"), txn.Commit, 0, func(err error) { ended <- err })
	p.Send(inTxn(w.coord.begin(), message(4, "m4"))) // not registered yet: the write is refused
	w.posted("a")
	release()
	for _, done := range []chan error{sought, ended} {
		if err := wait(t, done); err != nil {
			t.Fatal(err)
		}
	}
	w.subscribe("a", "s").want("m0", "m2", "m3")
	w.restart()
	w.subscribe("a", "s").want("m0", "m2", "m3")
}

// TestCommitsOfOneGroup: commits on one subscription that wait together are written together, each counted once.
func TestCommitsOfOneGroup(t *testing.T) {
	const commits = 40
	w := newWorld(t, func(o *Options) { o.MaxTxnOps = 128 })
	at, _ := sendMany(w.produce("a"), commits)
	c := w.subscribe("a", "s", earliest)
	var ids []txn.ID
	for i := range at {
		id := w.coord.begin()
		if err := c.ackIn(id, at[i]); err != nil {
			t.Fatal(err)
		}
		w.coord.decide(t, id)
		ids = append(ids, id)
	}
	var writes atomic.Int32
	w.kv.set(func(commit func() (*clientv3.TxnResponse, error)) (*clientv3.TxnResponse, error) {
		writes.Add(1)
		return commit()
	})
	done := make(chan error, commits)
	w.topics.loaded(parse(t, "a").String()).ask(func(bool) { // so that all are in one group
		for _, id := range ids {
			w.topics.EndTxn(context.Background(), id, txn.Participant{Topic: parse(t, "a").String(), Subscription: "s", Kind: txn.AckedSubscription},
				txn.Commit, 0, func(err error) { done <- err })
		}
	})
	for range commits {
		if err := wait(t, done); err != nil {
			t.Fatal(err)
		}
	}
	if n := writes.Load(); n != 1 {
		t.Fatalf("%d writes, want 1", n)
	}
}
