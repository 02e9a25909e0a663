package topic

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// tickAll lets all topics look at the time, and returns when they have, and have deleted what is old.
func (w *world) tickAll() {
	w.t.Helper()
	for _, t := range w.topics.all() {
		t.postTick()
		for busy := true; busy; {
			answer := make(chan bool, 1)
			t.ask(func(alive bool) { answer <- alive && t.trim.running })
			busy = <-answer
		}
	}
}

func (w *world) isLoaded(name string) bool {
	w.t.Helper()
	return w.topics.loaded(parse(w.t, name).String()) != nil
}

// idleWorld is a world whose clock a test moves.
func idleWorld(t *testing.T) (w *world, pass func(time.Duration)) {
	var mu sync.Mutex
	now := time.UnixMilli(1_700_000_000_000)
	w = newWorld(t, func(o *Options) {
		o.Now = func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return now
		}
	})
	return w, func(d time.Duration) {
		w.tickAll()
		mu.Lock()
		now = now.Add(d)
		mu.Unlock()
		w.tickAll()
	}
}

// TestIdleTopicLeavesMemory holds P-7: what nobody uses costs no memory, and comes back as it was.
func TestIdleTopicLeavesMemory(t *testing.T) {
	w, pass := idleWorld(t)
	p := w.produceAs("a", "p")
	c := w.subscribe("a", "s", shared)
	at, _ := sendMany(p, 3)
	x, y := w.coord.begin(), w.coord.begin()
	p.send(inTxn(x, message(10, "x")))
	p.send(inTxn(y, message(11, "y")))
	c.want("m0", "m1", "m2")
	c.ack(at[0])
	if err := c.ackIn(x, at[1]); err != nil {
		t.Fatal(err)
	}
	for _, user := range []interface{ Close() }{p, c} {
		pass(time.Hour)
		if !w.isLoaded("a") {
			t.Fatal("a topic in use was unloaded")
		}
		user.Close()
	}
	pass(59 * time.Second)
	if !w.isLoaded("a") {
		t.Fatal("unloaded too early")
	}
	keys := w.keysUnder(w.keys.Root())
	pass(2 * time.Second)
	if w.isLoaded("a") || len(w.topics.topics) != 0 || len(w.topics.slots) != 0 {
		t.Fatalf("an idle topic stays: %d topics in %d slots", len(w.topics.topics), len(w.topics.slots))
	}
	if now := w.keysUnder(w.keys.Root()); now != keys {
		t.Fatalf("unloading changed the store from %d keys to %d", keys, now)
	}
	w.end(x, txn.Commit, "a", "s")
	w.end(x, txn.Commit, "a", "")
	pass(61 * time.Second)
	w.end(y, txn.Abort, "a", "")
	pass(61 * time.Second)
	c = w.subscribe("a", "s", shared)
	w.produce("a").send(message(12, "new"))
	c.want("m2", "x", "new")
}

// TestReaderKeepsATopicLoaded: a subscription that is not stored is nowhere else.
func TestReaderKeepsATopicLoaded(t *testing.T) {
	w, pass := idleWorld(t)
	r := w.subscribe("a", "reader", nonDurable, earliest)
	pass(time.Hour)
	w.produce("a").send(message(0, "m"))
	r.want("m")
}

// TestUnloadedTopicIsTrimmed: what was young when its topic left memory is deleted when it is old, and the topic leaves again.
func TestUnloadedTopicIsTrimmed(t *testing.T) {
	w, pass := idleWorld(t)
	p := w.produce("a")
	sendMany(p, 5)
	blocks := w.space("a").EntryPrefix()
	p.Close()
	pass(61 * time.Second)
	if n := w.keysUnder(blocks); w.isLoaded("a") || n == 0 {
		t.Fatalf("loaded %v, %d blocks", w.isLoaded("a"), n)
	}
	w.topics.revisit()
	if w.isLoaded("a") {
		t.Fatal("loaded before there is something to delete")
	}
	pass(10 * time.Minute)
	w.topics.revisit()
	for deadline := time.Now().Add(patience); w.keysUnder(blocks) != 0; {
		if time.Now().After(deadline) {
			t.Fatal("old entries stay")
		}
	}
	for deadline := time.Now().Add(patience); w.isLoaded("a"); pass(61 * time.Second) {
		if time.Now().After(deadline) {
			t.Fatal("the topic stays")
		}
	}
	if n := len(w.topics.dormant); n != 0 {
		t.Fatalf("%d topics are to be visited again", n)
	}
}

// TestUseWhileUnloading: producers, consumers and ends never meet a topic that is about to leave.
func TestUseWhileUnloading(t *testing.T) {
	const rounds = 150
	w, pass := idleWorld(t)
	name := parse(t, "a")
	w.subscribe("a", "s").Close() // it needs all messages, so that none is deleted for its age
	var uses []func() error
	use := func(once func() error) { uses = append(uses, once) }
	use(func() error {
		p := &testProducer{t: t, receipts: make(chan receipt, 1), disconnected: make(chan struct{})}
		attached, _, err := w.topics.Produce(context.Background(), name, cnx.Caller{}, &pulsarproto.CommandProducer{}, p)
		if err != nil {
			return err
		}
		defer attached.Close()
		attached.Send(message(0, "m"))
		select {
		case r := <-p.receipts:
			return r.err
		case <-time.After(patience):
			return errors.New("no receipt")
		}
	})
	use(func() error {
		c := &testConsumer{t: t, disconnected: make(chan struct{}), active: make(chan bool, 10)}
		cmd := &pulsarproto.CommandSubscribe{Subscription: ptr("s"), SubType: ptr(pulsarproto.CommandSubscribe_Exclusive)}
		attached, err := w.topics.Subscribe(context.Background(), name, cnx.Caller{}, cmd, c)
		if err == nil {
			attached.Close()
		}
		return err
	})
	use(func() error {
		done := make(chan error, 1)
		w.topics.EndTxn(context.Background(), txn.ID{Least: 1}, txn.Participant{Topic: name.String()}, txn.Commit, 0, func(err error) { done <- err })
		return <-done
	})
	for range rounds {
		var round sync.WaitGroup
		for _, once := range uses {
			round.Go(func() {
				if err := once(); err != nil {
					t.Error(err)
				}
			})
		}
		round.Go(func() { pass(61 * time.Second) })
		round.Wait()
	}
	c := w.subscribe("a", "all", earliest)
	for range rounds {
		c.next()
	}
}

// TestEndMeetsAClosingTopic: an end that waits in a topic when it leaves memory is applied by the next one.
func TestEndMeetsAClosingTopic(t *testing.T) {
	w := newWorld(t)
	id := w.coord.begin()
	p := w.produce("a")
	p.send(inTxn(id, message(0, "m")))
	w.coord.decide(t, id)
	loaded := w.topics.loaded(parse(t, "a").String())
	entered, release := make(chan struct{}), make(chan struct{})
	loaded.ask(func(bool) {
		close(entered)
		<-release
		loaded.shut(errClosing)
	})
	<-entered
	done := make(chan error, 1)
	w.topics.EndTxn(context.Background(), id, txn.Participant{Topic: loaded.fullName}, txn.Commit, 0, func(err error) { done <- err })
	close(release)
	if err := wait(t, done); err != nil {
		t.Fatal(err)
	}
	w.subscribe("a", "s", earliest).want("m")
}
