package topic

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// TestTrim deletes what is acknowledged and old enough, and nothing else.
func TestTrim(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	w := newWorld(t, func(o *Options) {
		o.Now = func() time.Time { return now }
		o.Retention = 10 * time.Minute
	})
	tick := func() {
		t.Helper()
		loaded := w.topics.loaded(parse(t, "a").String())
		done := make(chan struct{})
		loaded.ask(func(bool) { loaded.tick(); close(done) })
		<-done
		for busy := true; busy; {
			answer := make(chan bool)
			loaded.ask(func(bool) { answer <- loaded.trim.running })
			busy = <-answer
		}
	}
	blocks := func() int64 { return w.keysUnder(w.space("a").EntryPrefix()) }
	c := w.subscribe("a", "s")
	p := w.produce("a")
	at, _ := sendMany(p, 10)
	c.want("m0", "m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8", "m9")
	w.restart()
	c = w.subscribe("a", "s")
	c.ack(at[:6]...)
	tick()
	if n := blocks(); n != 10 {
		t.Fatalf("%d blocks right after the load, want 10", n)
	}
	now = now.Add(11 * time.Minute)
	tick()
	if n := blocks(); n != 4 {
		t.Fatalf("%d blocks, want the 4 that are not acknowledged", n)
	}
	w.subscribe("a", "late", earliest).want("m6", "m7", "m8", "m9")
	c.ack(at[6:]...)
	p = w.produce("a")
	id := w.coord.begin()
	p.send(inTxn(id, message(20, "open")))
	p.send(message(21, "young"))
	tick()
	now = now.Add(11 * time.Minute)
	tick()
	if n := blocks(); n != 6 {
		t.Fatalf("%d blocks, want 6: another subscription has not acknowledged", n)
	}
	late := w.subscribe("a", "gone", nonDurable, earliest)
	late.want("m6", "m7", "m8", "m9")
	late.Close()
	w.end(id, txn.Commit, "a", "")
	for _, s := range []string{"s", "late"} {
		w.restart()
		c := w.subscribe("a", s)
		w.quiet("a")
		for len(c.messages) > 0 {
			c.ack(position(c.next()))
		}
	}
	now = now.Add(11 * time.Minute)
	tick()
	if n := blocks(); n != 0 {
		t.Fatalf("%d blocks, want none", n)
	}
	if n := w.keysUnder(w.space("a").LedgerPrefix()); n != 0 {
		t.Fatalf("%d ledger names are left", n)
	}
	c = w.subscribe("a", "s")
	w.produce("a").send(message(0, "new"))
	c.want("new")
	w.restart()
	w.subscribe("a", "fresh", earliest).want("new")
}

// TestTrimWithoutSubscription: age alone counts.
func TestTrimWithoutSubscription(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	w := newWorld(t, func(o *Options) { o.Now = func() time.Time { return now } })
	sendMany(w.produce("a"), 5)
	loaded := w.topics.loaded(parse(t, "a").String())
	for range 3 {
		done := make(chan struct{})
		loaded.ask(func(bool) { loaded.tick(); close(done) })
		<-done
		now = now.Add(6 * time.Minute)
	}
	deadline := time.Now().Add(patience)
	for w.keysUnder(w.space("a").EntryPrefix()) != 0 {
		if time.Now().After(deadline) {
			t.Fatal("entries that nobody needs stay")
		}
	}
}

// lateKV holds back the answer to one read of values.
type lateKV struct {
	clientv3.KV
	mu      sync.Mutex
	reached chan struct{} // closed when the answer is there; nil: none is held back
	release chan struct{}
}

func (l *lateKV) Get(ctx context.Context, key string, options ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	got, err := l.KV.Get(ctx, key, options...)
	l.mu.Lock()
	reached := l.reached
	if keysOnly := clientv3.OpGet(key, options...).IsKeysOnly(); reached != nil && !keysOnly {
		l.reached = nil
	} else {
		reached = nil
	}
	l.mu.Unlock()
	if reached != nil {
		close(reached)
		<-l.release
	}
	return got, err
}

func (l *lateKV) hold() (reached <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reached = make(chan struct{})
	return l.reached
}

// TestLastMessageIsTrimmedMeanwhile holds FC-21: an entry that is trimmed while it is read is not told as the last one.
func TestLastMessageIsTrimmedMeanwhile(t *testing.T) {
	late := &lateKV{KV: storeClient.KV, release: make(chan struct{})}
	w := newWorld(t, trims, func(o *Options) { o.KV = late })
	at := w.produce("a").send(message(0, "m"))
	w.subscribe("a", "s", earliest).Close()
	w.restart()
	c, err := w.trySubscribe("a", "s")
	if err != nil {
		t.Fatal(err)
	}
	release := sync.OnceFunc(func() { close(late.release) })
	defer release()
	reached := late.hold()
	last := make(chan error, 1)
	c.LastMessageID(func(id, _ *pulsarproto.MessageIdData, err error) {
		if err == nil && id.GetEntryId() != none {
			err = fmt.Errorf("the last message is %v", id)
		}
		last <- err
	})
	happens(t, reached)
	c.ack(at)
	w.trim("a")
	release()
	if err := wait(t, last); err != nil {
		t.Fatal(err)
	}
}
