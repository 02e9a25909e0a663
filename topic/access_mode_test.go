package topic

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

const (
	sharedMode  = pulsarproto.ProducerAccessMode_Shared
	exclusive   = pulsarproto.ProducerAccessMode_Exclusive
	withFencing = pulsarproto.ProducerAccessMode_ExclusiveWithFencing
	waiting     = pulsarproto.ProducerAccessMode_WaitForExclusive
)

func producerOf(mode pulsarproto.ProducerAccessMode, epoch ...uint64) *pulsarproto.CommandProducer {
	cmd := &pulsarproto.CommandProducer{ProducerAccessMode: &mode}
	if len(epoch) > 0 {
		cmd.TopicEpoch = &epoch[0]
	}
	return cmd
}

// produceIn attaches in a mode and checks the epoch that it is told; want < 0 is none.
func (w *world) produceIn(mode pulsarproto.ProducerAccessMode, want int, epoch ...uint64) *testProducer {
	w.t.Helper()
	p, err := w.tryProduce("a", producerOf(mode, epoch...))
	if err != nil {
		w.t.Fatalf("%v: %v", mode, err)
	}
	if p.info.HasTopicEpoch != (want >= 0) || want >= 0 && p.info.TopicEpoch != uint64(want) || !p.info.Ready {
		w.t.Fatalf("%v attached as %+v, want epoch %d", mode, p.info, want)
	}
	return p
}

func (w *world) refuseIn(mode pulsarproto.ProducerAccessMode, want error, epoch ...uint64) {
	w.t.Helper()
	if _, err := w.tryProduce("a", producerOf(mode, epoch...)); !errors.Is(err, want) {
		w.t.Fatalf("%v: %v, want %v", mode, err, want)
	}
}

// queuedProducer waits to become exclusive.
type queuedProducer struct {
	*testProducer
	cancel context.CancelCauseFunc
	result chan error
}

// wait asks for WaitForExclusive and returns once the producer knows that it has to wait.
func (w *world) wait(epoch ...uint64) *queuedProducer {
	w.t.Helper()
	q := &queuedProducer{testProducer: w.newProducer(), result: make(chan error, 1)}
	var ctx context.Context
	ctx, q.cancel = context.WithCancelCause(context.Background())
	go func() {
		var err error
		q.Producer, q.info, err = w.topics.Produce(ctx, topicname.Name{Domain: topicname.Persistent, Tenant: "public", Namespace: "default", Local: "a"},
			cnx.Caller{}, producerOf(waiting, epoch...), q)
		q.result <- err
	}()
	select {
	case info := <-q.queued:
		if info.Ready || info.Name == "" || info.LastSequenceID != -1 {
			w.t.Fatalf("first answer %+v", info)
		}
	case err := <-q.result:
		w.t.Fatalf("answered %+v, %v without waiting", q.info, err)
	case <-time.After(patience):
		w.t.Fatal("no first answer")
	}
	return q
}

func (q *queuedProducer) want(epoch uint64) {
	q.t.Helper()
	if err := wait(q.t, q.result); err != nil {
		q.t.Fatal(err)
	}
	if !q.info.Ready || !q.info.HasTopicEpoch || q.info.TopicEpoch != epoch {
		q.t.Fatalf("second answer %+v, want epoch %d", q.info, epoch)
	}
}

// TestAccessModes goes through what each mode does beside each other.
func TestAccessModes(t *testing.T) {
	w := newWorld(t)
	p := w.produceIn(sharedMode, -1, 99) // the epoch of a Shared producer is ignored
	w.produceIn(sharedMode, -1)
	w.refuseIn(exclusive, ErrProducerFenced)
	f := w.produceIn(withFencing, 0)
	<-p.disconnected
	w.refuseIn(sharedMode, ErrProducerBusy)
	w.refuseIn(exclusive, ErrProducerFenced)
	f.Close()
	w.produceIn(sharedMode, 0).Close()
	e := w.produceIn(exclusive, 1)
	w.refuseIn(withFencing, ErrProducerFenced, 0)
	w.refuseIn(waiting, ErrProducerFenced, 0)
	q := w.wait()
	w.refuseIn(sharedMode, ErrProducerBusy)
	e.Close()
	q.want(2)
	w.refuseIn(exclusive, ErrProducerFenced)
	q.Close()
	w.refuseIn(exclusive, ErrProducerFenced, 1)
	w.produceIn(exclusive, 2, 2).Close() // it comes again under its epoch
	w.produceIn(exclusive, 7, 7).Close() // of a topic of this name that was deleted
	w.produceIn(exclusive, 8).Close()
	w.restart()
	w.refuseIn(exclusive, ErrProducerFenced, 7)
	w.produceIn(sharedMode, 8).Close()
	w.produceIn(waiting, 9)
	w.refuseIn(withFencing, txn.ErrNotAllowed, maxEpoch+1)
	w.refuseIn(4, txn.ErrNotAllowed)
}

