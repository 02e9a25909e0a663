package recorder

import (
	"fmt"
	"time"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// playEndOnPartition ends transactions on a topic, as a coordinator does.
func playEndOnPartition(r *recording) {
	x := r.coordinator()
	endPartition(r, x)
	endPartitionOddly(r, x)
	endUnloadedPartition(r, x)
}

// endPartition ends once, again and contrarily.
func endPartition(r *recording, x *connection) {
	topic := r.topic("g2")
	p := r.producer(x, topic, true)
	c := r.subscribe(x, topic, "s", pulsarproto.CommandSubscribe_Shared, 1000)
	un := txn.ID{Most: 0, Least: r.name(1<<40, "2^40")}
	r.entries("fresh: entries", topic)
	r.request("fresh topic: abort unknown", x, endOnPartitionCommand(un, topic, abort.Enum(), u64(0)))
	r.entries("fresh topic: entries after abort", topic)
	r.request("fresh topic: commit unknown", x, endOnPartitionCommand(un, topic, commit.Enum(), u64(0)))
	r.entries("fresh topic: entries after commit", topic)
	t := r.newTxn(x, "T1")
	r.send("send", x, p, "t1", in(&t, inMetadata))
	r.request("commit", x, endOnPartitionCommand(t, topic, commit.Enum(), u64(0)))
	r.request("commit again", x, endOnPartitionCommand(t, topic, commit.Enum(), u64(0)))
	r.request("abort after commit", x, endOnPartitionCommand(t, topic, abort.Enum(), u64(0)))
	r.receive("after commit,commit,abort", x, c, "")
	x.redeliverAll(c)
	r.receive("after commit,commit,abort and redeliver", x, c, "")
	late := r.subscribe(x, topic, "late", pulsarproto.CommandSubscribe_Shared, 1000)
	r.receive("after commit,commit,abort: new subscription", x, late, "")
	r.entries("entries", topic)
	t = r.newTxn(x, "T2")
	r.send("send", x, p, "t2", in(&t, inMetadata))
	r.request("abort", x, endOnPartitionCommand(t, topic, abort.Enum(), u64(0)))
	r.request("abort again", x, endOnPartitionCommand(t, topic, abort.Enum(), u64(0)))
	r.request("commit after abort", x, endOnPartitionCommand(t, topic, commit.Enum(), u64(0)))
	r.receive("after abort,abort,commit", x, c, "")
	r.send("send after abort", x, p, "t2-late", in(&t, inMetadata))
	r.send("plain", x, p, "p", sendOptions{})
	r.receive("after send with aborted id", x, c, "")
	r.request("commit aborted id", x, endOnPartitionCommand(t, topic, commit.Enum(), u64(0)))
	r.receive("after that", x, c, "")
}

// endPartitionOddly ends where there is nothing, with too little, or too much.
func endPartitionOddly(r *recording, x *connection) {
	topic := r.topic("g2")
	t := r.newTxn(x, "T3")
	r.request("unknown tc 99", x, endOnPartitionCommand(txn.ID{Most: 99, Least: 5}, topic, commit.Enum(), u64(0)))
	r.request("missing topic", x, endOnPartitionCommand(t, r.topic("g2-missing"), commit.Enum(), u64(0)))
	code := r.admin("GET", "/admin/v2/persistent/"+restName(r.topic("g2-missing"))+"/stats", "").code
	r.line("missing topic: created?", "GET stats", fmt.Sprint("HTTP ", code))
	r.request("missing namespace", x, endOnPartitionCommand(t, "persistent://public/nons-"+r.target.Run+"/x", commit.Enum(), u64(0)))
	r.request("missing tenant", x, endOnPartitionCommand(t, "persistent://nott-"+r.target.Run+"/x/y", commit.Enum(), u64(0)))
	r.request("non-persistent topic", x, endOnPartitionCommand(t, "non-persistent://public/default/x"+r.target.Run, commit.Enum(), u64(0)))
	y := r.dial()
	r.request("invalid name", y, endOnPartitionCommand(t, "foo://a/b", commit.Enum(), u64(0)))
	y = r.dial()
	r.request("empty name", y, endOnPartitionCommand(t, "", commit.Enum(), u64(0)))
	y = r.dial()
	b := endOnPartitionCommand(t, topic, commit.Enum(), u64(0))
	b.EndTxnOnPartition.Topic = nil
	r.request("topic absent", y, b)
	y = r.dial()
	r.request("action absent", y, endOnPartitionCommand(t, topic, nil, u64(0)))
	y = r.dial()
	r.request("action 7", y, withUnknown(endOnPartitionCommand(t, topic, nil, u64(0)), varintField(5, 7)))
	y = r.dial()
	r.request("lwm absent", y, endOnPartitionCommand(t, topic, commit.Enum(), nil))
	y = r.dial()
	b = endOnPartitionCommand(t, topic, commit.Enum(), u64(0))
	b.EndTxnOnPartition.TxnidMostBits, b.EndTxnOnPartition.TxnidLeastBits = nil, nil
	r.request("ids absent", y, b)
}

// endUnloadedPartition ends on topics that are not loaded.
func endUnloadedPartition(r *recording, x *connection) {
	for _, act := range []pulsarproto.TxnAction{commit, abort} {
		nl := r.topic("g2-notloaded-" + act.String())
		z := r.coordinator()
		pz := r.producer(z, nl, true)
		cz := r.subscribe(z, nl, "s", pulsarproto.CommandSubscribe_Shared, 0)
		tz := r.newTxn(z, "Tnl")
		r.send("not loaded "+act.String()+": send", z, pz, "m1", in(&tz, inMetadata))
		r.send("not loaded "+act.String()+": send", z, pz, "p1", sendOptions{})
		_ = cz
		z.close()
		time.Sleep(300 * time.Millisecond)
		code := r.unload(nl).code
		r.line("not loaded "+act.String(), "admin unload", fmt.Sprint("HTTP ", code))
		r.request("not loaded "+act.String(), x, endOnPartitionCommand(tz, nl, act.Enum(), u64(0)))
		r.request("not loaded "+act.String()+": again", x, endOnPartitionCommand(tz, nl, act.Enum(), u64(0)))
		cx := r.subscribe(x, nl, "s", pulsarproto.CommandSubscribe_Shared, 1000)
		r.receive("not loaded "+act.String()+": received", x, cx, "")
	}
	r.unsolicited("events", x, 0)
}
