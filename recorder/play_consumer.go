package recorder

import (
	"fmt"
	"time"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

// playConsumer asks for the last message id, seeks, unsubscribes and closes beside open transactions.
func playConsumer(r *recording) {
	x := r.coordinator()
	askLastID(r, x)
	seekBesideTxn(r, x)
	unsubscribeAndReturn(r, x)
	unsubscribeForGood(r, x)
	closeBesideTxn(r, x)
	countRedeliveries(r, x)
}

// askLastID asks for the last message id in every state of the tail.
func askLastID(r *recording, x *connection) {
	names := map[string]string{}
	send := func(producer uint64, content string, options sendOptions) {
		if a := r.send("", x, producer, content, options); a.ok() {
			names[positionKey(a.frame.command.SendReceipt.MessageId)] = content
		}
	}
	for place := inCommand; place <= inMetadata; place++ {
		v := placeNames[place] + ": last id: "
		topic := r.topic(fmt.Sprint("h-last-", place))
		p := r.producer(x, topic, true)
		c := r.subscribe(x, topic, "s", pulsarproto.CommandSubscribe_Exclusive, 0)
		r.lastID(v+"empty topic", x, c, names)
		t0 := r.newTxn(x, "T0")
		send(p, "first-in-txn", in(&t0, place))
		r.lastID(v+"only an open transaction", x, c, names)
		r.request(v+"abort it", x, endOnPartitionCommand(t0, topic, abort.Enum(), u64(0)))
		r.lastID(v+"only an aborted message", x, c, names)
		send(p, "plain-1", sendOptions{})
		r.lastID(v+"plain", x, c, names)
		t := r.newTxn(x, "T1")
		send(p, "txn-1", in(&t, place))
		send(p, "plain-2", sendOptions{})
		r.lastID(v+"open at the tail (txn-1, plain-2)", x, c, names)
		r.request(v+"commit", x, endOnPartitionCommand(t, topic, commit.Enum(), u64(0)))
		r.lastID(v+"after commit", x, c, names)
		t = r.newTxn(x, "T2")
		send(p, "txn-2", in(&t, place))
		r.request(v+"abort", x, endOnPartitionCommand(t, topic, abort.Enum(), u64(0)))
		r.lastID(v+"after abort of txn-2 at the tail", x, c, names)
		t = r.newTxn(x, "T3")
		send(p, "txn-3", in(&t, place))
		r.request(v+"commit", x, endOnPartitionCommand(t, topic, commit.Enum(), u64(0)))
		r.lastID(v+"after commit of txn-3 at the tail", x, c, names)
		o := in(&t, place)
		_ = o
		b := sendOptions{batch: 3}
		send(p, "batch", b)
		r.lastID(v+"batch of 3 at the tail", x, c, names)
	}
	r.lastID("last id: unknown consumer", x, 999, names)
}

// seekBesideTxn seeks while messages and acknowledgements are pending.
func seekBesideTxn(r *recording, x *connection) {
	for place := inCommand; place <= inMetadata; place++ {
		v := placeNames[place] + ": seek: "
		topic := r.topic(fmt.Sprint("h-seek-", place))
		p := r.producer(x, topic, true)
		c := r.subscribe(x, topic, "s", pulsarproto.CommandSubscribe_Exclusive, 1000)
		for i := 1; i <= 3; i++ {
			r.send("", x, p, fmt.Sprint("m", i), sendOptions{})
		}
		t := r.newTxn(x, "T1")
		r.send("", x, p, "open", in(&t, place))
		r.send("", x, p, "behind", sendOptions{})
		ms := r.receive(v+"received", x, c, "")
		ta := r.newTxn(x, "Tack")
		if len(ms) >= 3 {
			r.request(v+"ack m2 in Tack", x, ackCommand(c, individual, &ta, ms[1].id))
			r.request(v+"plain ack m1", x, ackCommand(c, individual, nil, ms[0].id))
		}
		sk := func(step string, s *pulsarproto.CommandSeek) {
			s.ConsumerId = &c
			r.request(v+step, x, &pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_SEEK.Enum(), Seek: s})
			r.unsolicited(v+step+": events", x, 200*time.Millisecond)
			x.receive(c, 50*time.Millisecond)
			c = r.subscribe(x, topic, "s", pulsarproto.CommandSubscribe_Exclusive, 1000)
			r.receive(v+step+": received after resubscribe", x, c, "")
		}
		sk("earliest", &pulsarproto.CommandSeek{MessageId: &pulsarproto.MessageIdData{LedgerId: u64(1<<64 - 1), EntryId: u64(1<<64 - 1)}})
		if len(ms) >= 3 {
			sk("to m3", &pulsarproto.CommandSeek{MessageId: ms[2].id})
		}
		sk("latest", &pulsarproto.CommandSeek{MessageId: &pulsarproto.MessageIdData{LedgerId: u64(1<<63 - 1), EntryId: u64(1<<63 - 1)}})
		sk("time 0", &pulsarproto.CommandSeek{MessagePublishTime: u64(0)})
		r.request(v+"commit open", x, endOnPartitionCommand(t, topic, commit.Enum(), u64(0)))
		r.receive(v+"received after commit", x, c, "")
		r.request(v+"abort Tack after seek", x, endOnSubscriptionCommand(ta, topic, "s", abort.Enum(), u64(0)))
		r.receive(v+"received after abort of Tack", x, c, "")
		r.request(v+"neither id nor time", x, &pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_SEEK.Enum(), Seek: &pulsarproto.CommandSeek{ConsumerId: &c}})
		r.request(v+"unknown consumer", x, &pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_SEEK.Enum(), Seek: &pulsarproto.CommandSeek{ConsumerId: u64(4711), MessagePublishTime: u64(0)}})
	}
}

