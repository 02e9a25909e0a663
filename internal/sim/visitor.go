package sim

import (
	"slices"
	"strconv"
	"time"

	"github.com/pulsar-tc/pulsar-tc/internal/history"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// visit is a subscription that one client has to itself.
type visit struct {
	name, topic string
	consumer    *consumer
	acks        []history.Ack
	deleted     bool // or perhaps: nothing is expected of it
}

// visitTopics makes subscriptions, acknowledges there in transactions, cumulatively too, and deletes half of them while one ends,
// until the clients are done.
func (c *client) visitTopics(done <-chan struct{}) {
	w := c.world
	for n := 0; ; n++ {
		v := &visit{name: c.name + " visit " + strconv.Itoa(n)}
		select {
		case <-done:
			return
		default:
		}
		if !c.sleep(time.Duration(w.chance.below(1500, "pause", v.name)) * time.Millisecond) {
			return
		}
		if !w.incident("visit", v.name) {
			continue
		}
		v.topic = w.topics[w.chance.below(len(w.topics)-1, "topic", v.name)]
		c.visit(v, n)
		c.streams.Wait()
		c.hangUp()
	}
}

// mostEnds is how many transactions a visit has at most.
const mostEnds = 3

func (c *client) visit(v *visit, n int) {
	w := c.world
	var err error
	v.consumer, err = c.consume(v.topic, &pulsarproto.CommandSubscribe{
		Topic: &v.topic, Subscription: &v.name, SubType: pulsarproto.CommandSubscribe_Exclusive.Enum(), ConsumerId: new(uint64),
		InitialPosition: pulsarproto.CommandSubscribe_Earliest.Enum(),
	})
	if err != nil {
		return
	}
	for i := range 1 + w.chance.below(mostEnds, "transactions", v.name) {
		c.transact(v, n*mostEnds+i)
	}
	if !v.deleted {
		v.record(w)
	}
}

// transact acknowledges in one transaction and ends it.
func (c *client) transact(v *visit, slot int) {
	w := c.world
	c.openTxn(step{slot: slot})
	id := c.transaction(slot)
	if id == (txn.ID{}) {
		return
	}
	label := v.name + " " + strconv.Itoa(slot)
	for n := range 1 + w.chance.below(2, "acknowledgements", label) {
		if !c.sleep(time.Duration(w.chance.below(100, "acknowledges after", label)) * time.Millisecond) {
			return
		}
		c.ackSome(v, id, label+" ack "+strconv.Itoa(n))
	}
	if w.chance.below(4, "deletes", label) == 0 {
		c.unsubscribe(v, time.Duration(w.chance.below(40, "deletes after", label))*time.Millisecond)
	}
	if c.sleep(time.Duration(w.chance.below(20, "ends after", label)) * time.Millisecond) {
		c.end(id, txn.Action(w.chance.below(4, "action", label)/3), false)
	}
}

// ackSome acknowledges one of the messages that came, or it and all before.
func (c *client) ackSome(v *visit, id txn.ID, label string) {
	w := c.world
	v.consumer.mu.Lock()
	all := slices.Clone(v.consumer.all)
	v.consumer.mu.Unlock()
	if len(all) == 0 {
		return
	}
	last := all[w.chance.below(len(all), "up to", label)]
	kind := pulsarproto.CommandAck_Individual
	if w.chance.below(2, "cumulative", label) == 0 {
		kind = pulsarproto.CommandAck_Cumulative
	}
	command := &pulsarproto.CommandAck{
		ConsumerId: new(uint64), AckType: &kind, RequestId: new(uint64),
		MessageId:     []*pulsarproto.MessageIdData{{LedgerId: &last.ledger, EntryId: &last.entry}},
		TxnidMostBits: &id.Most, TxnidLeastBits: &id.Least,
	}
	_, err := v.consumer.link.call(label, false, func(done func(any, error)) {
		v.consumer.attached.Ack(command, func(err error) { done(nil, err) })
	})
	cumulative := kind == pulsarproto.CommandAck_Cumulative
	for _, m := range all {
		if m == last || cumulative && !last.before(m) {
			v.acks = append(v.acks, history.Ack{
				Topic: v.topic, Subscription: v.name, Key: m.key, Txn: id, InTxn: true, Cumulative: cumulative, Answer: ackAnswer(err),
			})
		}
	}
}

func (m received) before(other received) bool {
	return m.ledger < other.ledger || m.ledger == other.ledger && m.entry < other.entry
}

// unsubscribe has the subscription deleted after a while. Whether it is gone is for others to find out.
func (c *client) unsubscribe(v *visit, after time.Duration) {
	w := c.world
	v.deleted = true
	label := "delete " + v.name
	to := w.ownerOf(v.topic, w.unique(label))
	if to == nil {
		return
	}
	l := c.link(to)
	c.streams.Go(func() {
		if !c.sleep(after) {
			return
		}
		if _, err := l.call(label, false, func(done func(any, error)) {
			to.tasks.Go(func() { done(nil, to.topics.DeleteSubscription(l.ctx, parsed(v.topic), v.name, true)) })
		}); err == nil {
			w.counted("subscription deleted")
		}
	})
}

// record tells the history what is to be expected of the subscription in the end.
func (v *visit) record(w *world) {
	w.mu.Lock()
	w.visits = append(w.visits, v)
	w.mu.Unlock()
	for _, a := range v.acks {
		w.history.Acked(a)
	}
}

// attachVisits attaches a consumer to each subscription that was left.
func (c *client) attachVisits() []*consumer {
	var all []*consumer
	for _, v := range c.world.visits {
		all = append(all, c.attachFinally(v.topic, &pulsarproto.CommandSubscribe{
			Topic: &v.topic, Subscription: &v.name, SubType: pulsarproto.CommandSubscribe_Exclusive.Enum(), ConsumerId: new(uint64),
		}))
	}
	return all
}

// recordVisits tells the history what those consumers got.
func (w *world) recordVisits(consumers []*consumer) {
	for i, v := range w.visits {
		w.history.Left(v.topic, v.name, consumers[i].keys())
	}
}
