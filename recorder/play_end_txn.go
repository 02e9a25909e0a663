package recorder

import (
	"fmt"
	"strings"
	"time"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// playEndTxn ends transactions, once, again and contrarily.
func playEndTxn(r *recording) {
	x := r.coordinator()
	endPlain(r, x)
	endWithoutConnect(r, x)
	endWithParticipant(r, x)
}

// endPlain ends transactions without participants.
func endPlain(r *recording, x *connection) {
	t := r.newTxn(x, "T1")
	r.request("commit", x, endTxnCommand(t, commit.Enum()))
	r.request("commit-again", x, endTxnCommand(t, commit.Enum()))
	time.Sleep(3 * time.Second)
	r.request("commit-after-3s", x, endTxnCommand(t, commit.Enum()))
	r.request("abort-after-commit", x, endTxnCommand(t, abort.Enum()))
	t = r.newTxn(x, "T2")
	r.request("abort", x, endTxnCommand(t, abort.Enum()))
	r.request("abort-again", x, endTxnCommand(t, abort.Enum()))
	r.request("commit-after-abort", x, endTxnCommand(t, commit.Enum()))
	r.name(1<<40, "2^40")
	r.name(1<<64-1, "2^64-1")
	r.name(1<<63, "2^63")
	r.request("unknown-above", x, endTxnCommand(txn.ID{Most: 0, Least: 1 << 40}, commit.Enum()))
	r.request("unknown-2^63", x, endTxnCommand(txn.ID{Most: 0, Least: 1 << 63}, commit.Enum()))
	r.request("unknown-2^64-1", x, endTxnCommand(txn.ID{Most: 0, Least: 1<<64 - 1}, abort.Enum()))
	t = r.newTxn(x, "T3")
	x.ask(endTxnCommand(t, commit.Enum()))
	r.newTxn(x, "T4")
	r.request("unknown-below", x, endTxnCommand(t, commit.Enum()))
	r.request("unknown-tc-5", x, endTxnCommand(txn.ID{Most: 5, Least: t.Least}, commit.Enum()))
	r.request("unknown-tc-2^63", x, endTxnCommand(txn.ID{Most: 1 << 63, Least: t.Least}, commit.Enum()))
	t = r.newTxn(x, "T5")
	b := endTxnCommand(t, commit.Enum())
	b.EndTxn.TxnidMostBits = nil
	r.request("most-absent", x, b)
	t = r.newTxn(x, "T6")
	b = endTxnCommand(t, commit.Enum())
	b.EndTxn.TxnidLeastBits = nil
	r.request("least-absent", x, b)
	b = endTxnCommand(t, commit.Enum())
	b.EndTxn.TxnidLeastBits, b.EndTxn.TxnidMostBits = nil, nil
	r.request("both-absent", x, b)
	r.state("T6 after", t)
	t = r.newTxn(x, "T7")
	r.request("field5-string", x, withUnknown(endTxnCommand(t, commit.Enum()), stringField(5, "my-client")))
	t = r.newTxn(x, "T8")
	r.request("field5-varint", x, withUnknown(endTxnCommand(t, commit.Enum()), varintField(5, 1)))
	t = r.newTxn(x, "T9")
	y := r.coordinator()
	r.request("action-absent", y, endTxnCommand(t, nil))
	r.state("action-absent", t)
	y = r.coordinator()
	r.request("action-7", y, withUnknown(endTxnCommand(t, nil), varintField(4, 7)))
	r.state("action-7", t)
	if y.isClosed() {
		y = r.coordinator()
	}
	r.request("end-T9-after", y, endTxnCommand(t, commit.Enum()))
}

// endWithoutConnect ends on a connection that knows no coordinator.
func endWithoutConnect(r *recording, x *connection) {
	t := r.newTxn(x, "T10")
	z := r.dial()
	r.request("no-tc-connect", z, endTxnCommand(t, commit.Enum()))
}

// endWithParticipant ends transactions that a topic takes part in.
func endWithParticipant(r *recording, x *connection) {
	topic := r.topic("e-real")
	r.producer(x, topic, true)
	t := r.newTxn(x, "T11")
	x.ask(addPartitionsCommand(t, topic))
	r.request("one-participant-nothing-sent commit", x, endTxnCommand(t, commit.Enum()))
	t = r.newTxn(x, "T12")
	x.ask(addPartitionsCommand(t, topic))
	r.request("one-participant-nothing-sent abort", x, endTxnCommand(t, abort.Enum()))
	r.request("one-participant abort again", x, endTxnCommand(t, abort.Enum()))
}

// playEndTxnOddParticipants ends transactions whose participants are odd or gone.
func playEndTxnOddParticipants(r *recording) {
	x := r.coordinator()
	endOdd(r, x)
	endUnloaded(r, x)
	endDeleted(r)
}

// endOdd ends with names of every kind.
func endOdd(r *recording, x *connection) {
	topic := r.topic("e2")
	r.subscribe(x, topic, "s", pulsarproto.CommandSubscribe_Shared, 0)
	r.admin("PUT", "/admin/v2/persistent/public/default/or-"+r.target.Run+"-e2part/partitions", "2")
	cases := []struct {
		n, t, s string
		wait    time.Duration
	}{
		{"missing-topic", r.topic("e2-missing"), "", 8 * time.Second},
		{"missing-topic-2", r.topic("e2-missing2"), "", 8 * time.Second},
		{"missing-namespace", "persistent://public/nons-" + r.target.Run + "/x", "", 8 * time.Second},
		{"missing-tenant", "persistent://notenant-" + r.target.Run + "/x/y", "", 8 * time.Second},
		{"invalid-scheme", "foo://a/b/c", "", 8 * time.Second},
		{"empty-name", "", "", 8 * time.Second},
		{"short-name", "or-" + r.target.Run + "-e2short", "", 8 * time.Second},
		{"partitioned-base", r.topic("e2part"), "", 8 * time.Second},
		{"non-persistent", "non-persistent://public/default/np2-" + r.target.Run, "", 8 * time.Second},
		{"missing-subscription", topic, "nope", 8 * time.Second},
		{"subscription-of-missing-topic", r.topic("e2-missing3"), "s", 8 * time.Second},
		{"subscription-empty", topic, "", 8 * time.Second},
		{"system-topic", assignTopic + "-partition-0", "", 8 * time.Second},
		{"tc-log-topic", "persistent://pulsar/system/__transaction_log_0", "", 8 * time.Second},
	}
	for _, act := range []pulsarproto.TxnAction{commit, abort} {
		for _, c := range cases {
			if act == abort && !strings.HasPrefix(c.n, "missing") && c.n != "invalid-scheme" && c.n != "empty-name" {
				continue
			}
			t := r.newTxn(x, "T")
			n := c.n + " " + act.String()
			if c.s == "" && c.n != "subscription-empty" {
				r.request(n+": add", x, addPartitionsCommand(t, c.t))
			} else {
				r.request(n+": add", x, addSubscriptionsCommand(t, c.t, c.s))
			}
			r.requestWithin(n+": end", x, endTxnCommand(t, act.Enum()), c.wait)
			if x.isClosed() {
				x = r.coordinator()
			}
			r.requestWithin(n+": end again", x, endTxnCommand(t, act.Enum()), 2*time.Second)
			o := pulsarproto.TxnAction(1 - int32(act))
			r.requestWithin(n+": opposite", x, endTxnCommand(t, o.Enum()), 2*time.Second)
			r.requestWithin(n+": add now", x, addPartitionsCommand(t, topic), 2*time.Second)
			if c.n == "missing-topic" {
				code := r.admin("GET", "/admin/v2/persistent/public/default/or-"+r.target.Run+"-e2-missing/stats", "").code
				r.line(n+": was the topic created", "GET topic stats", fmt.Sprint("HTTP ", code))
			}
		}
	}
}

// endUnloaded ends with a topic that is not loaded.
func endUnloaded(r *recording, x *connection) {
	un := r.topic("e2-unloaded")
	p := r.producer(x, un, true)
	r.send("", x, p, "m", sendOptions{})
	time.Sleep(200 * time.Millisecond)
	y := r.coordinator()
	x.ask(&pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_CLOSE_PRODUCER.Enum(), CloseProducer: &pulsarproto.CommandCloseProducer{ProducerId: &p}})
	code := r.unload(un).code
	r.line("exists-not-loaded", "admin unload topic", fmt.Sprint("HTTP ", code))
	t := r.newTxn(y, "Tu")
	y.ask(addPartitionsCommand(t, un))
	r.requestWithin("exists-not-loaded commit", y, endTxnCommand(t, commit.Enum()), 8*time.Second)
	t = r.newTxn(y, "Tu2")
	y.ask(addSubscriptionsCommand(t, un, "nosub"))
	r.unload(un)
	r.requestWithin("exists-not-loaded subscription commit", y, endTxnCommand(t, commit.Enum()), 8*time.Second)
}

// endDeleted ends with a topic that was deleted.
func endDeleted(r *recording) {
	y := r.coordinator()
	del := r.topic("e2-deleted")
	p := r.producer(y, del, true)
	t := r.newTxn(y, "Td")
	y.ask(addPartitionsCommand(t, del))
	r.send("", y, p, "m", sendOptions{txn: &t, metadata: &t})
	answer := r.admin("DELETE", "/admin/v2/persistent/public/default/or-"+r.target.Run+"-e2-deleted?force=true", "")
	r.line("deleted-after-send", "admin delete topic", fmt.Sprint("HTTP ", answer.code, " ", answer.body))
	r.requestWithin("deleted-after-send commit", y, endTxnCommand(t, commit.Enum()), 8*time.Second)
	r.unsolicited("deleted-after-send events", y, 0)
}
