package topic

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

func TestReader(t *testing.T) {
	w := newWorld(t)
	at, _ := sendMany(w.produce("a"), 4)
	r := w.subscribe("a", "r1", nonDurable, startAt(at[1]))
	r.want("m1", "m2", "m3")
	inBatch := at[1]
	r2 := w.subscribe("a", "r2", nonDurable, startAt(inBatch), func(cmd *pulsarproto.CommandSubscribe) { cmd.StartMessageId.BatchIndex = ptr(int32(0)) })
	r2.want("m1", "m2", "m3")
	w.subscribe("a", "r3", nonDurable, startAt(ledger.Position{Ledger: math.MaxUint64, Entry: math.MaxUint64})).want("m0", "m1", "m2", "m3")
	latest := w.subscribe("a", "r4", nonDurable, startAt(ledger.Position{Ledger: math.MaxInt64, Entry: math.MaxInt64}))
	latest.wantNothing(w, "a")
	r.Close()
	w.subscribe("a", "r1", nonDurable, startAt(at[2])).want("m2", "m3")
	if n := w.keysUnder(w.space("a").SubscriptionsPrefix()); n != 0 {
		t.Fatalf("%d keys of readers are stored", n)
	}
	latest.wantNothing(w, "a")
}

// TestLastMessageID holds FC-20 and FC-21, also after a restart, where nothing is in memory.
func TestLastMessageID(t *testing.T) {
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprint("restart=", restart), func(t *testing.T) {
			w := newWorld(t)
			check := func(name string, want ledger.Position, batchIndex int32) {
				t.Helper()
				if restart {
					w.restart()
				}
				c := w.subscribe(name, "s", nonDurable)
				defer c.Close()
				if got, index := c.lastMessageID(); got != want || index != batchIndex {
					t.Fatalf("last message of %s: %v index %d, want %v index %d", name, got, index, want, batchIndex)
				}
			}
			nothing := ledger.Position{Ledger: none, Entry: none}
			w.produce("empty")
			check("empty", nothing, -1)
			id := w.coord.begin()
			w.produce("aborted").send(inTxn(id, message(0, "a")))
			check("aborted", nothing, -1)
			w.end(id, txn.Abort, "aborted", "")
			check("aborted", nothing, -1)

			m1 := w.produce("mixed").send(message(0, "m1"))
			check("mixed", m1, -1)
			for _, action := range []txn.Action{txn.Commit, txn.Abort} {
				id := w.coord.begin()
				p := w.produce("mixed")
				m2 := p.send(inTxn(id, message(1, "m2")))
				p.send(inTxn(id, message(2, "m3")))
				check("mixed", m1, -1)
				p = w.produce("mixed")
				plain := p.send(message(3, "plain"))
				check("mixed", m1, -1)
				w.end(id, action, "mixed", "")
				check("mixed", plain, -1)
				m1 = plain
				_ = m2
			}
			id = w.coord.begin()
			p := w.produce("mixed")
			for i := range 40 {
				p.send(inTxn(id, message(uint64(i), "a")))
			}
			w.end(id, txn.Abort, "mixed", "")
			check("mixed", m1, -1)
			batch := w.produce("mixed").send(batchOf(3, message(0, "b")))
			check("mixed", batch, 2)
		})
	}
}

func (c *testConsumer) seek(cmd *pulsarproto.CommandSeek) {
	c.t.Helper()
	done := make(chan error, 1)
	c.Seek(cmd, func(err error) {
		select {
		case <-c.disconnected:
		default:
			err = errors.Join(err, errors.New("answered before the consumer was disconnected"))
		}
		done <- err
	})
	if err := wait(c.t, done); err != nil {
		c.t.Fatal(err)
	}
}

func published(at uint64, msg cnx.Send) cnx.Send {
	msg.Metadata = &pulsarproto.MessageMetadata{PublishTime: &at}
	return msg
}

