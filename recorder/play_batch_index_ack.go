package recorder

import (
	"fmt"
	"time"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// playBatchIndexAck acknowledges single messages of a batch in transactions.
func playBatchIndexAck(r *recording) {
	x := r.coordinator()
	ackIndexes(r, x)
	ackAllIndexes(r, x)
	ackIndexOfPendingEntry(r, x)
}

// ackIndexes lets transactions compete for the messages of a batch.
func ackIndexes(r *recording, x *connection) {
	topic := r.topic("g6")
	p := r.producer(x, topic, true)
	c := r.subscribe(x, topic, "s", pulsarproto.CommandSubscribe_Shared, 1000)
	r.send("send", x, p, "b", sendOptions{batch: 4})
	r.send("send", x, p, "d", sendOptions{batch: 4})
	ms := r.receive("received", x, c, "")
	if len(ms) < 2 {
		return
	}
	id, id2 := ms[0].id, ms[1].id
	t1, t2, t3 := r.newTxn(x, "T1"), r.newTxn(x, "T2"), r.newTxn(x, "T3")
	r.ackIndex(x, "index 0 by T1", "b ack_set=1110 batch_size=4", c, &t1, batchIndex(id, 0b1110, 4))
	r.ackIndex(x, "index 0 by T2", "b ack_set=1110 batch_size=4", c, &t2, batchIndex(id, 0b1110, 4))
	r.ackIndex(x, "index 0 by T1 again", "b ack_set=1110 batch_size=4", c, &t1, batchIndex(id, 0b1110, 4))
	r.ackIndex(x, "index 1 by T2", "b ack_set=1101 batch_size=4", c, &t2, batchIndex(id, 0b1101, 4))
	r.ackIndex(x, "index 1,2 by T3 (overlaps)", "b ack_set=1001 batch_size=4", c, &t3, batchIndex(id, 0b1001, 4))
	r.ackIndex(x, "whole entry by T3 (overlaps)", "b no ack_set", c, &t3, id)
	r.ackIndex(x, "index 2 plain", "b ack_set=1011 batch_size=4", c, nil, batchIndex(id, 0b1011, 4))
	r.ackIndex(x, "index 2 by T3 after plain", "b ack_set=1011 batch_size=4", c, &t3, batchIndex(id, 0b1011, 4))
	x.redeliverAll(c)
	r.receive("redeliver all (0:T1 1:T2 2:acked 3:free)", x, c, "")
	r.request("abort T1", x, endOnSubscriptionCommand(t1, topic, "s", abort.Enum(), u64(0)))
	r.receive("after abort T1", x, c, "without redeliver request")
	x.redeliverAll(c)
	r.receive("after abort T1", x, c, "redeliver all")
	r.request("commit T2", x, endOnSubscriptionCommand(t2, topic, "s", commit.Enum(), u64(0)))
	x.redeliverAll(c)
	r.receive("after commit T2", x, c, "redeliver all")
	r.ackIndex(x, "no batch_size: index 0 of d by T1", "d ack_set=1110", c, &t1, batchIndex(id2, 0b1110, 0))
	r.ackIndex(x, "no batch_size: index 0 of d by T2", "d ack_set=1110", c, &t2, batchIndex(id2, 0b1110, 0))
	r.ackIndex(x, "no batch_size: index 1 of d by T2", "d ack_set=1101", c, &t2, batchIndex(id2, 0b1101, 0))
	x.redeliverAll(c)
	r.receive("no batch_size: redeliver all", x, c, "")
	r.request("no batch_size: commit T1", x, endOnSubscriptionCommand(t1, topic, "s", commit.Enum(), u64(0)))
	x.redeliverAll(c)
	r.receive("no batch_size: after commit T1, redeliver all", x, c, "")
	r.ackIndex(x, "remaining of d by T3", "d ack_set=0011 batch_size=4", c, &t3, batchIndex(id2, 0b0011, 4))
	r.request("commit T2 again with d", x, endOnSubscriptionCommand(t2, topic, "s", commit.Enum(), u64(0)))
	r.request("commit T3", x, endOnSubscriptionCommand(t3, topic, "s", commit.Enum(), u64(0)))
	x.redeliverAll(c)
	r.receive("at the end, redeliver all", x, c, "")
}

// ackAllIndexes acknowledges a batch message by message.
func ackAllIndexes(r *recording, x *connection) {
	topic := r.topic("g6-e")
	p := r.producer(x, topic, true)
	c := r.subscribe(x, topic, "s", pulsarproto.CommandSubscribe_Shared, 1000)
	r.send("send", x, p, "e", sendOptions{batch: 2})
	ms := r.receive("received", x, c, "")
	if len(ms) == 1 {
		te := r.newTxn(x, "Te")
		r.ackIndex(x, "e: index 0", "e ack_set=10 batch_size=2", c, &te, batchIndex(ms[0].id, 0b10, 2))
		r.ackIndex(x, "e: index 1", "e ack_set=01 batch_size=2", c, &te, batchIndex(ms[0].id, 0b01, 2))
		x.redeliverAll(c)
		r.receive("e: pending, redeliver all", x, c, "")
		r.request("e: commit Te", x, endOnSubscriptionCommand(te, topic, "s", commit.Enum(), u64(0)))
		x.redeliverAll(c)
		r.receive("e: committed, redeliver all", x, c, "")
	}
}

// ackIndexOfPendingEntry acknowledges one message of a batch that a transaction holds whole.
func ackIndexOfPendingEntry(r *recording, x *connection) {
	for _, plain := range []bool{false, true} {
		z := r.coordinator()
		n := fmt.Sprintf("whole entry pending, then one index (plain=%v): ", plain)
		topic := r.topic(fmt.Sprint("g6-f-", plain))
		pz := r.producer(z, topic, true)
		cz := r.subscribe(z, topic, "s", pulsarproto.CommandSubscribe_Shared, 1000)
		r.send("", z, pz, "f", sendOptions{batch: 2})
		ms := r.receive(n+"received", z, cz, "")
		if len(ms) != 1 {
			continue
		}
		tf, tg := r.newTxn(z, "Tf"), r.newTxn(z, "Tg")
		q := z.start(ackCommand(cz, individual, &tf, ms[0].id))
		q.description = "ACK f txn=" + r.txnName(&tf)
		r.finish(n+"whole", q, 5*time.Second)
		other := &tg
		if plain {
			other = nil
		}
		q = z.start(ackCommand(cz, individual, other, batchIndex(ms[0].id, 0b10, 2)))
		q.description = "ACK f ack_set=10 batch_size=2"
		r.finish(n+"index 0", q, 5*time.Second)
		time.Sleep(300 * time.Millisecond)
		if z.isClosed() {
			r.line(n+"connection", "", "CONNECTION CLOSED")
			z = r.coordinator()
			cz = r.subscribe(z, topic, "s", pulsarproto.CommandSubscribe_Shared, 1000)
			r.receive(n+"new consumer received", z, cz, "")
		}
		r.request(n+"abort Tf", z, endOnSubscriptionCommand(tf, topic, "s", abort.Enum(), u64(0)))
		r.receive(n+"after abort Tf", z, cz, "")
		z.redeliverAll(cz)
		r.receive(n+"after abort Tf, redeliver all", z, cz, "")
	}
}

// ackIndex acknowledges messages of a batch, or all of it, and records the answer.
func (r *recording) ackIndex(x *connection, step, what string, consumer uint64, id *txn.ID, index *pulsarproto.MessageIdData) {
	r.ackAs(x, step, "ACK "+what, ackCommand(consumer, individual, id, index), id)
}