// TestWaitBehindShared: who waits becomes exclusive when the last Shared producer has gone, one after the other.
func TestWaitBehindShared(t *testing.T) {
	w := newWorld(t)
	a, b := w.produceIn(sharedMode, -1), w.produceIn(sharedMode, -1)
	first, second := w.wait(), w.wait()
	w.refuseIn(sharedMode, ErrProducerBusy)
	a.Close()
	b.Close()
	first.want(0)
	first.Close()
	second.want(1)
	second.send(message(0, "m"))
}

// TestFirstInLine: who waits comes before one that asked later but whose turn comes first.
func TestFirstInLine(t *testing.T) {
	w := newWorld(t)
	holder := w.produceIn(exclusive, 0)
	first := w.wait()
	writes := w.holdWrites()
	holder.Send(message(0, "m"))
	write := <-writes
	result := make(chan error, 1)
	go func() {
		_, err := w.tryProduce("a", producerOf(exclusive))
		result <- err
	}()
	w.waitForItems("a", 1)
	holder.Close()
	w.kv.set(nil)
	close(write)
	if err := wait(t, result); !errors.Is(err, ErrProducerFenced) {
		t.Fatalf("who came later: %v", err)
	}
	first.want(1)
}

// TestWaitIsGivenUp: a producer that is closed while it waits is in nobody's way, and one that comes later has its place.
func TestWaitIsGivenUp(t *testing.T) {
	w := newWorld(t)
	holder := w.produceIn(exclusive, 0)
	gone, stays := w.wait(), w.wait()
	closed := errors.New("closed by its client")
	gone.cancel(closed)
	if err := wait(t, gone.result); !errors.Is(err, closed) {
		t.Fatalf("answered %v", err)
	}
	w.waitForLine("a", 1)
	holder.Close()
	stays.want(1)
	last := w.wait()
	last.cancel(closed)
	if err := wait(t, last.result); !errors.Is(err, closed) {
		t.Fatal(err)
	}
	w.waitForLine("a", 0)
	stays.Close()
	w.produceIn(sharedMode, 1)
}

// TestFencing: an old producer stores nothing once a fencing one is told that it is exclusive, and cannot come again.
func TestFencing(t *testing.T) {
	w := newWorld(t)
	old := w.produceIn(exclusive, 0)
	old.send(message(0, "old"))
	queued := w.wait()
	writes := w.holdWrites()
	old.Send(message(1, "in flight"))
	first := <-writes
	fenced := make(chan *testProducer)
	go func() {
		p, err := w.tryProduce("a", producerOf(withFencing))
		if err != nil {
			t.Error(err)
		}
		fenced <- p
	}()
	w.waitForItems("a", 1)
	old.Send(message(2, "with the fence"))
	w.waitForItems("a", 2)
	close(first)
	second := <-writes
	old.Send(message(3, "late"))
	w.waitForItems("a", 1)
	w.kv.set(nil)
	close(second)
	p := <-fenced
	if p.info.TopicEpoch != 1 {
		t.Fatalf("epoch %d", p.info.TopicEpoch)
	}
	p.send(message(0, "new"))
	<-old.disconnected
	old.Send(message(3, "behind"))
	if err := wait(t, queued.result); !errors.Is(err, ErrProducerFenced) {
		t.Fatalf("a producer that waits: %v", err)
	}
	w.refuseIn(exclusive, ErrProducerFenced, 0)
	w.subscribe("a", "s", earliest).want("old", "in flight", "with the fence", "new")
}

// holdWrites makes every write of a topic wait until the channel that it sends is closed.
func (w *world) holdWrites() <-chan chan struct{} {
	writes := make(chan chan struct{}, 100)
	w.kv.set(func(commit func() (*clientv3.TxnResponse, error)) (*clientv3.TxnResponse, error) {
		release := make(chan struct{})
		writes <- release
		<-release
		return commit()
	})
	return writes
}

// waitForItems returns when n commands wait for the write in flight.
func (w *world) waitForItems(name string, n int) {
	w.t.Helper()
	w.waitFor(name, "commands", n, func(t *Topic) int { return len(t.queue.items) - t.queue.head })
}