func TestSeek(t *testing.T) {
	w := newWorld(t)
	var at []ledger.Position
	for load := range 2 {
		p := w.produce("a")
		for i := range 10 {
			n := 10*load + i
			at = append(at, p.send(published(uint64(1000+n), message(uint64(i), fmt.Sprint("m", n)))))
		}
		w.restart()
	}
	all := make([]string, 20)
	for i := range all {
		all[i] = fmt.Sprint("m", i)
	}
	c := w.subscribe("a", "s", earliest)
	c.want(all...)
	pending := w.coord.begin()
	if err := c.ackIn(pending, at[4]); err != nil {
		t.Fatal(err)
	}
	c.ack(at[:3]...)
	again := func(cmd *pulsarproto.CommandSeek) {
		t.Helper()
		c.seek(cmd)
		c = w.subscribe("a", "s")
	}
	again(&pulsarproto.CommandSeek{MessageId: idOf(at[1])})
	c.want("m1", "m2", "m3", "m5") // what is pending stays hidden
	w.restart()
	c = w.subscribe("a", "s")
	c.want("m1", "m2", "m3", "m5")
	again(&pulsarproto.CommandSeek{MessagePublishTime: ptr(uint64(1013))})
	c.want(all[13:]...)
	again(&pulsarproto.CommandSeek{MessagePublishTime: ptr(uint64(1007))})
	c.want(all[7:]...)
	again(&pulsarproto.CommandSeek{MessagePublishTime: ptr(uint64(5000))})
	c.wantNothing(w, "a")
	again(&pulsarproto.CommandSeek{MessageId: idOf(ledger.Position{Ledger: math.MaxUint64, Entry: math.MaxUint64})})
	c.want("m0", "m1", "m2", "m3", "m5")
	again(&pulsarproto.CommandSeek{MessageId: idOf(ledger.Position{Ledger: math.MaxInt64, Entry: math.MaxInt64})})
	c.wantNothing(w, "a")
	again(&pulsarproto.CommandSeek{MessageId: idOf(at[3])})
	c.want("m3", "m5")
	w.end(pending, txn.Commit, "a", "s")
	again(&pulsarproto.CommandSeek{MessageId: idOf(at[3])})
	c.want("m3", "m4", "m5") // a commit before the seek does not count behind it
	done := make(chan error, 1)
	c.Seek(&pulsarproto.CommandSeek{}, func(err error) { done <- err })
	if err := wait(t, done); !errors.Is(err, ErrMetadata) {
		t.Fatalf("seek to nowhere: %v", err)
	}
	r := w.subscribe("a", "reader", nonDurable)
	r.seek(&pulsarproto.CommandSeek{MessageId: idOf(at[18])})
	w.subscribe("a", "reader", nonDurable).want("m18", "m19")
}

// gateKV holds reads back while it is shut.
type gateKV struct {
	clientv3.KV
	mu   sync.Mutex
	shut chan struct{} // nil: open
}

func (g *gateKV) Get(ctx context.Context, key string, options ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	g.mu.Lock()
	shut := g.shut
	g.mu.Unlock()
	if shut != nil {
		<-shut
	}
	return g.KV.Get(ctx, key, options...)
}

func (g *gateKV) set(shut chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = shut
}

// close holds every Get until open is called.
func (g *gateKV) close() (open func()) {
	shut := make(chan struct{})
	g.set(shut)
	return sync.OnceFunc(func() {
		g.set(nil)
		close(shut)
	})
}

// TestConsumerComesBackBeforeTheSeekIsDone: it is given nothing from where the subscription was before.
func TestConsumerComesBackBeforeTheSeekIsDone(t *testing.T) {
	gate := &gateKV{KV: storeClient.KV}
	w := newWorld(t, func(o *Options) { o.KV = gate })
	p := w.produce("a")
	for i := range 4 {
		p.send(published(uint64(1000+i), message(uint64(i), fmt.Sprint("m", i))))
	}
	c := w.subscribe("a", "s", earliest)
	c.want("m0", "m1", "m2", "m3")
	open := gate.close()
	defer open()
	done := make(chan error, 1)
	c.Seek(&pulsarproto.CommandSeek{MessagePublishTime: ptr(uint64(1002))}, func(err error) { done <- err })
	<-c.disconnected
	c = w.subscribe("a", "s")
	c.wantNothing(w, "a")
	open()
	if err := wait(t, done); err != nil {
		t.Fatal(err)
	}
	c.want("m2", "m3")
}

func TestUnsubscribe(t *testing.T) {
	w := newWorld(t)
	at, _ := sendMany(w.produce("a"), 3)
	c := w.subscribe("a", "s", earliest, shared)
	c.want("m0", "m1", "m2")
	id := w.coord.begin()
	if err := c.ackIn(id, at[0]); err != nil {
		t.Fatal(err)
	}
	other := w.subscribe("a", "s", shared)
	done := make(chan error, 1)
	c.Unsubscribe(false, func(err error) { done <- err })
	if err := wait(t, done); err == nil {
		t.Fatal("unsubscribed beside another consumer")
	}
	other.Close()
	c.Unsubscribe(false, func(err error) { done <- err })
	if err := wait(t, done); err != nil {
		t.Fatal(err)
	}
	if n := w.keysUnder(w.space("a").SubscriptionsPrefix()); n != 0 {
		t.Fatalf("%d keys are left", n)
	}
	w.end(id, txn.Commit, "a", "s")
	w.subscribe("a", "s", earliest).want("m0", "m1", "m2")
}