// unsubscribeAndReturn unsubscribes with a pending acknowledgement and subscribes again.
func unsubscribeAndReturn(r *recording, x *connection) {
	topic := r.topic("h-unsub")
	p := r.producer(x, topic, true)
	c := r.subscribe(x, topic, "s", pulsarproto.CommandSubscribe_Shared, 1000)
	r.send("", x, p, "m1", sendOptions{})
	r.send("", x, p, "m2", sendOptions{})
	ms := r.receive("unsubscribe: received", x, c, "")
	t := r.newTxn(x, "T1")
	x.ask(addSubscriptionsCommand(t, topic, "s"))
	if len(ms) == 2 {
		r.request("unsubscribe: ack m1 in T1", x, ackCommand(c, individual, &t, ms[0].id))
	}
	r.request("unsubscribe", x, unsubscribeCommand(c))
	r.unsolicited("unsubscribe: events", x, 200*time.Millisecond)
	c = r.subscribe(x, topic, "s", pulsarproto.CommandSubscribe_Shared, 1000)
	r.receive("unsubscribe: subscribed again (earliest)", x, c, "")
	r.request("unsubscribe: END_TXN commit", x, endTxnCommand(t, commit.Enum()))
	x.redeliverAll(c)
	r.receive("unsubscribe: after commit, redeliver all", x, c, "")
}

// unsubscribeForGood unsubscribes with a pending acknowledgement.
func unsubscribeForGood(r *recording, x *connection) {
	topic := r.topic("h-unsub2")
	p := r.producer(x, topic, true)
	c := r.subscribe(x, topic, "s", pulsarproto.CommandSubscribe_Shared, 1000)
	r.send("", x, p, "m1", sendOptions{})
	ms := x.receive(c, quiet)
	t := r.newTxn(x, "T1")
	x.ask(addSubscriptionsCommand(t, topic, "s"))
	if len(ms) == 1 {
		r.request("unsubscribe, gone: ack m1 in T1", x, ackCommand(c, individual, &t, ms[0].id))
	}
	r.request("unsubscribe, gone", x, unsubscribeCommand(c))
	r.request("unsubscribe, gone: END_TXN commit", x, endTxnCommand(t, commit.Enum()))
}

