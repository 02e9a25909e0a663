package topic

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topic/dedup"
	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// deduplicating turns deduplication on.
func deduplicating(o *Options) {
	o.Policies = func(topicname.Name) Policies { return Policies{Deduplication: true} }
}

// repeat sends and demands the receipt of a duplicate.
func (p *testProducer) repeat(msg cnx.Send) {
	p.t.Helper()
	if at := p.send(msg); at != (ledger.Position{Ledger: none, Entry: none}) {
		p.t.Fatalf("%d of %s is stored again at %v", msg.SequenceID, p.info.Name, at)
	}
}

// store sends and demands that the message is stored.
func (p *testProducer) store(msg cnx.Send) {
	p.t.Helper()
	if at := p.send(msg); at.Ledger == none {
		p.t.Fatalf("%d of %s is taken for a duplicate", msg.SequenceID, p.info.Name)
	}
}

func (p *testProducer) wantLast(last int64) {
	p.t.Helper()
	if p.info.LastSequenceID != last {
		p.t.Fatalf("last_sequence_id %d, want %d", p.info.LastSequenceID, last)
	}
}

// again disconnects the topic's clients and attaches the producer anew.
func (w *world) again(p *testProducer) *testProducer {
	w.t.Helper()
	w.restart()
	return w.produceAs("a", p.info.Name)
}

func batchFrom(lowest, highest uint64, payload string) cnx.Send {
	msg := batchOf(int32(highest-lowest+1), message(lowest, payload))
	msg.HighestSequenceID = highest
	return msg
}

func chunk(sequence uint64, number, of int32, payload string) cnx.Send {
	msg := message(sequence, payload)
	msg.IsChunk = true
	msg.Metadata = &pulsarproto.MessageMetadata{ChunkId: &number, NumChunksFromMsg: &of}
	return msg
}

// TestDeduplication: what is stored already gets the receipt -1:-1, before and behind a restart.
func TestDeduplication(t *testing.T) {
	w := newWorld(t, deduplicating)
	p := w.produceAs("a", "p")
	p.wantLast(-1)
	p.store(message(0, "0"))
	p.repeat(message(0, "0"))
	p.store(message(7, "7")) // gaps are fine
	p.repeat(message(3, "3"))
	p.store(batchFrom(8, 10, "8-10"))
	p.repeat(batchFrom(9, 12, "9-12")) // the lowest id counts
	for i := range int32(3) {
		p.store(chunk(11, i, 3, fmt.Sprint("11.", i)))
	}
	p.store(chunk(11, 0, 3, "11.0 again")) // only the last chunk is tested
	p.repeat(chunk(11, 2, 3, "11.2 again"))
	marker := message(12, "")
	marker.Marker = true
	p.Send(marker)
	if r := p.receipt(); !errors.Is(r.err, txn.ErrNotAllowed) {
		t.Fatalf("marker: %+v", r)
	}
	w.produceAs("a", "q").store(message(0, "of q")) // names are independent
	p = w.again(p)
	p.wantLast(11)
	p.repeat(batchFrom(8, 10, "8-10"))
	p.repeat(message(11, "11"))
	p.store(message(12, "12"))
	w.subscribe("a", "s", earliest).want("0", "7", "8-10", "11.0", "11.1", "11.2", "11.0 again", "of q", "12")
}

// TestDuplicateWaitsForItsOriginal: nothing is called a duplicate before what it repeats is durable, and receipts are in order.
func TestDuplicateWaitsForItsOriginal(t *testing.T) {
	w := newWorld(t, deduplicating)
	p := w.produceAs("a", "p")
	reached, release := make(chan struct{}, 100), make(chan struct{})
	w.kv.set(func(commit func() (*clientv3.TxnResponse, error)) (*clientv3.TxnResponse, error) {
		reached <- struct{}{}
		<-release
		return commit()
	})
	p.Send(message(0, "0"))
	<-reached
	for _, sequence := range []uint64{0, 1, 0, 1, 2} {
		p.Send(message(sequence, fmt.Sprint(sequence)))
	}
	t1 := w.topics.loaded(parse(t, "a").String())
	settled := make(chan struct{})
	t1.ask(func(bool) { close(settled) })
	<-settled
	if len(p.receipts) > 0 {
		t.Fatalf("answered %+v while the first write is in flight", <-p.receipts)
	}
	close(release)
	for i, want := range []struct {
		sequence uint64
		repeat   bool
	}{{0, false}, {0, true}, {1, false}, {0, true}, {1, true}, {2, false}} {
		if r := p.receipt(); r.err != nil || r.sequence != want.sequence || (r.position.Ledger == none) != want.repeat {
			t.Fatalf("receipt %d: %+v, want %+v", i, r, want)
		}
	}
	w.subscribe("a", "s", earliest).want("0", "1", "2")
}