// TestSeekIntoABatch: the indexes before the one that a seek names are not given, also behind a load.
func TestSeekIntoABatch(t *testing.T) {
	w := newWorld(t)
	p := w.produce("a")
	at := p.send(batchOf(3, message(0, "batch")))
	p.send(message(3, "m"))
	c := w.subscribe("a", "s", earliest)
	c.want("batch", "m")
	to := idOf(at)
	to.AckSet = []int64{4}
	c.seek(&pulsarproto.CommandSeek{MessageId: to})
	for range 2 {
		c = w.subscribe("a", "s")
		if d := c.want("batch")[0]; len(d.AckSet) != 1 || d.AckSet[0] != 4 {
			t.Fatalf("given with ack_set %b, want the last", d.AckSet)
		}
		c.want("m")
		w.restart()
	}
}

// TestSeekIntoWhatCannotBeRead: the ack_set of a seek counts for the batch that it names alone, not for the nearest that can be read.
func TestSeekIntoWhatCannotBeRead(t *testing.T) {
	w := newWorld(t, trims)
	p := w.produce("a")
	gone := p.send(batchOf(2, message(0, "gone")))
	c := w.subscribe("a", "s", earliest)
	c.want("gone")
	p.send(batchOf(2, message(2, "first")))
	c.want("first")
	c.ack(gone)
	w.trim("a")
	id := w.coord.begin()
	p.send(inTxn(id, batchOf(2, message(4, "open"))))
	held := p.send(batchOf(2, message(6, "held")))
	seek := func(to ledger.Position) {
		t.Helper()
		named := idOf(to)
		named.AckSet = []int64{2}
		c.seek(&pulsarproto.CommandSeek{MessageId: named})
		c = w.subscribe("a", "s")
	}
	seek(gone)
	if d := c.want("first")[0]; d.AckSet != nil {
		t.Errorf("behind a seek to what is trimmed: ack_set %b", d.AckSet)
	}
	seek(held)
	w.end(id, txn.Commit, "a", "")
	if d := c.want("open")[0]; d.AckSet != nil {
		t.Errorf("behind a seek behind an open transaction: ack_set %b", d.AckSet)
	}
	c.want("held")
}

// TestResetCursorBehindWhatIsTrimmed: nothing that is there is left out.
func TestResetCursorBehindWhatIsTrimmed(t *testing.T) {
	w := newWorld(t, trims)
	p := w.produce("a")
	gone := p.send(message(0, "gone"))
	c := w.subscribe("a", "s", earliest)
	p.send(message(1, "first"))
	c.want("gone", "first")
	c.ack(gone)
	w.trim("a")
	if err := w.topics.ResetCursor(context.Background(), parse(t, "a"), "s", idOf(gone), true); err != nil {
		t.Fatal(err)
	}
	w.subscribe("a", "s").want("first")
}

// TestSubscribeBehindUnsubscribe: who subscribes while the subscription is being deleted gets a new one.
func TestSubscribeBehindUnsubscribe(t *testing.T) {
	w := newWorld(t)
	p := w.produce("a")
	c := w.subscribe("a", "s")
	release := w.hold()
	p.Send(message(0, "m"))
	w.posted("a")
	gone, subscribed := make(chan error, 1), make(chan error, 1)
	c.Unsubscribe(false, func(err error) { gone <- err })
	w.posted("a")
	topic := w.topics.loaded(parse(t, "a").String())
	go func() {
		_, err := w.trySubscribe("a", "s")
		subscribed <- err
	}()
	eventually(t, "it waits", func() bool {
		waiting := make(chan int, 1)
		topic.ask(func(bool) { waiting <- len(topic.queue.items) - topic.queue.head })
		return <-waiting == 2
	})
	release()
	if err := errors.Join(wait(t, gone), wait(t, subscribed)); err != nil {
		t.Fatal(err)
	}
}