// closeBesideTxn closes a consumer whose acknowledgement is pending.
func closeBesideTxn(r *recording, x *connection) {
	for _, typ := range []pulsarproto.CommandSubscribe_SubType{pulsarproto.CommandSubscribe_Shared, pulsarproto.CommandSubscribe_Exclusive} {
		v := "close " + typ.String() + ": "
		topic := r.topic("h-close-" + typ.String())
		p := r.producer(x, topic, true)
		c := r.subscribe(x, topic, "s", typ, 1000)
		for i := 1; i <= 3; i++ {
			r.send("", x, p, fmt.Sprint("m", i), sendOptions{})
		}
		ms := r.receive(v+"received", x, c, "")
		t := r.newTxn(x, "T1")
		if len(ms) == 3 {
			r.request(v+"ack m2 in T1", x, ackCommand(c, individual, &t, ms[1].id))
		}
		r.request(v+"close consumer", x, closeConsumerCommand(c))
		c = r.subscribe(x, topic, "s", typ, 1000)
		r.receive(v+"new consumer", x, c, "")
		r.request(v+"abort", x, endOnSubscriptionCommand(t, topic, "s", abort.Enum(), u64(0)))
		r.receive(v+"after abort", x, c, "without redeliver request")
		// abort while no consumer is there
		ms = nil
		t = r.newTxn(x, "T2")
		x.redeliverAll(c)
		ms = x.receive(c, quiet)
		if len(ms) == 3 {
			r.request(v+"ack first in T2", x, ackCommand(c, individual, &t, ms[0].id))
		}
		r.request(v+"close consumer", x, closeConsumerCommand(c))
		r.request(v+"abort T2 with no consumer", x, endOnSubscriptionCommand(t, topic, "s", abort.Enum(), u64(0)))
		c = r.subscribe(x, topic, "s", typ, 1000)
		r.receive(v+"new consumer after abort", x, c, "")
	}
}

// countRedeliveries aborts the same acknowledgement three times.
func countRedeliveries(r *recording, x *connection) {
	topic := r.topic("h-count")
	p := r.producer(x, topic, true)
	c := r.subscribe(x, topic, "s", pulsarproto.CommandSubscribe_Shared, 1000)
	r.send("", x, p, "m1", sendOptions{})
	ms := r.receive("redelivery count: first", x, c, "")
	for i := 0; i < 3 && len(ms) == 1; i++ {
		t := r.newTxn(x, "T")
		x.ask(ackCommand(c, individual, &t, ms[0].id))
		x.ask(endOnSubscriptionCommand(t, topic, "s", abort.Enum(), u64(0)))
		ms = r.receive("redelivery count: after abort", x, c, "")
	}
	r.unsolicited("events", x, 0)
}

// lastID records GET_LAST_MESSAGE_ID with the positions that contents names.
func (r *recording) lastID(step string, x *connection, consumer uint64, contents map[string]string) {
	p := x.start(&pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_GET_LAST_MESSAGE_ID.Enum(),
		GetLastMessageId: &pulsarproto.CommandGetLastMessageId{ConsumerId: &consumer}})
	a := p.wait(answerTimeout)
	if a.frame == nil || a.frame.command.GetLastMessageIdResponse == nil {
		r.say(step, "GET_LAST_MESSAGE_ID", p, a)
		return
	}
	response := a.frame.command.GetLastMessageIdResponse
	last := response.LastMessageId
	r.line(step, "GET_LAST_MESSAGE_ID", fmt.Sprintf("last=%s batch_index=%d partition=%d mark_delete=%s", positionName(last, contents),
		last.GetBatchIndex(), last.GetPartition(), positionName(response.ConsumerMarkDeletePosition, contents)))
}

// positionKey is the key of a position in a map of contents.
func positionKey(id *pulsarproto.MessageIdData) string {
	return fmt.Sprint(int64(id.GetLedgerId()), ":", int64(id.GetEntryId()))
}

func positionName(id *pulsarproto.MessageIdData, contents map[string]string) string {
	if id == nil {
		return "absent"
	}
	if content, ok := contents[positionKey(id)]; ok {
		return content
	}
	switch {
	case int64(id.GetEntryId()) == -1 && int64(id.GetLedgerId()) == -1:
		return "-1/-1"
	case int64(id.GetEntryId()) == -1:
		return "ledger/-1"
	}
	return fmt.Sprintf("other(entry %d)", id.GetEntryId())
}
