package recorder

import (
	"fmt"
	"strings"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// playSend sends with a transaction id.
func playSend(r *recording) {
	x := r.coordinator()
	sendKinds(r, x)
	sendMetadataOnly(r, x)
	sendDifferentIDs(r, x)
	sendInterleaved(r, x)
	sendBatch(r, x)
}

// sendKinds sends in transactions of every state.
func sendKinds(r *recording, x *connection) {
	r.name(1<<40, "2^40")
	for place := inCommand; place <= inMetadata; place++ {
		v := placeNames[place] + ": "
		run := func(name string, t txn.ID, o sendOptions, endAct pulsarproto.TxnAction) {
			topic := r.topic(fmt.Sprintf("g1-%s-%d", strings.ReplaceAll(name, " ", ""), place))
			p := r.producer(x, topic, true)
			c := r.subscribe(x, topic, "s", pulsarproto.CommandSubscribe_Shared, 1000)
			n := v + name
			r.send("", x, p, "before", sendOptions{})
			r.send(n+": send", x, p, "txn", o)
			r.send(n+": send", x, p, "plain", sendOptions{})
			r.receive(n+": received", x, c, "")
			r.request(n+": end on partition", x, endOnPartitionCommand(t, topic, endAct.Enum(), u64(0)))
			r.receive(n+": then received", x, c, "")
			r.entries(n+": entries", topic)
		}
		for _, act := range []pulsarproto.TxnAction{commit, abort} {
			t := r.newTxn(x, "Topen")
			run("open, not registered, "+act.String(), t, in(&t, place), act)
		}
		t := r.newTxn(x, "Tcommitted")
		x.ask(endTxnCommand(t, commit.Enum()))
		run("committed at TC", t, in(&t, place), commit)
		t = r.newTxn(x, "Taborted")
		x.ask(endTxnCommand(t, abort.Enum()))
		run("aborted at TC", t, in(&t, place), abort)
		t = txn.ID{Most: 0, Least: 1 << 40}
		run("unknown id", t, in(&t, place), commit)
		t = txn.ID{Most: 99, Least: 1 << 40}
		run("unknown TC 99", t, in(&t, place), commit)
		t = r.newTxn(x, "Topen")
		o := in(&t, place)
		o.noMost = true
		run("only least", t, o, commit)
		t = r.newTxn(x, "Topen")
		o = in(&t, place)
		o.noLeast = true
		run("only most", t, o, commit)
		// producer without txn_enabled
		t = r.newTxn(x, "Topen")
		topic := r.topic(fmt.Sprintf("g1-notxn-%d", place))
		p := r.producer(x, topic, false)
		c := r.subscribe(x, topic, "s", pulsarproto.CommandSubscribe_Shared, 1000)
		r.send(v+"producer without txn_enabled", x, p, "txn", in(&t, place))
		r.receive(v+"producer without txn_enabled", x, c, "")
		// registered, through the coordinator
		for _, act := range []pulsarproto.TxnAction{commit, abort} {
			t = r.newTxn(x, "Treg")
			topic = r.topic(fmt.Sprintf("g1-reg-%s-%d", act, place))
			n := v + "registered, END_TXN " + act.String()
			p = r.producer(x, topic, true)
			c = r.subscribe(x, topic, "s", pulsarproto.CommandSubscribe_Shared, 1000)
			c2 := r.subscribe(x, topic, "s2", pulsarproto.CommandSubscribe_Exclusive, 1000)
			x.ask(addPartitionsCommand(t, topic))
			for i := 1; i <= 3; i++ {
				r.send("", x, p, fmt.Sprint("t", i), in(&t, place))
				r.send("", x, p, fmt.Sprint("p", i), sendOptions{})
			}
			r.receive(n+": before end", x, c, "shared, t1 p1 t2 p2 t3 p3 sent")
			r.receive(n+": before end", x, c2, "exclusive")
			r.request(n, x, endTxnCommand(t, act.Enum()))
			r.receive(n+": after end", x, c, "shared")
			r.receive(n+": after end", x, c2, "exclusive")
			r.send(n+": send after end", x, p, "late", in(&t, place))
			r.send(n+": plain after end", x, p, "plain-late", sendOptions{})
			r.receive(n+": after late send", x, c, "shared")
			r.request(n+": same end on partition again", x, endOnPartitionCommand(t, topic, act.Enum(), u64(0)))
			r.receive(n+": after that", x, c, "shared")
		}
	}
}

// sendMetadataOnly names the transaction in the metadata only.
func sendMetadataOnly(r *recording, x *connection) {
	t := r.newTxn(x, "Topen")
	topic := r.topic("g1-mdonly")
	p := r.producer(x, topic, true)
	c := r.subscribe(x, topic, "s", pulsarproto.CommandSubscribe_Shared, 1000)
	r.send("metadata only", x, p, "txn", sendOptions{metadata: &t})
	r.receive("metadata only", x, c, "")
	r.request("metadata only: abort", x, endOnPartitionCommand(t, topic, abort.Enum(), u64(0)))
	r.send("metadata only: again", x, p, "txn2", sendOptions{metadata: &t})
	r.receive("metadata only: after abort", x, c, "")
}

// sendDifferentIDs names two transactions.
func sendDifferentIDs(r *recording, x *connection) {
	t1, t2 := r.newTxn(x, "Tcmd"), r.newTxn(x, "Tmd")
	topic := r.topic("g1-mix")
	p := r.producer(x, topic, true)
	c := r.subscribe(x, topic, "s", pulsarproto.CommandSubscribe_Shared, 1000)
	r.send("ids differ", x, p, "mixed", sendOptions{txn: &t1, metadata: &t2})
	r.request("ids differ: commit cmd id", x, endOnPartitionCommand(t1, topic, commit.Enum(), u64(0)))
	r.receive("ids differ: after commit of cmd id", x, c, "")
}

// sendInterleaved sends in two transactions at once.
func sendInterleaved(r *recording, x *connection) {
	for place := inCommand; place <= inMetadata; place++ {
		v := placeNames[place] + ": two transactions: "
		a, b := r.newTxn(x, "Ta"), r.newTxn(x, "Tb")
		topic := r.topic(fmt.Sprint("g1-two-", place))
		p := r.producer(x, topic, true)
		c := r.subscribe(x, topic, "s", pulsarproto.CommandSubscribe_Shared, 1000)
		r.send("", x, p, "a1", in(&a, place))
		r.send("", x, p, "b1", in(&b, place))
		r.send("", x, p, "a2", in(&a, place))
		r.send("", x, p, "b2", in(&b, place))
		r.send("", x, p, "p", sendOptions{})
		r.receive(v+"sent a1 b1 a2 b2 p", x, c, "")
		r.request(v+"commit b", x, endOnPartitionCommand(b, topic, commit.Enum(), u64(0)))
		r.receive(v+"after commit b", x, c, "")
		r.request(v+"abort a", x, endOnPartitionCommand(a, topic, abort.Enum(), u64(0)))
		r.receive(v+"after abort a", x, c, "")
		r.entries(v+"entries", topic)
	}
}

// sendBatch sends a batch in a transaction.
func sendBatch(r *recording, x *connection) {
	for place := inCommand; place <= inMetadata; place++ {
		t := r.newTxn(x, "Tbatch")
		topic := r.topic(fmt.Sprint("g1-batch-", place))
		p := r.producer(x, topic, true)
		c := r.subscribe(x, topic, "s", pulsarproto.CommandSubscribe_Shared, 1000)
		o := in(&t, place)
		o.batch = 3
		r.send(placeNames[place]+": batch", x, p, "b", o)
		r.receive(placeNames[place]+": batch before", x, c, "")
		r.request(placeNames[place]+": batch commit", x, endOnPartitionCommand(t, topic, commit.Enum(), u64(0)))
		r.receive(placeNames[place]+": batch after", x, c, "")
	}
}
