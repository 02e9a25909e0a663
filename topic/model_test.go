package topic

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"pgregory.net/rapid"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// modelMessage is one message as an obviously right topic would have it.
type modelMessage struct {
	payload  string
	position ledger.Position
	in       *modelTxn // nil: plain
	acked    bool
	heldBy   *modelTxn
}

type modelTxn struct {
	id        txn.ID
	ended     bool
	committed bool
}

func (m *modelMessage) aborted() bool { return m.in != nil && m.in.ended && !m.in.committed }

// modelTopic is a list.
type modelTopic []*modelMessage

// visible returns what may be read: nothing behind the first message of an open transaction, and nothing aborted.
func (m modelTopic) visible() modelTopic {
	var out modelTopic
	for _, msg := range m {
		if msg.in != nil && !msg.in.ended {
			break
		}
		if !msg.aborted() {
			out = append(out, msg)
		}
	}
	return out
}

func (m modelTopic) payloads(keep func(*modelMessage) bool) []string {
	out := []string{}
	for _, msg := range m {
		if keep(msg) {
			out = append(out, msg.payload)
		}
	}
	return out
}

// TestTopicAgainstList sends, acknowledges and ends at random, plain and in transactions, breaks writes before and after they
// are applied, restarts, and compares what a reader and a subscription are given with a list.
func TestTopicAgainstList(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t, func(o *Options) {
			o.MaxTxnOps = rapid.SampledFrom([]int{16, 128}).Draw(rt, "ops")
			o.CacheBytes = rapid.SampledFrom([]int64{1, 1 << 20}).Draw(rt, "cache")
		})
		defer w.close()
		r := &modelRun{rt: rt, w: w}
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
		r.p = nil
		r.compare()
		if n := w.keysUnder(w.space("a").TxnPrefix()); n != 0 {
			rt.Fatalf("%d marks are left", n)
		}
	})
}

type modelRun struct {
	rt       *rapid.T
	w        *world
	p        *testProducer
	c        *testConsumer
	model    modelTopic
	open     []*modelTxn
	sequence uint64
}

func (r *modelRun) step() {
	pick := func(what string, n int) int { return rapid.IntRange(0, n-1).Draw(r.rt, what) }
	switch pick("step", 12) {
	case 0:
		r.open = append(r.open, &modelTxn{id: r.w.coord.begin()})
	case 1, 2:
		r.send(nil)
	case 3, 4, 5:
		if len(r.open) > 0 {
			r.send(r.open[pick("in", len(r.open))])
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
			r.p = nil
			r.subscribe()
		} else {
			r.compare()
		}
	case 11:
		r.breakNext(rapid.Bool().Draw(r.rt, "applied"))
	}
}

// breakNext makes the next write of a topic end in an error.
func (r *modelRun) breakNext(applied bool) {
	r.w.kv.set(func(commit func() (*clientv3.TxnResponse, error)) (*clientv3.TxnResponse, error) {
		r.w.kv.set(nil)
		if applied {
			if _, err := commit(); err != nil {
				return nil, err
			}
		}
		return nil, errInjected
	})
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

func (r *modelRun) send(in *modelTxn) {
	if in == nil {
		r.w.kv.set(nil) // without deduplication a plain message may be there twice
	}
	m := &modelMessage{payload: fmt.Sprint("m", r.sequence), in: in}
	msg := message(r.sequence, m.payload)
	if in != nil {
		msg = inTxn(in.id, msg)
	}
	r.sequence++
	for {
		if r.p == nil {
			name := "p"
			p, err := r.w.tryProduce("a", &pulsarproto.CommandProducer{ProducerName: &name})
			if err != nil {
				r.again(err)
				continue
			}
			r.p = p
		}
		r.p.Send(msg)
		select {
		case got := <-r.p.receipts:
			if got.err != nil {
				r.rt.Fatal(got.err)
			}
			m.position = got.position
			r.model = append(r.model, m)
			return
		case <-r.p.disconnected:
			r.p = nil
		case <-time.After(patience):
			r.rt.Fatal("no receipt")
		}
	}
}

func (r *modelRun) end(x *modelTxn, action txn.Action) {
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
	x.ended, x.committed = true, action == txn.Commit
	for _, m := range r.model {
		if m.heldBy == x {
			m.heldBy = nil
			m.acked = m.acked || x.committed
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
