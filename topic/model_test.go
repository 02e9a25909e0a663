package topic

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topic/dedup"
	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// TestTopicAgainstList sends, acknowledges and ends at random, plain and in transactions, which the coordinator drives or settles, by several producers that fence each
// other, with deduplication and repeats or without, breaks writes before and after they are applied, restarts, and compares what a
// reader and a subscription are given with a list.
func TestTopicAgainstList(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t, func(o *Options) {
			o.MaxTxnOps = rapid.SampledFrom([]int{16, 128}).Draw(rt, "ops")
			o.CacheBytes = rapid.SampledFrom([]int64{1, 1 << 20}).Draw(rt, "cache")
			if rapid.Bool().Draw(rt, "deduplication") {
				deduplicating(o)
			}
		})
		defer w.close()
		r := &modelRun{rt: rt, w: w, epoch: -1, producers: []*modelProducer{{name: "p"}, {name: "q"}}}
		r.dedup = w.options.Policies != nil
		r.subscribe()
		for range rapid.IntRange(5, 40).Draw(rt, "steps") {
			r.step()
		}
		for _, x := range r.open {
			r.end(x, txn.Action(rapid.IntRange(0, 1).Draw(rt, "last action")))
		}
		r.w.kv.set(nil)
		r.compare()
		w.restart()
		r.compare()
		if n := w.keysUnder(w.space("a").TxnPrefix()); n != 0 {
			rt.Fatalf("%d marks are left", n)
		}
		eventually(w.t, "no acknowledgement is pending", func() bool { return w.pendingKeys("a") == 0 })
	})
}

type modelRun struct {
	rt        *rapid.T
	w         *world
	dedup     bool
	producers []*modelProducer
	c         *testConsumer
	model     modelTopic
	open      []*modelTxn
	epoch     int64 // the last that was answered
	payloads  int
}

type modelProducer struct {
	name string
	p    *testProducer // nil: it has to attach
	next uint64        // sequence id
}

func (r *modelRun) step() {
	pick := func(what string, n int) int { return rapid.IntRange(0, n-1).Draw(r.rt, what) }
	producer := r.producers[pick("producer", len(r.producers))]
	switch pick("step", 14) {
	case 0:
		r.open = append(r.open, &modelTxn{id: r.w.coord.begin()})
	case 1, 2:
		r.send(producer, producer.next, nil)
	case 3, 4, 5:
		if len(r.open) > 0 {
			r.send(producer, producer.next, r.open[pick("in", len(r.open))])
		}
	case 6:
		if len(r.open) > 0 {
			i := pick("which", len(r.open))
			r.end(r.open[i], txn.Action(pick("action", 2)))
			r.open = slices.Delete(r.open, i, i+1)
		}
	case 7, 8:
		if visible := r.model.visible(); len(visible) > 0 {
			r.ack(visible[pick("message", len(visible))], nil)
		}
	case 9:
		if visible := r.model.visible(); len(visible) > 0 && len(r.open) > 0 {
			r.ack(visible[pick("message", len(visible))], r.open[pick("in", len(r.open))])
		}
	case 10:
		if rapid.Bool().Draw(r.rt, "restart") {
			r.w.restart()
			r.subscribe()
		} else {
			r.compare()
		}
	case 11:
		r.w.breakWrite(1, rapid.Bool().Draw(r.rt, "applied"))
	case 12:
		if r.dedup && producer.next > 0 {
			in := append([]*modelTxn{nil}, r.open...)
			r.send(producer, uint64(pick("old sequence id", int(producer.next))), in[pick("in", len(in))])
		}
	case 13:
		r.fence()
	}
}

func (r *modelRun) subscribe() {
	for {
		c, err := r.w.trySubscribe("a", "s", earliest, shared)
		if err == nil {
			r.c = c
			c.Flow(10000)
			return
		}
		r.again(err)
	}
}

// again fails unless err is one after which a client comes again.
func (r *modelRun) again(err error) {
	if !errors.Is(err, ErrPersistence) && !errors.Is(err, txn.ErrNotReady) {
		r.rt.Fatal(err)
	}
}