// TestDeduplicationOfFailedWrites holds FC-28: a sequence id counts as stored exactly if it is, whether the store applied the write
// that failed or not, also in transactions.
func TestDeduplicationOfFailedWrites(t *testing.T) {
	for _, applied := range []bool{false, true} {
		w := newWorld(t, deduplicating)
		p := w.produceAs("a", "p")
		p.store(message(6, "6"))
		w.breakWrite(1, applied)
		p.Send(message(7, "7"))
		<-p.disconnected
		p = w.produceAs("a", "p")
		if applied {
			p.wantLast(7)
			p.repeat(message(7, "7"))
		} else {
			p.wantLast(6)
			p.store(message(7, "7"))
		}
		p.store(message(8, "8"))
		p.repeat(message(7, "7"))
		p = w.again(p)
		p.wantLast(8)
		p.repeat(message(8, "8"))

		x, y := w.coord.begin(), w.coord.begin()
		p.store(inTxn(x, message(9, "9 in x")))
		w.end(x, txn.Abort, "a", "")
		p = w.again(p)
		p.wantLast(8)
		p.store(inTxn(y, message(9, "9 in y")))
		p.store(inTxn(y, message(10, "10 in y")))
		w.end(y, txn.Commit, "a", "")
		p.repeat(message(9, "9"))
		p = w.again(p)
		p.wantLast(10)
		p.repeat(message(10, "10"))
		w.subscribe("a", "s", earliest).want("6", "7", "8", "9 in y", "10 in y")
	}
}

// TestSequenceOfOpenTransaction: a message that another open transaction has is neither stored nor called a duplicate, and nothing
// that its producer sends behind it is stored before its fate is known (FC-28).
func TestSequenceOfOpenTransaction(t *testing.T) {
	for _, action := range []txn.Action{txn.Commit, txn.Abort} {
		w := newWorld(t, deduplicating)
		p := w.produceAs("a", "p")
		x, y := w.coord.begin(), w.coord.begin()
		p.store(inTxn(x, message(5, "5 in x")))
		p.repeat(inTxn(x, message(5, "5 in x")))
		p = w.again(p)
		p.wantLast(5)
		p.repeat(inTxn(x, message(5, "5 in x")))
		done := make(chan struct{})
		w.topics.loaded(parse(t, "a").String()).ask(func(bool) { // so that all are in one group
			p.Send(message(5, "5"))
			p.Send(message(6, "6"))
			close(done)
		})
		<-done
		if r := p.receipt(); r.sequence != 5 || !errors.Is(r.err, ErrSequenceUnknown) {
			t.Fatalf("5 outside: %+v", r)
		}
		<-p.disconnected
		p = w.produceAs("a", "p")
		p.Send(inTxn(y, message(4, "4 in y")))
		if r := p.receipt(); !errors.Is(r.err, ErrSequenceUnknown) {
			t.Fatalf("4 in y: %+v", r)
		}
		w.end(x, action, "a", "")
		p = w.produceAs("a", "p")
		c := w.subscribe("a", "s", earliest)
		if action == txn.Commit {
			p.repeat(message(5, "5"))
			c.want("5 in x")
		} else {
			p.store(message(5, "5"))
			c.want("5")
		}
		p.store(message(6, "6"))
		c.want("6")
		c.wantNothing(w, "a")
	}
}

// TestSequenceOfEndingTransaction: a repeat that comes while the transaction ends waits for that.
func TestSequenceOfEndingTransaction(t *testing.T) {
	for _, action := range []txn.Action{txn.Commit, txn.Abort} {
		w := newWorld(t, deduplicating)
		p := w.produceAs("a", "p")
		x := w.coord.begin()
		p.store(inTxn(x, message(5, "5 in x")))
		w.coord.decide(t, x)
		ended := make(chan error, 1)
		topic := w.topics.loaded(parse(t, "a").String())
		topic.ask(func(bool) { // so that both are in one group
			topic.post(func(bool) {
				topic.queue.push(&endItem{topic: topic, id: x, action: action, answer: func(err error) { ended <- err }})
			})
			p.Send(message(5, "5"))
		})
		if err := wait(t, ended); err != nil {
			t.Fatal(err)
		}
		if r := p.receipt(); r.err != nil || (r.position.Ledger == none) != (action == txn.Commit) {
			t.Fatalf("%v: %+v", action, r)
		}
	}
}

