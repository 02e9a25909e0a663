package recorder

import (
	"fmt"
	"time"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// playAck acknowledges in transactions.
func playAck(r *recording) {
	x := r.coordinator()
	ackIndividual(r, x)
	ackMissingPosition(r, x)
	ackHalfID(r, x)
	ackThroughCoordinator(r, x)
	ackPlainOverPending(r, x)
	ackExclusive(r, x)
	ackCumulative(r, x)
	ackCumulativeAlone(r, x)
	ackCumulativeOverIndividual(r, x)
	ackCumulativeShared(r, x)
	ackNonPersistent(r, x)
	if x.isClosed() {
		x = r.coordinator()
	}
	ackInvisible(r, x)
}

// ackIndividual lets transactions and plain acknowledgements compete for single messages.
func ackIndividual(r *recording, x *connection) {
	topic, c, m := r.fill(x, "ind", 8, pulsarproto.CommandSubscribe_Shared)
	t1, t2, t3 := r.newTxn(x, "T1"), r.newTxn(x, "T2"), r.newTxn(x, "T3")
	r.ack(x, "ind: first", "m1", c, individual, &t1, m["m1"])
	r.ack(x, "ind: pending in another txn", "m1", c, individual, &t2, m["m1"])
	r.ack(x, "ind: pending in the same txn", "m1", c, individual, &t1, m["m1"])
	r.ack(x, "ind: two in one", "m2 m3", c, individual, &t1, m["m2"], m["m3"])
	r.ack(x, "ind: one free, one pending", "m4 m2", c, individual, &t2, m["m4"], m["m2"])
	r.ack(x, "ind: the free one by a third txn", "m4", c, individual, &t3, m["m4"])
	r.ack(x, "ind: same id twice in one", "m8 m8", c, individual, &t3, m["m8"], m["m8"])
	r.ack(x, "ind: plain ack of a pending one", "m1", c, individual, nil, m["m1"])
	r.ack(x, "ind: plain ack", "m5", c, individual, nil, m["m5"])
	r.ack(x, "ind: txn ack of an acked one", "m5", c, individual, &t1, m["m5"])
	r.ack(x, "ind: no ids", "", c, individual, &t1)
	un := txn.ID{Most: 0, Least: r.name(1<<40, "2^40")}
	r.ack(x, "ind: unknown txn", "m6", c, individual, &un, m["m6"])
	tz := r.newTxn(x, "Tended")
	x.ask(endTxnCommand(tz, commit.Enum()))
	r.ack(x, "ind: ended txn", "m7", c, individual, &tz, m["m7"])
	r.ack(x, "ind: unknown consumer id", "m7", 4711, individual, &t1, m["m7"])
	x.redeliverAll(c)
	r.receive("ind: redeliver all (m1 m2 m3:T1 m4:? m5 acked m6:2^40 m7:Tended m8:?)", x, c, "")
	r.request("ind: abort T1", x, endOnSubscriptionCommand(t1, topic, "s", abort.Enum(), u64(0)))
	r.receive("ind: after abort T1", x, c, "without a redeliver request")
	r.request("ind: commit T3", x, endOnSubscriptionCommand(t3, topic, "s", commit.Enum(), u64(0)))
	r.request("ind: abort T2", x, endOnSubscriptionCommand(t2, topic, "s", abort.Enum(), u64(0)))
	r.receive("ind: after abort T2", x, c, "")
	r.request("ind: abort unknown txn that holds m6", x, endOnSubscriptionCommand(un, topic, "s", abort.Enum(), u64(0)))
	r.request("ind: commit ended txn that holds m7", x, endOnSubscriptionCommand(tz, topic, "s", commit.Enum(), u64(0)))
	r.receive("ind: after those", x, c, "")
	x.redeliverAll(c)
	r.receive("ind: redeliver all at the end", x, c, "")
}

// ackMissingPosition names positions that no message has.
func ackMissingPosition(r *recording, x *connection) {
	topic, c, m := r.fill(x, "noledger", 3, pulsarproto.CommandSubscribe_Shared)
	tq := r.newTxn(x, "Tq")
	r.ack(x, "position does not exist: unknown ledger", "999999:0", c, individual, &tq, &pulsarproto.MessageIdData{LedgerId: u64(999999), EntryId: u64(0)})
	r.ack(x, "position does not exist: entry beyond the end", "L:500", c, individual, &tq, &pulsarproto.MessageIdData{LedgerId: m["m1"].LedgerId, EntryId: u64(500)})
	r.ack(x, "position does not exist: m1", "m1", c, individual, &tq, m["m1"])
	r.request("position does not exist: abort", x, endOnSubscriptionCommand(tq, topic, "s", abort.Enum(), u64(0)))
	r.receive("position does not exist: received", x, c, "without redeliver request")
	time.Sleep(4 * time.Second)
	r.receive("position does not exist: received", x, c, "4s later")
	topic, c, _ = r.fill(x, "noledger2", 3, pulsarproto.CommandSubscribe_Shared)
	tq = r.newTxn(x, "Tq")
	r.ack(x, "position does not exist: unknown ledger", "999999:0", c, individual, &tq, &pulsarproto.MessageIdData{LedgerId: u64(999999), EntryId: u64(0)})
	r.request("position does not exist: commit", x, endOnSubscriptionCommand(tq, topic, "s", commit.Enum(), u64(0)))
	x.redeliverAll(c)
	r.receive("position does not exist: received", x, c, "after redeliver all")
}

// ackHalfID leaves a half of the id out.
func ackHalfID(r *recording, x *connection) {
	_, c, m := r.fill(x, "half", 2, pulsarproto.CommandSubscribe_Shared)
	th := r.newTxn(x, "Th")
	b := ackCommand(c, individual, &th, m["m1"])
	b.Ack.TxnidMostBits = nil
	r.requestWithin("half: only least", x, b, 5*time.Second)
	b = ackCommand(c, individual, &th, m["m2"])
	b.Ack.TxnidLeastBits = nil
	r.requestWithin("half: only most", x, b, 5*time.Second)
}

// ackThroughCoordinator ends the transaction at its coordinator.
func ackThroughCoordinator(r *recording, x *connection) {
	for _, act := range []pulsarproto.TxnAction{commit, abort} {
		topic, c, m := r.fill(x, "tc"+act.String(), 3, pulsarproto.CommandSubscribe_Shared)
		t := r.newTxn(x, "Ttc")
		x.ask(addSubscriptionsCommand(t, topic, "s"))
		n := "through TC " + act.String()
		r.ack(x, n+": ack", "m1", c, individual, &t, m["m1"])
		r.ack(x, n+": ack", "m2", c, individual, &t, m["m2"])
		r.request(n+": end", x, endTxnCommand(t, act.Enum()))
		r.receive(n+": received", x, c, "without a redeliver request")
		x.redeliverAll(c)
		r.receive(n+": received", x, c, "after redeliver all")
		r.ack(x, n+": ack again with the ended txn", "m3", c, individual, &t, m["m3"])
		r.ack(x, n+": then plain ack", "m3", c, individual, nil, m["m3"])
		other := r.newTxn(x, "T2")
		r.ack(x, n+": then other txn", "m3", c, individual, &other, m["m3"])
	}
}

// ackPlainOverPending acknowledges plainly what a transaction holds, and aborts that.
func ackPlainOverPending(r *recording, x *connection) {
	topic, c, m := r.fill(x, "plainpend", 3, pulsarproto.CommandSubscribe_Shared)
	tp := r.newTxn(x, "Tp")
	r.ack(x, "plain ack over pending: txn ack", "m1", c, individual, &tp, m["m1"])
	r.ack(x, "plain ack over pending: plain ack", "m1", c, individual, nil, m["m1"])
	r.request("plain ack over pending: abort", x, endOnSubscriptionCommand(tp, topic, "s", abort.Enum(), u64(0)))
	r.receive("plain ack over pending: received", x, c, "without redeliver request")
	x.redeliverAll(c)
	r.receive("plain ack over pending: received", x, c, "after redeliver all")
}

// ackExclusive acknowledges single messages of an exclusive subscription.
func ackExclusive(r *recording, x *connection) {
	for _, act := range []pulsarproto.TxnAction{commit, abort} {
		topic, c, m := r.fill(x, "excl"+act.String(), 4, pulsarproto.CommandSubscribe_Exclusive)
		t := r.newTxn(x, "Te")
		n := "exclusive individual " + act.String()
		r.ack(x, n+": ack", "m2", c, individual, &t, m["m2"])
		x.redeliverAll(c)
		r.receive(n+": redeliver all while pending", x, c, "")
		r.request(n+": end on subscription", x, endOnSubscriptionCommand(t, topic, "s", act.Enum(), u64(0)))
		r.receive(n+": received", x, c, "without redeliver request")
		x.redeliverAll(c)
		r.receive(n+": received", x, c, "after redeliver all")
	}
}

// ackCumulative lets cumulative acknowledgements compete.
func ackCumulative(r *recording, x *connection) {
	for _, act := range []pulsarproto.TxnAction{commit, abort} {
		topic, c, m := r.fill(x, "cum"+act.String(), 8, pulsarproto.CommandSubscribe_Exclusive)
		n := "cumulative " + act.String() + ": "
		a, bb := r.newTxn(x, "Ta"), r.newTxn(x, "Tb")
		r.ack(x, n+"first", "m3", c, cumulative, &a, m["m3"])
		r.ack(x, n+"same again", "m3", c, cumulative, &a, m["m3"])
		r.ack(x, n+"lower, same txn", "m2", c, cumulative, &a, m["m2"])
		r.ack(x, n+"higher, same txn", "m4", c, cumulative, &a, m["m4"])
		r.ack(x, n+"other txn, higher", "m6", c, cumulative, &bb, m["m6"])
		r.ack(x, n+"other txn, lower", "m1", c, cumulative, &bb, m["m1"])
		r.ack(x, n+"individual below, other txn", "m2", c, individual, &bb, m["m2"])
		r.ack(x, n+"individual above, other txn", "m6", c, individual, &bb, m["m6"])
		r.ack(x, n+"individual below, same txn", "m1", c, individual, &a, m["m1"])
		r.ack(x, n+"individual above, same txn", "m5", c, individual, &a, m["m5"])
		r.ack(x, n+"plain cumulative below", "m1", c, cumulative, nil, m["m1"])
		r.ack(x, n+"plain cumulative above", "m5", c, cumulative, nil, m["m5"])
		r.ack(x, n+"two ids", "m6 m7", c, cumulative, &a, m["m6"], m["m7"])
		x.redeliverAll(c)
		r.receive(n+"redeliver all while pending", x, c, "")
		r.request(n+"end Ta", x, endOnSubscriptionCommand(a, topic, "s", act.Enum(), u64(0)))
		r.receive(n+"received", x, c, "without redeliver request")
		x.redeliverAll(c)
		r.receive(n+"received", x, c, "after redeliver all")
		r.ack(x, n+"other txn now", "m7", c, cumulative, &bb, m["m7"])
		r.request(n+"end Tb", x, endOnSubscriptionCommand(bb, topic, "s", act.Enum(), u64(0)))
		x.redeliverAll(c)
		r.receive(n+"received", x, c, "after end Tb and redeliver all")
		r.ack(x, n+"below the mark-delete position", "m1", c, cumulative, &bb, m["m1"])
	}
}

// ackCumulativeAlone has one cumulative acknowledgement and nothing else.
func ackCumulativeAlone(r *recording, x *connection) {
	for _, act := range []pulsarproto.TxnAction{commit, abort} {
		topic, c, m := r.fill(x, "cumonly"+act.String(), 5, pulsarproto.CommandSubscribe_Exclusive)
		n := "cumulative alone " + act.String() + ": "
		a := r.newTxn(x, "Ta")
		r.ack(x, n+"ack", "m3", c, cumulative, &a, m["m3"])
		x.redeliverAll(c)
		r.receive(n+"redeliver all while pending", x, c, "")
		r.request(n+"end", x, endOnSubscriptionCommand(a, topic, "s", act.Enum(), u64(0)))
		r.receive(n+"received", x, c, "without redeliver request")
		x.redeliverAll(c)
		r.receive(n+"received", x, c, "after redeliver all")
		r.ack(x, n+"txn ack at the mark-delete position", "m3", c, cumulative, &a, m["m3"])
	}
}

// ackCumulativeOverIndividual acknowledges cumulatively what another transaction holds.
func ackCumulativeOverIndividual(r *recording, x *connection) {
	_, c, m := r.fill(x, "mixed", 5, pulsarproto.CommandSubscribe_Exclusive)
	ma, mb := r.newTxn(x, "Ta"), r.newTxn(x, "Tb")
	r.ack(x, "individual then cumulative: individual", "m2", c, individual, &ma, m["m2"])
	r.ack(x, "individual then cumulative: cumulative over it, other txn", "m4", c, cumulative, &mb, m["m4"])
	r.ack(x, "individual then cumulative: plain cumulative over it", "m5", c, cumulative, nil, m["m5"])
}

// ackCumulativeShared acknowledges cumulatively on a shared subscription.
func ackCumulativeShared(r *recording, x *connection) {
	_, c, m := r.fill(x, "sharedcum", 2, pulsarproto.CommandSubscribe_Shared)
	ts := r.newTxn(x, "Ts")
	r.ack(x, "cumulative on shared", "m1", c, cumulative, &ts, m["m1"])
	r.ack(x, "plain cumulative on shared", "m1", c, cumulative, nil, m["m1"])
	x.redeliverAll(c)
	r.receive("cumulative on shared: redeliver all", x, c, "")
}

// ackNonPersistent uses a topic that is not persistent.
func ackNonPersistent(r *recording, x *connection) {
	np := "non-persistent://public/default/or-" + r.target.Run + "-np"
	pn := r.producer(x, np, false)
	cn := r.subscribe(x, np, "s", pulsarproto.CommandSubscribe_Shared, 1000)
	tn := r.newTxn(x, "Tn")
	r.send("non-persistent: plain send", x, pn, "n1", sendOptions{})
	ms := r.receive("non-persistent: received", x, cn, "")
	r.request("non-persistent: end on partition", x, endOnPartitionCommand(tn, np, commit.Enum(), u64(0)))
	r.request("non-persistent: end on subscription", r.dial(), endOnSubscriptionCommand(tn, np, "s", commit.Enum(), u64(0)))
	xn := r.dial()
	pn = r.producer(xn, np, false)
	r.send("non-persistent: txn send", xn, pn, "n2", sendOptions{txn: &tn})
	if len(ms) > 0 {
		r.ack(x, "non-persistent: txn ack", "n1", cn, individual, &tn, ms[0].id)
	}
}

// ackInvisible acknowledges a message that nobody has been given yet.
func ackInvisible(r *recording, x *connection) {
	topic := r.topic("g4-invisible")
	p := r.producer(x, topic, true)
	c := r.subscribe(x, topic, "s", pulsarproto.CommandSubscribe_Shared, 1000)
	to := r.newTxn(x, "To")
	a := r.send("invisible: send in open txn", x, p, "hidden", in(&to, inMetadata))
	if a.ok() {
		r.ack(x, "invisible: plain ack of a message not delivered yet", "hidden", c, individual, nil, a.frame.command.SendReceipt.MessageId)
		r.request("invisible: commit", x, endOnPartitionCommand(to, topic, commit.Enum(), u64(0)))
		r.receive("invisible: received", x, c, "")
	}
	r.unsolicited("events", x, 0)
}

const (
	individual = pulsarproto.CommandAck_Individual
	cumulative = pulsarproto.CommandAck_Cumulative
)

// fill makes a topic with count plain messages and a subscription whose consumer has got them all. The ids are by content.
func (r *recording) fill(x *connection, name string, count int, subType pulsarproto.CommandSubscribe_SubType) (topic string, consumer uint64, ids map[string]*pulsarproto.MessageIdData) {
	topic = r.topic("g4-" + name)
	producer := r.producer(x, topic, true)
	consumer = r.subscribe(x, topic, "s", subType, 1000)
	for i := range count {
		r.send("", x, producer, fmt.Sprint("m", i+1), sendOptions{})
	}
	ids = map[string]*pulsarproto.MessageIdData{}
	for _, m := range x.receive(consumer, quiet) {
		ids[m.content] = m.id
	}
	if len(ids) != count {
		r.line(name, "setup", fmt.Sprint("received only ", len(ids)))
	}
	return topic, consumer, ids
}

// ack acknowledges and records the answer. what names the messages in the line.
func (r *recording) ack(x *connection, step, what string, consumer uint64, ackType pulsarproto.CommandAck_AckType, id *txn.ID, messages ...*pulsarproto.MessageIdData) {
	r.ackAs(x, step, "ACK "+ackType.String()+" "+what, ackCommand(consumer, ackType, id, messages...), id)
}

// ackAs records the answer of an acknowledgement under a description and the name of its transaction.
func (r *recording) ackAs(x *connection, step, description string, command *pulsarproto.BaseCommand, id *txn.ID) {
	p := x.start(command)
	p.description = description
	if id != nil {
		p.description += " txn=" + r.txnName(id)
	}
	r.finish(step, p, 5*time.Second)
}