// send sends a message, or a batch, until it is answered.
func (r *modelRun) send(producer *modelProducer, sequence uint64, in *modelTxn) {
	if in == nil && !r.dedup {
		r.w.kv.set(nil) // without deduplication a plain message may be there twice
	}
	highest := sequence + rapid.SampledFrom([]uint64{0, 0, 2}).Draw(r.rt, "batch")
	m := &modelMessage{payload: fmt.Sprint("m", r.payloads), producer: producer.name, highest: highest, in: in}
	r.payloads++
	producer.next = max(producer.next, highest+1)
	want := dedup.Fresh
	if r.dedup {
		want = r.model.judge(producer.name, sequence, in)
	}
	msg := batchFrom(sequence, highest, m.payload)
	if in != nil {
		msg = inTxn(in.id, msg)
	}
	for {
		r.attach(producer, m)
		producer.p.Send(msg)
		select {
		case got := <-producer.p.receipts:
			r.answered(producer, m, want, got)
			return
		case <-producer.p.disconnected:
			producer.p = nil
		case <-time.After(patience):
			r.rt.Fatal("no receipt")
		}
	}
}

func (r *modelRun) answered(producer *modelProducer, m *modelMessage, want dedup.Verdict, got receipt) {
	switch {
	case want == dedup.Unknown:
		if !errors.Is(got.err, ErrSequenceUnknown) {
			r.rt.Fatalf("%s of unknown fate: %+v", m.payload, got)
		}
		<-producer.p.disconnected
		producer.p = nil
	case got.err != nil:
		r.rt.Fatal(got.err)
	case want == dedup.Fresh: // -1:-1 if the first try was stored
		m.position = got.position
		r.model = append(r.model, m)
	case got.position.Ledger != none:
		r.rt.Fatalf("duplicate %s is stored at %v", m.payload, got.position)
	}
}

// attach attaches a producer that is not attached. pending may be stored or not.
func (r *modelRun) attach(producer *modelProducer, pending *modelMessage) {
	for producer.p == nil {
		p, err := r.w.tryProduce("a", &pulsarproto.CommandProducer{ProducerName: &producer.name})
		if err != nil {
			r.again(err)
			continue
		}
		producer.p = p
		last := r.model.last(producer.name)
		if got := p.info.LastSequenceID; r.dedup && got != last && got != max(last, int64(pending.highest)) {
			r.rt.Fatalf("%s attached with last_sequence_id %d, want %d", producer.name, got, last)
		}
		if p.info.HasTopicEpoch != (r.epoch >= 0) || r.epoch >= 0 && int64(p.info.TopicEpoch) < r.epoch {
			r.rt.Fatalf("%s attached under epoch %+v, the last was %d", producer.name, p.info, r.epoch)
		}
	}
}

// fence attaches a producer that closes all others; what they send then is nowhere, and they do not come back under an old epoch.
func (r *modelRun) fence() {
	var f *testProducer
	for f == nil {
		p, err := r.w.tryProduce("a", producerOf(withFencing))
		if err != nil {
			r.again(err)
			continue
		}
		f = p
	}
	if int64(f.info.TopicEpoch) <= r.epoch {
		r.rt.Fatalf("epoch %d after %d", f.info.TopicEpoch, r.epoch)
	}
	r.epoch = int64(f.info.TopicEpoch)
	for _, producer := range r.producers {
		if producer.p != nil {
			<-producer.p.disconnected
			producer.p.Send(message(1<<40, "of a fenced producer"))
			producer.p = nil
		}
	}
	if _, err := r.w.tryProduce("a", producerOf(sharedMode)); !errors.Is(err, ErrProducerBusy) {
		r.rt.Fatalf("beside an exclusive producer: %v", err)
	}
	if r.epoch > 0 {
		if _, err := r.w.tryProduce("a", producerOf(exclusive, uint64(r.epoch-1))); !errors.Is(err, ErrProducerFenced) {
			r.rt.Fatalf("under an old epoch: %v", err)
		}
	}
	f.Close()
}