// TestSeekOvertakesAnAcknowledgement: an acknowledgement that came before a seek, and has to read the size of its batch, takes
// nothing from what the seek gives again.
func TestSeekOvertakesAnAcknowledgement(t *testing.T) {
	gate := &gateKV{KV: storeClient.KV}
	w := newWorld(t, func(o *Options) { o.KV = gate })
	at := w.produce("a").send(batchOf(2, message(0, "batch")))
	w.subscribe("a", "s", earliest).Close()
	w.restart()
	c, err := w.trySubscribe("a", "s")
	if err != nil {
		t.Fatal(err)
	}
	open := gate.close()
	defer open()
	acked := make(chan error, 1)
	c.Ack(ackSetOf(at), func(err error) { acked <- err })
	c.seek(&pulsarproto.CommandSeek{MessageId: idOf(at)})
	open()
	if err := wait(t, acked); err != nil {
		t.Fatal(err)
	}
	if d := w.subscribe("a", "s").want("batch")[0]; d.AckSet != nil {
		t.Fatalf("given again with ack_set %b, want all of it", d.AckSet)
	}
}

// TestTwoSeeksAtOnce: behind the first that is done nothing is given from a place that the other one leaves.
func TestTwoSeeksAtOnce(t *testing.T) {
	gate := &gateKV{KV: storeClient.KV}
	w := newWorld(t, func(o *Options) { o.KV = gate })
	p := w.produce("a")
	var at []ledger.Position
	for i := range 4 {
		at = append(at, p.send(published(uint64(1000+i), message(uint64(i), fmt.Sprint("m", i)))))
	}
	c := w.subscribe("a", "s", shared, earliest)
	c.want("m0", "m1", "m2", "m3")
	open := gate.close()
	defer open()
	done := make(chan error, 1)
	c.Seek(&pulsarproto.CommandSeek{MessagePublishTime: ptr(uint64(1002))}, func(err error) { done <- err })
	<-c.disconnected
	w.subscribe("a", "s", shared).seek(&pulsarproto.CommandSeek{MessageId: idOf(at[1])})
	c = w.subscribe("a", "s", shared)
	c.wantNothing(w, "a")
	open()
	if err := wait(t, done); err != nil {
		t.Fatal(err)
	}
	c.want("m2", "m3")
	c.wantNothing(w, "a")
}

// TestRollBackOfASharedSubscription: who subscribes with a time to start from is alone when the cursor goes back: what others had
// is not given out twice, and they come again.
func TestRollBackOfASharedSubscription(t *testing.T) {
	for _, kind := range []subscribeOption{shared, ofType(pulsarproto.CommandSubscribe_Key_Shared)} {
		w := newWorld(t)
		p := w.produce("a")
		now := uint64(time.Now().UnixMilli())
		at := p.send(published(now, message(0, "m0")))
		p.send(published(now, message(1, "m1")))
		old := w.subscribe("a", "s", kind, earliest)
		old.want("m0", "m1")
		old.ack(at)
		c := w.subscribe("a", "s", kind, func(cmd *pulsarproto.CommandSubscribe) { cmd.StartMessageRollbackDurationSec = ptr(uint64(3600)) })
		select {
		case <-old.disconnected:
		default:
			t.Fatal("another consumer is there, with what it had")
		}
		c.want("m0", "m1")
		w.subscribe("a", "s", kind).wantNothing(w, "a")
	}
}

// TestUnsubscribeBehindSubscribe: a subscription is not deleted under a consumer whose SUBSCRIBE came first.
func TestUnsubscribeBehindSubscribe(t *testing.T) {
	for what, delete := range map[string]func(*world, *testConsumer, chan<- error){
		"by another consumer": func(w *world, c *testConsumer, done chan<- error) {
			c.Unsubscribe(false, func(err error) { done <- err })
		},
		"by an administrator": func(w *world, c *testConsumer, done chan<- error) {
			c.Close()
			name := parse(t, "a")
			go func() { done <- w.topics.DeleteSubscription(context.Background(), name, "s", false) }()
		},
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t)
			p := w.produce("a")
			c := w.subscribe("a", "s", shared)
			release := w.hold()
			p.Send(message(0, "m"))
			w.posted("a")
			subscribed, deleted := make(chan *testConsumer, 1), make(chan error, 1)
			go func() {
				other, err := w.trySubscribe("a", "s", shared)
				if err != nil {
					t.Error(err)
				}
				subscribed <- other
			}()
			w.waitForItems("a", 1)
			delete(w, c, deleted)
			w.waitForItems("a", 2)
			release()
			if err := wait(t, deleted); !errors.Is(err, errConnected) && !errors.Is(err, ErrSubscriptionBusy) {
				t.Errorf("deleted: %v", err)
			}
			c.Close()
			other := <-subscribed
			other.Flow(1)
			other.want("m")
		})
	}
}
