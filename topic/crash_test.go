package topic

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

var errInjected = errors.New("the connection to the store broke")

// breakWrite fails the n-th write from now on, counted from 1, after it was applied or without. What it returns tells whether
// there was one, when nothing is written any more.
func (w *world) breakWrite(n int, applied bool) (broken *bool) {
	broken = new(bool)
	w.kv.set(func(commit func() (*clientv3.TxnResponse, error)) (*clientv3.TxnResponse, error) {
		if n--; n != 0 {
			return commit()
		}
		*broken = true
		if applied {
			if _, err := commit(); err != nil {
				return nil, err
			}
		}
		return nil, errInjected
	})
	return broken
}

// TestCrashAtEveryWrite runs one story again and again. The n-th write fails, before or after the store applied it; then the
// client does what clients do: it comes again and repeats what was not answered. However it goes, the end is the same.
func TestCrashAtEveryWrite(t *testing.T) {
	for _, applied := range []bool{false, true} {
		for _, settled := range []bool{false, true} {
			for n := 1; ; n++ {
				if !crashStory(t, n, applied, settled) {
					if n < 12 {
						t.Fatalf("the story has %d writes only", n-1)
					}
					break
				}
			}
		}
	}
}

// crashStory reports whether the story has an n-th write. settled: commits are settled, as long as that is possible.
func crashStory(t *testing.T, n int, applied, settled bool) bool {
	w := newWorld(t, func(o *Options) { o.MaxTxnOps = 24 })
	defer w.close()
	broken := w.breakWrite(n, applied)
	story := fmt.Sprintf("write %d, applied %v, settled %v", n, applied, settled)
	committed, aborted := w.coord.begin(), w.coord.begin()
	again := func(what string, try func() error, fine ...error) {
		t.Helper()
		for range 5 {
			err := try()
			if err == nil || slices.ContainsFunc(fine, func(f error) bool { return errors.Is(err, f) }) {
				return
			}
			if !errors.Is(err, ErrPersistence) && !errors.Is(err, txn.ErrNotReady) {
				t.Fatalf("%s: %s: %v", story, what, err)
			}
		}
		t.Fatalf("%s: %s does not come to an end", story, what)
	}
	// send sends until there is a receipt, as one producer with one name does over its reconnects.
	var p *testProducer
	send := func(sequence uint64, id *txn.ID, payload string) (at ledger.Position) {
		t.Helper()
		for {
			if p == nil {
				again("produce", func() (err error) {
					name := "p"
					p, err = w.tryProduce("a", &pulsarproto.CommandProducer{ProducerName: &name})
					return err
				})
			}
			msg := message(sequence, payload)
			if id != nil {
				msg = inTxn(*id, msg)
			}
			p.Send(msg)
			select {
			case r := <-p.receipts:
				if r.err != nil {
					t.Fatalf("%s: %v", story, r.err)
				}
				return r.position
			case <-p.disconnected:
				p = nil
			case <-time.After(patience):
				t.Fatalf("%s: no receipt", story)
			}
		}
	}
	var c *testConsumer
	subscribe := func() {
		again("subscribe", func() (err error) {
			c, err = w.trySubscribe("a", "s", earliest, shared)
			return err
		})
	}
	subscribe()
	send(0, nil, "plain")
	for i := range 3 {
		send(uint64(1+i), &committed, fmt.Sprint("c", i))
	}
	for i := range 20 {
		send(uint64(10+i), &aborted, "a")
	}
	send(50, nil, "last")
	for id, action := range map[txn.ID]txn.Action{committed: txn.Commit, aborted: txn.Abort} {
		if settled && action == txn.Commit && w.trySettle(id, w.participant("a", "")) {
			continue
		}
		w.coord.decide(t, id)
		again("end", func() error { return w.tryEnd(id, action, "a", "") })
	}
	// Acknowledge a committed message in one transaction that commits, and another in one that aborts.
	first, second := w.coord.begin(), w.coord.begin()
	// find returns where a payload is; a plain one that was sent again may be there twice.
	find := func(payload string) (at []ledger.Position) {
		var r *testConsumer
		again("find", func() (err error) {
			r, err = w.trySubscribe("a", "finder", nonDurable, earliest)
			return err
		})
		defer r.Close()
		r.Flow(1000)
		for w.quiet("a"); len(r.messages) > 0; {
			if d := r.next(); string(d.Payload) == payload {
				at = append(at, position(d))
			}
		}
		return at
	}
	for id, payload := range map[txn.ID]string{first: "c0", second: "c1"} {
		at := find(payload)
		again("ack", func() error {
			subscribe()
			return c.ackIn(id, at...)
		}, txn.ErrConflict) // it was applied, and is repeated
	}
	again("plain ack", func() error {
		subscribe()
		return c.tryAck(ackOf(pulsarproto.CommandAck_Individual, find("plain")...))
	})
	for id, action := range map[txn.ID]txn.Action{first: txn.Commit, second: txn.Abort} {
		if settled && action == txn.Commit && w.trySettle(id, w.participant("a", "s")) {
			continue
		}
		w.coord.decide(t, id)
		again("end ack", func() error { return w.tryEnd(id, action, "a", "s") })
	}
	w.kv.set(nil)
	w.restart()
	c = w.subscribe("a", "s", shared)
	left := append([]string{"c1", "c2"}, slices.Repeat([]string{"last"}, len(find("last")))...)
	c.wantAny(left...)
	c.wantNothing(w, "a")
	r := w.subscribe("a", "reader", nonDurable, earliest)
	var got []string
	w.quiet("a")
	for len(r.messages) > 0 {
		got = append(got, string(r.next().Payload))
	}
	// A plain send that was applied without a receipt is there twice: deduplication is off. In transactions it is not.
	for _, plain := range []string{"plain", "last"} {
		if i := slices.Index(got, plain); i >= 0 && i+1 < len(got) && got[i+1] == plain {
			got = slices.Delete(got, i, i+1)
		}
	}
	if want := []string{"plain", "c0", "c1", "c2", "last"}; !slices.Equal(got, want) {
		t.Fatalf("%s: the topic has %q, want %q", story, got, want)
	}
	space := w.space("a")
	if n := w.keysUnder(space.TxnPrefix()); n != 0 {
		t.Fatalf("%s: %d marks are left", story, n)
	}
	return *broken
}