func (r *modelRun) end(x *modelTxn, action txn.Action) {
	settled := action == txn.Commit && rapid.Bool().Draw(r.rt, "settled") &&
		r.w.trySettle(x.id, r.w.participant("a", ""), r.w.participant("a", "s"))
	if !settled {
		r.drive(x, action)
	}
	x.ended, x.committed = true, action == txn.Commit
	for _, m := range r.model {
		if m.heldBy == x {
			m.heldBy = nil
			m.acked = m.acked || x.committed
		}
	}
}

func (r *modelRun) drive(x *modelTxn, action txn.Action) {
	r.w.coord.decide(r.w.t, x.id)
	for _, subscription := range []string{"", "s"} {
		for {
			err := r.w.tryEnd(x.id, action, "a", subscription)
			if err == nil {
				break
			}
			r.again(err)
		}
	}
}

func (r *modelRun) ack(m *modelMessage, in *modelTxn) {
	at := r.find(m)
	conflict := in != nil && (m.acked || m.heldBy != nil)
	cmd := ackOf(pulsarproto.CommandAck_Individual, at)
	if in != nil {
		ackInTxn(in.id, cmd)
	}
	for try := 0; ; try++ {
		err := r.c.tryAck(cmd)
		switch {
		case err == nil && conflict:
			r.rt.Fatalf("acknowledgement of %s in %v: success, want a conflict", m.payload, in.id)
		case errors.Is(err, txn.ErrConflict) && !conflict && try == 0:
			r.rt.Fatalf("acknowledgement of %s: %v", m.payload, err)
		case err == nil, errors.Is(err, txn.ErrConflict):
			if conflict {
				return
			}
			if in != nil {
				m.heldBy = in
			} else {
				m.acked = true
			}
			return
		default:
			r.again(err)
			r.subscribe()
		}
	}
}

// find returns where a message is. A receipt of a repeat does not tell.
func (r *modelRun) find(m *modelMessage) ledger.Position {
	if m.position.Ledger != none {
		return m.position
	}
	reader := r.read()
	for _, d := range reader {
		if d.payload == m.payload {
			m.position = d.position
		}
	}
	return m.position
}

type read struct {
	payload  string
	position ledger.Position
}

// read returns what a reader from the earliest message is given.
func (r *modelRun) read() []read {
	for {
		c, err := r.w.trySubscribe("a", "reader", nonDurable, earliest)
		if err != nil {
			r.again(err)
			continue
		}
		c.Flow(100000)
		r.w.quiet("a")
		var out []read
		for len(c.messages) > 0 {
			d := c.next()
			out = append(out, read{string(d.Payload), position(d)})
		}
		c.Close()
		return out
	}
}

func (r *modelRun) compare() {
	r.w.kv.set(nil)
	visible := r.model.visible()
	got := []string{}
	for _, d := range r.read() {
		got = append(got, d.payload)
	}
	if want := visible.payloads(func(*modelMessage) bool { return true }); !slices.Equal(got, want) {
		r.rt.Fatalf("a reader is given %q, want %q", got, want)
	}
	// All consumers of the subscription go, so that whatever is due is delivered to a new one.
	r.w.dropConsumers("a", "s")
	r.subscribe()
	r.w.quiet("a")
	got = []string{}
	for len(r.c.messages) > 0 {
		got = append(got, string(r.c.next().Payload))
	}
	slices.Sort(got)
	want := visible.payloads(func(m *modelMessage) bool { return !m.acked && m.heldBy == nil })
	slices.Sort(want)
	if !slices.Equal(got, want) {
		r.rt.Fatalf("the subscription is given %q, want %q", got, want)
	}
}

// dropConsumers disconnects all consumers of a subscription.
func (w *world) dropConsumers(name, subscription string) {
	t := w.topics.loaded(parse(w.t, name).String())
	if t == nil {
		return
	}
	done := make(chan struct{})
	t.ask(func(alive bool) {
		if s := t.subscriptions[subscription]; alive && s != nil {
			s.disconnect(nil)
		}
		close(done)
	})
	<-done
}
