package recorder

import (
	"fmt"
	"time"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// fourTxns is a topic with one message of each of four open transactions, a to e in the order of their ids.
type fourTxns struct {
	topic              string
	producer, consumer uint64
	a, b, d, e         txn.ID
}

func (r *recording) fourTxns(x *connection, name string, place int) *fourTxns {
	f := &fourTxns{topic: r.topic(fmt.Sprintf("g3-%s-%d", name, place))}
	f.producer = r.producer(x, f.topic, true)
	f.consumer = r.subscribe(x, f.topic, "s", pulsarproto.CommandSubscribe_Shared, 1000)
	f.a, f.b, f.d, f.e = r.newTxn(x, "Ta"), r.newTxn(x, "Tb"), r.newTxn(x, "Td"), r.newTxn(x, "Te")
	for i, id := range []*txn.ID{&f.a, &f.b, &f.d, &f.e} {
		r.send("", x, f.producer, "abde"[i:i+1], in(id, place))
	}
	return f
}

// commitWith is the end of a transaction on the topic that carries a low water mark.
func (f *fourTxns) commitWith(id txn.ID, lowWaterMark uint64) *pulsarproto.BaseCommand {
	return endOnPartitionCommand(id, f.topic, commit.Enum(), &lowWaterMark)
}

// playLowWaterMark raises low water marks and reloads topics.
func playLowWaterMark(r *recording) {
	x := r.coordinator()
	for place := inCommand; place <= inMetadata; place++ {
		v := placeNames[place] + ": "
		markBelowOpen(r, x, v, place)
		refuseAtMark(r, x, v, place)
		oddMarks(r, x, v, place)
		endBelowMark(r, x, v, place)
		r.unsolicited(v+"events", x, 0)
	}
	reloadTopics(r, x)
}

// markBelowOpen raises the mark over transactions that are open on the topic.
func markBelowOpen(r *recording, x *connection, v string, place int) {
	f := r.fourTxns(x, "visible", place)
	r.request(v+"commit d with low watermark b (a, b still open)", x, f.commitWith(f.d, f.b.Least))
	r.receive(v+"received", x, f.consumer, "a b d e sent")
	r.send(v+"send with id > watermark", x, f.producer, "e2", in(&f.e, place))
	r.request(v+"commit e with lower watermark", x, f.commitWith(f.e, 0))
	r.receive(v+"received", x, f.consumer, "")
	r.send(v+"id <= the older, higher watermark", x, f.producer, "b-late", in(&f.b, place))
}

// refuseAtMark sends at the mark, and shows what that refusal costs others.
func refuseAtMark(r *recording, x *connection, v string, place int) {
	f := r.fourTxns(x, "equal", place)
	x.ask(f.commitWith(f.d, f.b.Least))
	r.send(v+"send with id = watermark", x, f.producer, "b-late", in(&f.b, place))
	v += "after one refusal: "
	r.send(v+"send with id > watermark", x, f.producer, "e-late", in(&f.e, place))
	r.send(v+"plain send", x, f.producer, "plain", sendOptions{})
	r.send(v+"other TC", x, f.producer, "tc3", in(&txn.ID{Most: 3, Least: 1}, place))
	y := r.coordinator()
	other := r.producer(y, f.topic, true)
	n := r.newTxn(y, "Tnew")
	r.send(v+"new txn, new connection", y, other, "new", in(&n, place))
	r.request(v+"commit e", x, f.commitWith(f.e, 0))
	time.Sleep(3 * time.Second)
	r.send(v+"new txn, 3s later", y, other, "new2", in(&n, place))
	r.receive(v+"received", x, f.consumer, "")
	r.line(v+"admin unload", "", fmt.Sprint("HTTP ", r.unload(f.topic).code))
	z := r.coordinator()
	reloaded := r.producer(z, f.topic, true)
	r.send(v+"new txn after unload", z, reloaded, "new3", in(&n, place))
	r.send(placeNames[place]+": watermark after unload: id below it", z, reloaded, "b-late3", in(&f.b, place))
	f = r.fourTxns(x, "below", place)
	x.ask(f.commitWith(f.d, f.b.Least))
	r.send(placeNames[place]+": send with id < watermark", x, f.producer, "a-late", in(&f.a, place))
}

// oddMarks raises marks beyond every id, and those of another coordinator.
func oddMarks(r *recording, x *connection, v string, place int) {
	for _, odd := range []struct {
		topic, name string
		mark        uint64
		of          *txn.ID // nil: d
	}{{"negative", "2^64-1", 1<<64 - 1, nil}, {"huge", "2^63-1", 1<<63 - 1, nil}, {"otherTC", "of TC 3", 1 << 40, &txn.ID{Most: 3, Least: 5}}} {
		f := r.fourTxns(x, odd.topic, place)
		id := f.d
		if odd.of != nil {
			id = *odd.of
		}
		r.request(v+"watermark "+odd.name, x, f.commitWith(id, odd.mark))
		r.send(v+"send after watermark "+odd.name, x, f.producer, "e2", in(&f.e, place))
		r.receive(v+"watermark "+odd.name+": received", x, f.consumer, "")
	}
}

// endBelowMark ends transactions that the mark has passed.
func endBelowMark(r *recording, x *connection, v string, place int) {
	f := r.fourTxns(x, "below2", place)
	r.request(v+"end of an id below the watermark", x, f.commitWith(f.d, f.b.Least))
	r.request(v+"commit a (below the watermark, swept?)", x, f.commitWith(f.a, 0))
	r.request(v+"commit b (= watermark, swept?)", x, f.commitWith(f.b, 0))
	r.receive(v+"received", x, f.consumer, "")
}

// reloadTopics reloads topics with transactions of every state.
func reloadTopics(r *recording, x *connection) {
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