// TestRefusedSendEndsItsProducer: when a client sends a message again for its answer, nothing that came behind it is stored before.
func TestRefusedSendEndsItsProducer(t *testing.T) {
	w := newWorld(t, deduplicating)
	p := w.produceAs("a", "p")
	broken := cnx.Send{SequenceID: 1, HighestSequenceID: 1, Refused: cnx.Refuse(pulsarproto.ServerError_ChecksumError, "bad bytes")}
	done := make(chan struct{})
	w.topics.loaded(parse(t, "a").String()).ask(func(bool) {
		p.Send(message(0, "0"))
		p.Send(broken)
		p.Send(message(2, "2"))
		close(done)
	})
	<-done
	if r := p.receipt(); r.err != nil || r.sequence != 0 {
		t.Fatalf("before it: %+v", r)
	}
	if r := p.receipt(); !errors.Is(r.err, broken.Refused) || r.sequence != 1 {
		t.Fatalf("answer %+v", r)
	}
	<-p.disconnected
	p = w.produceAs("a", "p")
	p.wantLast(0)
	p.store(message(1, "1"))
	p.store(message(2, "2"))
	final := cnx.Send{SequenceID: 3, HighestSequenceID: 3, Refused: fmt.Errorf("%w: bad metadata", txn.ErrNotAllowed)}
	p.Send(final) // clients give it up
	p.Send(message(4, "4"))
	if r := p.receipt(); !errors.Is(r.err, final.Refused) {
		t.Fatalf("answer %+v", r)
	}
	if r := p.receipt(); r.err != nil || r.sequence != 4 {
		t.Fatalf("behind it: %+v", r)
	}
	w.subscribe("a", "s", earliest).want("0", "1", "2", "4")
}

// TestDeduplicationIsTurnedOff while the topic is loaded: sequence ids are free, and nothing of them stays stored.
func TestDeduplicationIsTurnedOff(t *testing.T) {
	var on atomic.Bool
	w := newWorld(t, func(o *Options) {
		o.Policies = func(topicname.Name) Policies { return Policies{Deduplication: on.Load()} }
	})
	p := w.produceAs("a", "p")
	p.store(message(5, "off"))
	p.store(message(5, "off again"))
	on.Store(true)
	p.store(message(5, "on"))
	p.repeat(message(5, "on"))
	on.Store(false)
	p.store(message(5, "off"))
	if n := w.keysUnder(w.space("a").DedupPrefix()); n != 0 {
		t.Fatalf("%d pages are left", n)
	}
	on.Store(true)
	p = w.again(p)
	p.wantLast(-1)
	p.store(message(0, "on"))
}

// TestNamesAreForgotten: those that no producer has had for long, and those that are too many.
func TestNamesAreForgotten(t *testing.T) {
	clock := atomic.Int64{}
	start := time.Unix(1_700_000_000, 0)
	w := newWorld(t, deduplicating, func(o *Options) {
		o.Now = func() time.Time { return start.Add(time.Duration(clock.Load()) * time.Minute) }
		o.Dedup = dedup.Limits{Names: 50, Inactive: 10 * time.Minute}
	})
	tick := func(minutes int64) {
		clock.Add(minutes)
		w.topics.loaded(parse(t, "a").String()).postTick()
		w.quiet("a")
	}
	stays, goes := w.produceAs("a", "stays"), w.produceAs("a", "goes")
	stays.store(message(3, "m"))
	goes.store(message(3, "m"))
	goes.Close()
	for range 3 {
		tick(9)
	}
	w.restart()
	goes = w.produceAs("a", "goes")
	goes.wantLast(-1)
	goes.Close()
	w.produceAs("a", "stays").wantLast(3)
	for i := range 100 {
		p := w.produceAs("a", fmt.Sprint("many-", i))
		p.store(message(1, "m"))
		p.Close()
	}
	w.quiet("a")
	w.restart()
	p := w.produceAs("a", "many-0")
	p.wantLast(-1)
	w.produceAs("a", "many-99").wantLast(1)
	names := 0
	w.topics.loaded(parse(t, "a").String()).ask(func(bool) { names = p.Producer.(*producer).topic.dedup.Names() })
	w.quiet("a")
	if names > 50 {
		t.Fatalf("%d names", names)
	}
}

