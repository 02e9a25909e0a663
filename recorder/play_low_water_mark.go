package recorder

import (
	"fmt"
	"time"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// playLowWaterMark raises low water marks and reloads topics.
func playLowWaterMark(r *recording) {
	x := r.coordinator()
	for place := inCommand; place <= inMetadata; place++ {
		v := placeNames[place] + ": "
		setup := func(name string) (string, uint64, uint64, txn.ID, txn.ID, txn.ID, txn.ID) {
			topic := r.topic(fmt.Sprintf("g3-%s-%d", name, place))
			p := r.producer(x, topic, true)
			c := r.subscribe(x, topic, "s", pulsarproto.CommandSubscribe_Shared, 1000)
			a, b, d, e := r.newTxn(x, "Ta"), r.newTxn(x, "Tb"), r.newTxn(x, "Td"), r.newTxn(x, "Te")
			r.send("", x, p, "a", in(&a, place))
			r.send("", x, p, "b", in(&b, place))
			r.send("", x, p, "d", in(&d, place))
			r.send("", x, p, "e", in(&e, place))
			return topic, p, c, a, b, d, e
		}
		topic, p, c, a, b, d, e := setup("visible")
		r.request(v+"commit d with low watermark b (a, b still open)", x, endOnPartitionCommand(d, topic, commit.Enum(), u64(b.Least)))
		r.receive(v+"received", x, c, "a b d e sent")
		r.send(v+"send with id > watermark", x, p, "e2", in(&e, place))
		r.request(v+"commit e with lower watermark", x, endOnPartitionCommand(e, topic, commit.Enum(), u64(0)))
		r.receive(v+"received", x, c, "")
		r.send(v+"id <= the older, higher watermark", x, p, "b-late", in(&b, place))
		topic, p, c, a, b, d, e = setup("equal")
		x.ask(endOnPartitionCommand(d, topic, commit.Enum(), u64(b.Least)))
		r.send(v+"send with id = watermark", x, p, "b-late", in(&b, place))
		r.send(v+"after one refusal: send with id > watermark", x, p, "e-late", in(&e, place))
		r.send(v+"after one refusal: plain send", x, p, "plain", sendOptions{})
		r.send(v+"after one refusal: other TC", x, p, "tc3", in(&txn.ID{Most: 3, Least: 1}, place))
		y := r.coordinator()
		py := r.producer(y, topic, true)
		n := r.newTxn(y, "Tnew")
		r.send(v+"after one refusal: new txn, new connection", y, py, "new", in(&n, place))
		r.request(v+"after one refusal: commit e", x, endOnPartitionCommand(e, topic, commit.Enum(), u64(0)))
		time.Sleep(3 * time.Second)
		r.send(v+"after one refusal: new txn, 3s later", y, py, "new2", in(&n, place))
		r.receive(v+"after one refusal: received", x, c, "")
		code := r.unload(topic).code
		r.line(v+"after one refusal: admin unload", "", fmt.Sprint("HTTP ", code))
		z := r.coordinator()
		pz := r.producer(z, topic, true)
		r.send(v+"after one refusal: new txn after unload", z, pz, "new3", in(&n, place))
		r.send(v+"watermark after unload: id below it", z, pz, "b-late3", in(&b, place))
		topic, p, c, a, b, d, e = setup("below")
		x.ask(endOnPartitionCommand(d, topic, commit.Enum(), u64(b.Least)))
		r.send(v+"send with id < watermark", x, p, "a-late", in(&a, place))
		topic, p, c, a, b, d, e = setup("negative")
		r.request(v+"watermark 2^64-1", x, endOnPartitionCommand(d, topic, commit.Enum(), u64(1<<64-1)))
		r.send(v+"send after watermark 2^64-1", x, p, "e2", in(&e, place))
		r.receive(v+"watermark 2^64-1: received", x, c, "")
		topic, p, c, a, b, d, e = setup("huge")
		r.request(v+"watermark 2^63-1", x, endOnPartitionCommand(d, topic, commit.Enum(), u64(1<<63-1)))
		r.send(v+"send after watermark 2^63-1", x, p, "e2", in(&e, place))
		r.receive(v+"watermark 2^63-1: received", x, c, "")
		topic, p, c, a, b, d, e = setup("otherTC")
		r.request(v+"watermark of TC 3", x, endOnPartitionCommand(txn.ID{Most: 3, Least: 5}, topic, commit.Enum(), u64(1<<40)))
		r.send(v+"send after watermark of TC 3", x, p, "e2", in(&e, place))
		r.receive(v+"watermark of TC 3: received", x, c, "")
		_, _, _, _, _, _, _ = topic, p, c, a, b, d, e
		// swept by the coordinator's own watermark
		topic, p, c, a, b, d, e = setup("below2")
		r.request(v+"end of an id below the watermark", x, endOnPartitionCommand(d, topic, commit.Enum(), u64(b.Least)))
		r.request(v+"commit a (below the watermark, swept?)", x, endOnPartitionCommand(a, topic, commit.Enum(), u64(0)))
		r.request(v+"commit b (= watermark, swept?)", x, endOnPartitionCommand(b, topic, commit.Enum(), u64(0)))
		r.receive(v+"received", x, c, "")
		r.unsolicited(v+"events", x, 0)
	}
	// reload
	for place := inCommand; place <= inMetadata; place++ {
		v := placeNames[place] + ": reload: "
		topic := r.topic(fmt.Sprint("g3-reload-", place))
		z := r.coordinator()
		p := r.producer(z, topic, true)
		r.subscribe(z, topic, "s", pulsarproto.CommandSubscribe_Shared, 0)
		a, b, d := r.newTxn(z, "Tcommit"), r.newTxn(z, "Tabort"), r.newTxn(z, "Topen")
		r.send("", z, p, "committed", in(&a, place))
		r.send("", z, p, "aborted", in(&b, place))
		r.send("", z, p, "plain", sendOptions{})
		z.ask(endOnPartitionCommand(a, topic, commit.Enum(), u64(0)))
		z.ask(endOnPartitionCommand(b, topic, abort.Enum(), u64(0)))
		r.send("", z, p, "open", in(&d, place))
		r.send("", z, p, "behind-open", sendOptions{})
		z.close()
		time.Sleep(300 * time.Millisecond)
		code := r.unload(topic).code
		r.line(v+"unload", "admin", fmt.Sprint("HTTP ", code))
		c := r.subscribe(x, topic, "s", pulsarproto.CommandSubscribe_Shared, 1000)
		r.receive(v+"received after reload", x, c, "sent: committed aborted plain open behind-open")
		r.request(v+"abort open", x, endOnPartitionCommand(d, topic, abort.Enum(), u64(0)))
		r.receive(v+"received after abort of open", x, c, "")
	}
}