// TestDelayedWriteIsRefused: a write that the store applies after the topic was loaded again changes nothing.
func TestDelayedWriteIsRefused(t *testing.T) {
	w := newWorld(t)
	p := w.produce("a")
	p.send(message(0, "before"))
	held := make(chan func() (*clientv3.TxnResponse, error), 1)
	w.kv.set(func(commit func() (*clientv3.TxnResponse, error)) (*clientv3.TxnResponse, error) {
		held <- commit
		return nil, errInjected
	})
	// The write goes on with a context of its own, as one that is on the wire does.
	w.kv.detached = true
	p.Send(message(1, "delayed"))
	commit := <-held
	<-p.disconnected
	w.kv.set(nil)
	c := w.subscribe("a", "s", earliest)
	c.want("before")
	result, err := commit()
	if err != nil || result.Succeeded {
		t.Fatalf("the delayed write: %v, %v; want refused", result, err)
	}
	q := w.produce("a")
	q.send(message(0, "after"))
	c.want("after")
	c.wantNothing(w, "a")
}

// TestForeignOwner: a topic that was loaded elsewhere gives no definite answer, not even about what needs no write.
func TestForeignOwner(t *testing.T) {
	w := newWorld(t)
	p := w.produce("a")
	p.send(message(0, "m"))
	other := New(w.options)
	defer other.Close(context.Background())
	if _, _, err := other.Produce(context.Background(), parse(t, "a"), cnx.Caller{}, &pulsarproto.CommandProducer{}, p); err != nil {
		t.Fatal(err)
	}
	if err := w.tryEnd(txn.ID{Least: 1}, txn.Commit, "a", ""); !errors.Is(err, ErrPersistence) {
		t.Fatalf("end on a topic that is owned elsewhere: %v", err)
	}
	<-p.disconnected
	if w.kv.reads == 0 {
		t.Fatal("an answer without a write was not proved by a linearizable read")
	}
}

// TestPositionsAreNotReused: after an abort deleted the tail, and over restarts.
func TestPositionsAreNotReused(t *testing.T) {
	w := newWorld(t)
	seen := make(map[ledger.Position]bool)
	last := ledger.Position{}
	for range 4 {
		p := w.produce("a")
		for range 3 {
			id := w.coord.begin()
			for range 2 {
				at := p.send(inTxn(id, message(0, "a")))
				if seen[at] || !last.Before(at) {
					t.Fatalf("position %v after %v", at, last)
				}
				seen[at], last = true, at
			}
			w.end(id, txn.Abort, "a", "")
		}
		w.restart()
	}
}
