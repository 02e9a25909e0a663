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
	I, C := pulsarproto.CommandAck_Individual, pulsarproto.CommandAck_Cumulative
	fill := func(name string, n int, typ pulsarproto.CommandSubscribe_SubType) (string, uint64, map[string]*pulsarproto.MessageIdData) {
		topic := r.topic("g4-" + name)
		p := r.producer(x, topic, true)
		c := r.subscribe(x, topic, "s", typ, 1000)
		for i := 1; i <= n; i++ {
			r.send("", x, p, fmt.Sprint("m", i), sendOptions{})
		}
		ids := map[string]*pulsarproto.MessageIdData{}
		for len(ids) < n {
			ms := x.receive(c, quiet)
			for _, m := range ms {
				ids[m.content] = m.id
			}
			if len(ms) == 0 {
				break
			}
		}
		if len(ids) != n {
			r.line(name, "setup", fmt.Sprint("received only ", len(ids)))
		}
		return topic, c, ids
	}
	ack := func(step, what string, c uint64, typ pulsarproto.CommandAck_AckType, t *txn.ID, ids ...*pulsarproto.MessageIdData) {
		p := x.start(ackCommand(c, typ, t, ids...))
		p.description = "ACK " + typ.String() + " " + what
		if t != nil {
			p.description += " txn=" + r.txnName(t)
		}
		r.finish(step, p, 5*time.Second)
	}
	// individual, shared
	topic, c, m := fill("ind", 8, pulsarproto.CommandSubscribe_Shared)
	t1, t2, t3 := r.newTxn(x, "T1"), r.newTxn(x, "T2"), r.newTxn(x, "T3")
	ack("ind: first", "m1", c, I, &t1, m["m1"])
	ack("ind: pending in another txn", "m1", c, I, &t2, m["m1"])
	ack("ind: pending in the same txn", "m1", c, I, &t1, m["m1"])
	ack("ind: two in one", "m2 m3", c, I, &t1, m["m2"], m["m3"])
	ack("ind: one free, one pending", "m4 m2", c, I, &t2, m["m4"], m["m2"])
	ack("ind: the free one by a third txn", "m4", c, I, &t3, m["m4"])
	ack("ind: same id twice in one", "m8 m8", c, I, &t3, m["m8"], m["m8"])
	ack("ind: plain ack of a pending one", "m1", c, I, nil, m["m1"])
	ack("ind: plain ack", "m5", c, I, nil, m["m5"])
	ack("ind: txn ack of an acked one", "m5", c, I, &t1, m["m5"])
	ack("ind: no ids", "", c, I, &t1)
	un := txn.ID{Most: 0, Least: r.name(1<<40, "2^40")}
	ack("ind: unknown txn", "m6", c, I, &un, m["m6"])
	tz := r.newTxn(x, "Tended")
	x.ask(endTxnCommand(tz, commit.Enum()))
	ack("ind: ended txn", "m7", c, I, &tz, m["m7"])
	ack("ind: unknown consumer id", "m7", 4711, I, &t1, m["m7"])
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

	// a position that does not exist
	topic, c, m = fill("noledger", 3, pulsarproto.CommandSubscribe_Shared)
	tq := r.newTxn(x, "Tq")
	ack("position does not exist: unknown ledger", "999999:0", c, I, &tq, &pulsarproto.MessageIdData{LedgerId: u64(999999), EntryId: u64(0)})
	ack("position does not exist: entry beyond the end", "L:500", c, I, &tq, &pulsarproto.MessageIdData{LedgerId: m["m1"].LedgerId, EntryId: u64(500)})
	ack("position does not exist: m1", "m1", c, I, &tq, m["m1"])
	r.request("position does not exist: abort", x, endOnSubscriptionCommand(tq, topic, "s", abort.Enum(), u64(0)))
	r.receive("position does not exist: received", x, c, "without redeliver request")
	time.Sleep(4 * time.Second)
	r.receive("position does not exist: received", x, c, "4s later")
	topic, c, m = fill("noledger2", 3, pulsarproto.CommandSubscribe_Shared)
	tq = r.newTxn(x, "Tq")
	ack("position does not exist: unknown ledger", "999999:0", c, I, &tq, &pulsarproto.MessageIdData{LedgerId: u64(999999), EntryId: u64(0)})
	r.request("position does not exist: commit", x, endOnSubscriptionCommand(tq, topic, "s", commit.Enum(), u64(0)))
	x.redeliverAll(c)
	r.receive("position does not exist: received", x, c, "after redeliver all")
	// only half of the ids
	_, c, m = fill("half", 2, pulsarproto.CommandSubscribe_Shared)
	th := r.newTxn(x, "Th")
	b := ackCommand(c, I, &th, m["m1"])
	b.Ack.TxnidMostBits = nil
	r.requestWithin("half: only least", x, b, 5*time.Second)
	b = ackCommand(c, I, &th, m["m2"])
	b.Ack.TxnidLeastBits = nil
	r.requestWithin("half: only most", x, b, 5*time.Second)
	// no request id: silence
	// through the coordinator, shared
	for _, act := range []pulsarproto.TxnAction{commit, abort} {
		topic, c, m = fill("tc"+act.String(), 3, pulsarproto.CommandSubscribe_Shared)
		t := r.newTxn(x, "Ttc")
		x.ask(addSubscriptionsCommand(t, topic, "s"))
		n := "through TC " + act.String()
		ack(n+": ack", "m1", c, I, &t, m["m1"])
		ack(n+": ack", "m2", c, I, &t, m["m2"])
		r.request(n+": end", x, endTxnCommand(t, act.Enum()))
		r.receive(n+": received", x, c, "without a redeliver request")
		x.redeliverAll(c)
		r.receive(n+": received", x, c, "after redeliver all")
		ack(n+": ack again with the ended txn", "m3", c, I, &t, m["m3"])
		ack(n+": then plain ack", "m3", c, I, nil, m["m3"])
		ack(n+": then other txn", "m3", c, I, &t2, m["m3"])
	}
	// plain ack of a pending one, then abort
	topic, c, m = fill("plainpend", 3, pulsarproto.CommandSubscribe_Shared)
	tp := r.newTxn(x, "Tp")
	ack("plain ack over pending: txn ack", "m1", c, I, &tp, m["m1"])
	ack("plain ack over pending: plain ack", "m1", c, I, nil, m["m1"])
	r.request("plain ack over pending: abort", x, endOnSubscriptionCommand(tp, topic, "s", abort.Enum(), u64(0)))
	r.receive("plain ack over pending: received", x, c, "without redeliver request")
	x.redeliverAll(c)
	r.receive("plain ack over pending: received", x, c, "after redeliver all")
	// exclusive, individual
	for _, act := range []pulsarproto.TxnAction{commit, abort} {
		topic, c, m = fill("excl"+act.String(), 4, pulsarproto.CommandSubscribe_Exclusive)
		t := r.newTxn(x, "Te")
		n := "exclusive individual " + act.String()
		ack(n+": ack", "m2", c, I, &t, m["m2"])
		x.redeliverAll(c)
		r.receive(n+": redeliver all while pending", x, c, "")
		r.request(n+": end on subscription", x, endOnSubscriptionCommand(t, topic, "s", act.Enum(), u64(0)))
		r.receive(n+": received", x, c, "without redeliver request")
		x.redeliverAll(c)
		r.receive(n+": received", x, c, "after redeliver all")
	}
	// cumulative
	for _, act := range []pulsarproto.TxnAction{commit, abort} {
		topic, c, m = fill("cum"+act.String(), 8, pulsarproto.CommandSubscribe_Exclusive)
		n := "cumulative " + act.String() + ": "
		a, bb := r.newTxn(x, "Ta"), r.newTxn(x, "Tb")
		ack(n+"first", "m3", c, C, &a, m["m3"])
		ack(n+"same again", "m3", c, C, &a, m["m3"])
		ack(n+"lower, same txn", "m2", c, C, &a, m["m2"])
		ack(n+"higher, same txn", "m4", c, C, &a, m["m4"])
		ack(n+"other txn, higher", "m6", c, C, &bb, m["m6"])
		ack(n+"other txn, lower", "m1", c, C, &bb, m["m1"])
		ack(n+"individual below, other txn", "m2", c, I, &bb, m["m2"])
		ack(n+"individual above, other txn", "m6", c, I, &bb, m["m6"])
		ack(n+"individual below, same txn", "m1", c, I, &a, m["m1"])
		ack(n+"individual above, same txn", "m5", c, I, &a, m["m5"])
		ack(n+"plain cumulative below", "m1", c, C, nil, m["m1"])
		ack(n+"plain cumulative above", "m5", c, C, nil, m["m5"])
		ack(n+"two ids", "m6 m7", c, C, &a, m["m6"], m["m7"])
		x.redeliverAll(c)
		r.receive(n+"redeliver all while pending", x, c, "")
		r.request(n+"end Ta", x, endOnSubscriptionCommand(a, topic, "s", act.Enum(), u64(0)))
		r.receive(n+"received", x, c, "without redeliver request")
		x.redeliverAll(c)
		r.receive(n+"received", x, c, "after redeliver all")
		ack(n+"other txn now", "m7", c, C, &bb, m["m7"])
		r.request(n+"end Tb", x, endOnSubscriptionCommand(bb, topic, "s", act.Enum(), u64(0)))
		x.redeliverAll(c)
		r.receive(n+"received", x, c, "after end Tb and redeliver all")
		ack(n+"below the mark-delete position", "m1", c, C, &bb, m["m1"])
	}
	// cumulative only, nothing else
	for _, act := range []pulsarproto.TxnAction{commit, abort} {
		topic, c, m = fill("cumonly"+act.String(), 5, pulsarproto.CommandSubscribe_Exclusive)
		n := "cumulative alone " + act.String() + ": "
		a := r.newTxn(x, "Ta")
		ack(n+"ack", "m3", c, C, &a, m["m3"])
		x.redeliverAll(c)
		r.receive(n+"redeliver all while pending", x, c, "")
		r.request(n+"end", x, endOnSubscriptionCommand(a, topic, "s", act.Enum(), u64(0)))
		r.receive(n+"received", x, c, "without redeliver request")
		x.redeliverAll(c)
		r.receive(n+"received", x, c, "after redeliver all")
		ack(n+"txn ack at the mark-delete position", "m3", c, C, &a, m["m3"])
	}
	// individual first, cumulative over it
	_, c, m = fill("mixed", 5, pulsarproto.CommandSubscribe_Exclusive)
	ma, mb := r.newTxn(x, "Ta"), r.newTxn(x, "Tb")
	ack("individual then cumulative: individual", "m2", c, I, &ma, m["m2"])
	ack("individual then cumulative: cumulative over it, other txn", "m4", c, C, &mb, m["m4"])
	ack("individual then cumulative: plain cumulative over it", "m5", c, C, nil, m["m5"])
	// shared + cumulative
	_, c, m = fill("sharedcum", 2, pulsarproto.CommandSubscribe_Shared)
	ts := r.newTxn(x, "Ts")
	ack("cumulative on shared", "m1", c, C, &ts, m["m1"])
	ack("plain cumulative on shared", "m1", c, C, nil, m["m1"])
	x.redeliverAll(c)
	r.receive("cumulative on shared: redeliver all", x, c, "")
	// non-persistent
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
		ack("non-persistent: txn ack", "n1", cn, I, &tn, ms[0].id)
	}
	if x.isClosed() {
		x = r.coordinator()
	}
	// message of an open transaction acked (not yet visible): use its id from the receipt
	topic = r.topic("g4-invisible")
	p := r.producer(x, topic, true)
	c = r.subscribe(x, topic, "s", pulsarproto.CommandSubscribe_Shared, 1000)
	to := r.newTxn(x, "To")
	a := r.send("invisible: send in open txn", x, p, "hidden", in(&to, inMetadata))
	if a.ok() {
		ack("invisible: plain ack of a message not delivered yet", "hidden", c, I, nil, a.frame.command.SendReceipt.MessageId)
		r.request("invisible: commit", x, endOnPartitionCommand(to, topic, commit.Enum(), u64(0)))
		r.receive("invisible: received", x, c, "")
	}
	r.unsolicited("events", x, 0)
}
