package recorder

import (
	"fmt"
	"time"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// playEndOnSubscription ends transactions on a subscription, as a coordinator does.
func playEndOnSubscription(r *recording) {
	x := r.coordinator()
	endSubscription(r, x)
	endUnloadedSubscription(r, x)
}

// endSubscription ends once, again, contrarily and oddly.
func endSubscription(r *recording, x *connection) {
	topic := r.topic("g5")
	p := r.producer(x, topic, true)
	c := r.subscribe(x, topic, "s", pulsarproto.CommandSubscribe_Shared, 1000)
	for i := range 3 {
		r.send("", x, p, fmt.Sprint("m", i+1), sendOptions{})
	}
	m := map[string]*pulsarproto.MessageIdData{}
	for _, message := range x.receive(c, quiet) {
		m[message.content] = message.id
	}
	un := txn.ID{Most: 0, Least: r.name(1<<40, "2^40")}
	t := r.newTxn(x, "T1")
	r.request("nothing ever acked: commit unknown", x, endOnSubscriptionCommand(un, topic, "s", commit.Enum(), u64(0)))
	r.request("nothing ever acked: abort unknown", x, endOnSubscriptionCommand(un, topic, "s", abort.Enum(), u64(0)))
	r.request("ack m1 in T1", x, ackCommand(c, individual, &t, m["m1"]))
	r.request("commit", x, endOnSubscriptionCommand(t, topic, "s", commit.Enum(), u64(0)))
	r.request("commit again", x, endOnSubscriptionCommand(t, topic, "s", commit.Enum(), u64(0)))
	r.request("abort after commit", x, endOnSubscriptionCommand(t, topic, "s", abort.Enum(), u64(0)))
	x.redeliverAll(c)
	r.receive("after commit, commit, abort", x, c, "redeliver all")
	t = r.newTxn(x, "T2")
	r.request("ack m2 in T2", x, ackCommand(c, individual, &t, m["m2"]))
	r.request("abort", x, endOnSubscriptionCommand(t, topic, "s", abort.Enum(), u64(0)))
	r.request("abort again", x, endOnSubscriptionCommand(t, topic, "s", abort.Enum(), u64(0)))
	r.request("commit after abort", x, endOnSubscriptionCommand(t, topic, "s", commit.Enum(), u64(0)))
	r.receive("after abort, abort, commit", x, c, "without redeliver request")
	r.request("unknown txn", x, endOnSubscriptionCommand(un, topic, "s", commit.Enum(), u64(0)))
	r.request("unknown subscription", x, endOnSubscriptionCommand(t, topic, "nope", commit.Enum(), u64(0)))
	r.request("empty subscription", x, endOnSubscriptionCommand(t, topic, "", commit.Enum(), u64(0)))
	r.request("unknown topic", x, endOnSubscriptionCommand(t, r.topic("g5-missing"), "s", commit.Enum(), u64(0)))
	r.request("missing namespace", x, endOnSubscriptionCommand(t, "persistent://public/nons-"+r.target.Run+"/x", "s", commit.Enum(), u64(0)))
	r.request("unknown tc 99", x, endOnSubscriptionCommand(txn.ID{Most: 99, Least: 1}, topic, "s", commit.Enum(), u64(0)))
	endSubscriptionOddly(r, t, topic)
	endSubscriptionBelowMark(r, x, topic, p, c, m)
}

// endSubscriptionOddly ends with too little, or too much.
func endSubscriptionOddly(r *recording, t txn.ID, topic string) {
	y := r.dial()
	r.request("invalid topic", y, endOnSubscriptionCommand(t, "foo://a/b", "s", commit.Enum(), u64(0)))
	y = r.dial()
	r.request("action absent", y, endOnSubscriptionCommand(t, topic, "s", nil, u64(0)))
	y = r.dial()
	r.request("action 7", y, withUnknown(endOnSubscriptionCommand(t, topic, "s", nil, u64(0)), varintField(5, 7)))
	y = r.dial()
	b := endOnSubscriptionCommand(t, topic, "s", commit.Enum(), u64(0))
	b.EndTxnOnSubscription.Subscription = nil
	r.request("subscription absent", y, b)
	y = r.dial()
	r.request("lwm absent", y, endOnSubscriptionCommand(t, topic, "s", commit.Enum(), nil))
}

// endSubscriptionBelowMark acknowledges at and below the low water mark.
func endSubscriptionBelowMark(r *recording, x *connection, topic string, p, c uint64, m map[string]*pulsarproto.MessageIdData) {
	a1, a2, a3 := r.newTxn(x, "Ta"), r.newTxn(x, "Tb"), r.newTxn(x, "Tc")
	r.request("lwm: ack m2 in Ta", x, ackCommand(c, individual, &a1, m["m2"]))
	r.request("lwm: ack m3 in Tc", x, ackCommand(c, individual, &a3, m["m3"]))
	r.request("lwm: commit Tc, watermark Tb", x, endOnSubscriptionCommand(a3, topic, "s", commit.Enum(), u64(a2.Least)))
	r.receive("lwm: received", x, c, "without redeliver request")
	r.send("", x, p, "m4", sendOptions{})
	for _, q := range x.receive(c, quiet) {
		m[q.content] = q.id
	}
	r.request("lwm: ack m4 in Tb (= watermark)", x, ackCommand(c, individual, &a2, m["m4"]))
	r.request("lwm: ack m2 in Ta (< watermark)", x, ackCommand(c, individual, &a1, m["m2"]))
	x.redeliverAll(c)
	r.receive("lwm: received", x, c, "after redeliver all")
}

// endUnloadedSubscription ends on topics that are not loaded.
func endUnloadedSubscription(r *recording, x *connection) {
	nl := r.topic("g5-notloaded")
	z := r.coordinator()
	pz := r.producer(z, nl, true)
	cz := r.subscribe(z, nl, "s", pulsarproto.CommandSubscribe_Shared, 100)
	r.send("", z, pz, "m1", sendOptions{})
	r.send("", z, pz, "m2", sendOptions{})
	tz := r.newTxn(z, "Tnl")
	ms := z.receive(cz, quiet)
	if len(ms) == 2 {
		r.request("not loaded: ack m1", z, ackCommand(cz, individual, &tz, ms[0].id))
	}
	z.close()
	time.Sleep(300 * time.Millisecond)
	code := r.unload(nl).code
	r.line("not loaded", "admin unload", fmt.Sprint("HTTP ", code))
	cx := r.subscribe(x, nl, "s", pulsarproto.CommandSubscribe_Shared, 1000)
	r.receive("not loaded: pending ack survives the reload", x, cx, "")
	r.request("not loaded: abort", x, endOnSubscriptionCommand(tz, nl, "s", abort.Enum(), u64(0)))
	r.receive("not loaded: after abort", x, cx, "")
	x.ask(closeConsumerCommand(cx))
	r.unload(nl)
	r.request("not loaded: end right after unload", x, endOnSubscriptionCommand(tz, nl, "s", commit.Enum(), u64(0)))
	r.unsolicited("events", x, 0)
}
