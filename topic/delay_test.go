package topic

import (
	"fmt"
	"testing"
	"time"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

func delays(topicname.Name) Policies { return Policies{DelayedDelivery: true} }

// sendAt sends a message that is due at a time.
func (p *testProducer) sendAt(at time.Time, text string) {
	p.t.Helper()
	msg := message(0, "")
	msg.Payload = payloadOf(p.t, &pulsarproto.MessageMetadata{DeliverAtTime: ptr(at.UnixMilli()), PartitionKey: ptr("k")}, text)
	p.send(msg)
}

// TestDelayedDelivery: on Shared and Key_Shared a message comes when it is due, of one time in the order of the log; what is
// not delayed goes before it. It holds over a restart, and a redelivery waits no more.
func TestDelayedDelivery(t *testing.T) {
	for _, kind := range []subscribeOption{shared, byKey} {
		now := newClock()
		w := newWorld(t, func(o *Options) { o.Policies, o.Now = delays, now.Now })
		p := w.produce("a")
		c := w.subscribe("a", "s", kind)
		start := now.Now()
		p.sendAt(start.Add(2*time.Hour), "late")
		for i := range 3 {
			p.sendAt(start.Add(time.Hour), fmt.Sprint("soon", i))
		}
		p.sendAt(start.Add(-time.Hour), "past")
		c.wantTexts(w, "a", "past")
		now.move(time.Hour - 2*time.Millisecond)
		c.Resume()
		c.wantTexts(w, "a")
		w.restart()
		c = w.subscribe("a", "s", kind)
		c.wantTexts(w, "a", "past")
		now.move(3 * time.Millisecond)
		c.Resume()
		c.wantTexts(w, "a", "soon0", "soon1", "soon2")
		c.Redeliver(redeliver())
		c.wantTexts(w, "a", "soon0", "soon1", "soon2", "past")
		now.move(time.Hour)
		c.Resume()
		c.wantTexts(w, "a", "late")
	}
}

// TestDelayedDeliveryWakes: nobody has to ask when something is due.
func TestDelayedDeliveryWakes(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Policies = delays })
	p := w.produce("a")
	c := w.subscribe("a", "s", shared)
	at := time.Now().Add(50 * time.Millisecond)
	p.sendAt(at, "soon")
	if got := textOf(t, c.next().Payload); got != "soon" || time.Now().UnixMilli() < at.UnixMilli() {
		t.Fatalf("%q, before its time", got)
	}
}

// TestDelayIsIgnored: on other types, and where policies turn it off.
func TestDelayIsIgnored(t *testing.T) {
	on := true
	w := newWorld(t, func(o *Options) { o.Policies = func(topicname.Name) Policies { return Policies{DelayedDelivery: on} } })
	p := w.produce("a")
	c, d := w.subscribe("a", "s"), w.subscribe("a", "f", failover)
	p.sendAt(time.Now().Add(time.Hour), "late")
	c.wantTexts(w, "a", "late")
	d.wantTexts(w, "a", "late")
	c.Close()
	on = false
	w.subscribe("a", "s", shared).wantTexts(w, "a", "late")
}

// TestDelayedInATransaction: a message that is due while its transaction is open comes when that commits.
func TestDelayedInATransaction(t *testing.T) {
	now := newClock()
	w := newWorld(t, func(o *Options) { o.Policies, o.Now = delays, now.Now })
	p := w.produce("a")
	c := w.subscribe("a", "s", shared)
	id := w.coord.begin()
	msg := inTxn(id, message(0, ""))
	msg.Payload = payloadOf(t, &pulsarproto.MessageMetadata{DeliverAtTime: ptr(now.Now().Add(time.Hour).UnixMilli())}, "t")
	p.send(msg)
	now.move(2 * time.Hour)
	c.Resume()
	c.wantTexts(w, "a")
	w.end(id, txn.Commit, "a", "")
	c.wantTexts(w, "a", "t")
}