// waitForLine waits until n producers wait to be exclusive: who is told that it is out may still be in line.
func (w *world) waitForLine(name string, n int) {
	w.t.Helper()
	w.waitFor(name, "producers in line", n, func(t *Topic) int { return len(t.waiting) })
}

func (w *world) waitFor(name, what string, n int, count func(*Topic) int) {
	w.t.Helper()
	topic := w.topics.loaded(parse(w.t, name).String())
	counted := make(chan int, 1)
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		topic.ask(func(bool) { counted <- count(topic) })
		if <-counted == n {
			return
		}
	}
	w.t.Fatalf("there are never %d %s", n, what)
}

// TestAttachmentsOfOneGroup: of producers that attach in the same write, the first one counts.
func TestAttachmentsOfOneGroup(t *testing.T) {
	for _, modes := range [][2]pulsarproto.ProducerAccessMode{{exclusive, sharedMode}, {sharedMode, exclusive}, {exclusive, exclusive}} {
		w := newWorld(t)
		p := w.produceIn(sharedMode, -1)
		writes := w.holdWrites()
		p.Send(message(0, "m"))
		write := <-writes
		p.Close()
		results := make(chan error, 2)
		for i, mode := range modes {
			go func() {
				_, err := w.tryProduce("a", producerOf(mode))
				results <- err
			}()
			w.waitForItems("a", 1+i)
		}
		w.kv.set(nil)
		close(write)
		first, second := wait(t, results), wait(t, results)
		if first != nil {
			first, second = second, first
		}
		if first != nil || !errors.Is(second, ErrProducerBusy) && !errors.Is(second, ErrProducerFenced) {
			t.Errorf("%v: %v and %v, want one of them", modes, first, second)
		}
	}
}

// TestEpochIsDurableFirst: an epoch that may not be stored is not answered, however the write ended.
func TestEpochIsDurableFirst(t *testing.T) {
	for _, applied := range []bool{false, true} {
		w := newWorld(t)
		w.produceIn(exclusive, 0).Close()
		w.breakWrite(1, applied)
		w.refuseIn(withFencing, ErrPersistence)
		want := 1
		if applied {
			want = 2
		}
		w.produceIn(exclusive, want)
	}
}

// TestDeadProducersAreNotInTheWay: connections that do not answer make room, those that do keep their place.
func TestDeadProducersAreNotInTheWay(t *testing.T) {
	w := newWorld(t)
	for range 3 {
		w.produceIn(sharedMode, -1).dead = true
	}
	e := w.produceIn(exclusive, 0)
	e.dead = true
	w.produceIn(sharedMode, 0)
}

// TestWaitingEndsWithTheTopic: nothing definite is told, so that the client comes again.
func TestWaitingEndsWithTheTopic(t *testing.T) {
	w := newWorld(t)
	w.produceIn(exclusive, 0)
	q := w.wait()
	w.restart()
	if err := wait(t, q.result); !errors.Is(err, txn.ErrNotReady) {
		t.Fatalf("answered %v", err)
	}
}

func TestMaxProducers(t *testing.T) {
	var most atomic.Int64
	most.Store(2)
	w := newWorld(t, func(o *Options) {
		o.Policies = func(topicname.Name) Policies { return Policies{MaxProducers: int(most.Load())} }
	})
	p := w.produceIn(sharedMode, -1)
	w.wait()
	w.refuseIn(waiting, ErrProducerBusy)
	f := w.produceIn(withFencing, 0) // it closes all others
	<-p.disconnected
	f.Close()
	w.produceIn(sharedMode, 0)
	w.produceIn(sharedMode, 0).Close()
	w.produceIn(sharedMode, 0)
	w.refuseIn(sharedMode, ErrProducerBusy)
	most.Store(0)
	w.produceIn(sharedMode, 0)
}

func TestInitialSubscriptionRules(t *testing.T) {
	allow := true
	w := newWorld(t)
	attach := func(initial string) error {
		w.options.AllowAutoSubscriptionCreation = allow
		w.restart()
		_, err := w.tryProduce("a", &pulsarproto.CommandProducer{InitialSubscriptionName: &initial})
		return err
	}
	if err := attach("s"); err != nil {
		t.Fatal(err)
	}
	allow = false
	if err := attach("s"); err != nil {
		t.Errorf("a subscription that exists: %v", err)
	}
	if err := attach("new"); !errors.Is(err, txn.ErrNotAllowed) {
		t.Errorf("a missing one without automatic creation: %v", err)
	}
	if err := attach(""); err != nil {
		t.Errorf("an empty name: %v", err)
	}
}