// TestManyProducersAreDeduplicatedInOneTransaction: a commit makes all their ids good in one write.
func TestManyProducersAreDeduplicatedInOneTransaction(t *testing.T) {
	w := newWorld(t, deduplicating, func(o *Options) { o.MaxTxnOps = 40 })
	id := w.coord.begin()
	var names []string
	for i := range 30 {
		p := w.produceAs("a", fmt.Sprint("p", i))
		p.Send(inTxn(id, message(4, "m")))
		r := p.receipt()
		if r.err == nil {
			names = append(names, p.info.Name)
		} else if !errors.Is(r.err, txn.ErrNotAllowed) {
			t.Fatal(r.err)
		}
	}
	if len(names) != 20 {
		t.Fatalf("%d producers in one transaction", len(names))
	}
	w.end(id, txn.Commit, "a", "")
	w.restart()
	for _, name := range names {
		w.produceAs("a", name).repeat(message(4, "m"))
	}
}

// What a closed connection sent is read late, behind the attachment of the producer that takes over. It is not stored behind the
// last sequence id that the new producer was told, or a new message under the next one would be taken for a duplicate.
func TestSendsBehindTheNextProducerAreDropped(t *testing.T) {
	w := newWorld(t, deduplicating)
	p, other := w.produceAs("a", "n"), w.produceAs("a", "other")
	p.send(message(0, "first"))
	written, release := make(chan struct{}, 10), make(chan struct{})
	w.kv.set(func(commit func() (*clientv3.TxnResponse, error)) (*clientv3.TxnResponse, error) {
		written <- struct{}{}
		<-release
		return commit()
	})
	topic := w.topics.loaded(parse(t, "a").String())
	other.Send(message(0, "in flight"))
	<-written
	// Both wait for the next write; the attachment stands before what the old producer sends.
	other.Send(message(1, "with the attachment"))
	attached := make(chan *testProducer)
	go func() { attached <- w.produceAs("a", "n") }()
	w.until(func() bool { return waitingItems[*attachProducer](topic) == 1 }, topic)
	release <- struct{}{}
	<-written
	p.Send(message(1, "late"))
	p.Close()
	close(release)
	next := <-attached
	w.kv.set(nil)
	if next.info.LastSequenceID != 0 {
		t.Fatalf("the last sequence id is told to be %d, want 0", next.info.LastSequenceID)
	}
	next.send(message(1, "new"))
	w.subscribe("a", "s", earliest).wantAny("first", "in flight", "with the attachment", "new")
}

// waitingItems counts the items of a kind in the queue of a topic. It runs on the topic's goroutine.
func waitingItems[T item](topic *Topic) (n int) {
	for _, it := range topic.queue.items[topic.queue.head:] {
		if _, is := it.(T); is {
			n++
		}
	}
	return n
}

// TestForgettingNamesHoldsUpNothing: it waits for no abort, so nothing waits for it.
func TestForgettingNamesHoldsUpNothing(t *testing.T) {
	clock := newClock()
	w := newWorld(t, deduplicating, func(o *Options) {
		o.MaxTxnOps, o.Now, o.Dedup = 24, clock.Now, dedup.Limits{Names: 50, Inactive: 10 * time.Minute}
	})
	old := w.produceAs("a", "old")
	old.send(message(0, "m"))
	old.Close()
	p := w.produceAs("a", "p")
	id := w.coord.begin()
	for i := range 200 {
		p.send(inTxn(id, message(uint64(i), "a")))
	}
	clock.move(time.Hour)
	reached, step := w.stepwise()
	w.coord.decide(t, id)
	ended := make(chan error, 1)
	w.topics.EndTxn(context.Background(), id, w.participant("a", ""), txn.Abort, 0, func(err error) { ended <- err })
	<-reached
	w.topics.loaded(parse(t, "a").String()).postTick()
	w.posted("a")
	p.Send(message(1000, "plain"))
	for range 4 {
		step <- struct{}{}
		<-reached
	}
	if len(ended) > 0 {
		t.Fatal("the abort is done: the test shows nothing")
	}
	select {
	case r := <-p.receipts:
		if r.err != nil {
			t.Fatal(r.err)
		}
	default:
		t.Error("the send waits for the abort")
	}
}
