package recorder

import (
	"fmt"
	"strings"
	"time"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// playAddPartitions registers topics, good ones and bad ones.
func playAddPartitions(r *recording) {
	x := r.coordinator()
	addTopics(r, x)
	addPartitions(r, x)
	addInStates(r, x)
	addMany(r, x)
	addWithoutConnect(r, x)
	addPipelined(r, x)
}

// addTopics registers names of every kind.
func addTopics(r *recording, x *connection) {
	y := r.dial()
	y.close()
	r.producer(x, r.topic("c-real"), true)
	t := r.newTxn(x, "T1")
	r.request("empty-list", x, addPartitionsCommand(t))
	r.request("one", x, addPartitionsCommand(t, r.topic("c-real")))
	r.request("same-again", x, addPartitionsCommand(t, r.topic("c-real")))
	r.request("same-twice-in-one", x, addPartitionsCommand(t, r.topic("c-real"), r.topic("c-real")))
	r.request("missing-topic", x, addPartitionsCommand(t, r.topic("c-missing")))
	r.request("short-name", x, addPartitionsCommand(t, "or-"+r.target.Run+"-short"))
	r.request("fields", x, withUnknown(addPartitionsCommand(t, r.topic("c-real")), varintField(5, 1)))
	r.state("state", t)
	r.request("end-commit", x, endTxnCommand(t, commit.Enum()))
	for _, v := range [][2]string{{"invalid-scheme", "foo://a/b/c"}, {"empty-name", ""}, {"spaces", "  "}, {"too-many-slashes", "persistent://a/b/c/d/e/f"}, {"non-persistent", "non-persistent://public/default/np-" + r.target.Run}, {"name-64k", "persistent://public/default/" + strings.Repeat("x", 65000)}} {
		tt := r.newTxn(x, "T-"+v[0])
		b := addPartitionsCommand(tt, v[1])
		d := r.describe(b)
		if len(d) > 200 {
			d = d[:100] + "..."
		}
		p := x.start(b)
		p.description = d
		r.finish("name-"+v[0], p, answerTimeout)
		r.state("name-"+v[0], tt)
	}
}

// addPartitions registers a partitioned topic and its partitions.
func addPartitions(r *recording, x *connection) {
	r.admin("PUT", "/admin/v2/persistent/public/default/or-"+r.target.Run+"-cpart/partitions", "3")
	t := r.newTxn(x, "Tpart")
	r.request("partitioned-base", x, addPartitionsCommand(t, r.topic("cpart")))
	r.requestWithin("partitioned-base-end", x, endTxnCommand(t, commit.Enum()), 10*time.Second)
	t = r.newTxn(x, "Tpart0")
	r.request("partition-0", x, addPartitionsCommand(t, r.topic("cpart")+"-partition-0"))
	r.requestWithin("partition-0-end", x, endTxnCommand(t, commit.Enum()), 10*time.Second)
	t = r.newTxn(x, "Tpart77")
	r.request("partition-77", x, addPartitionsCommand(t, r.topic("cpart")+"-partition-77"))
	r.requestWithin("partition-77-end", x, endTxnCommand(t, commit.Enum()), 10*time.Second)
}

// addInStates registers in transactions that have ended or never were.
func addInStates(r *recording, x *connection) {
	r.name(1<<40, "2^40")
	r.request("unknown-txn", x, addPartitionsCommand(txn.ID{Most: 0, Least: 1 << 40}, r.topic("c-real")))
	t := r.newTxn(x, "Tc")
	x.ask(endTxnCommand(t, commit.Enum()))
	r.request("committed-txn", x, addPartitionsCommand(t, r.topic("c-real")))
	t = r.newTxn(x, "Ta")
	x.ask(endTxnCommand(t, abort.Enum()))
	r.request("aborted-txn", x, addPartitionsCommand(t, r.topic("c-real")))
	t = r.newTxn(x, "Tm")
	r.request("most-unknown-9", x, addPartitionsCommand(txn.ID{Most: 9, Least: t.Least}, r.topic("c-real")))
	b := addPartitionsCommand(t, r.topic("c-real"))
	b.AddPartitionToTxn.TxnidMostBits = nil
	r.request("most-absent", x, b)
	b = addPartitionsCommand(t, r.topic("c-real"))
	b.AddPartitionToTxn.TxnidLeastBits = nil
	r.request("least-absent", x, b)
	b = addPartitionsCommand(t, r.topic("c-real"))
	b.AddPartitionToTxn.TxnidLeastBits, b.AddPartitionToTxn.TxnidMostBits = nil, nil
	r.request("both-absent", x, b)
}

// addMany registers ten thousand names at once.
func addMany(r *recording, x *connection) {
	var many []string
	for i := 0; i < 10000; i++ {
		many = append(many, r.topic(fmt.Sprint("c-many-", i)))
	}
	t := r.newTxn(x, "Tmany")
	r.request("10000-names", x, addPartitionsCommand(t, many...))
}

// addWithoutConnect registers on a connection that knows no coordinator.
func addWithoutConnect(r *recording, x *connection) {
	t := r.newTxn(x, "Tmany")
	z := r.dial()
	r.request("no-tc-connect", z, addPartitionsCommand(t, r.topic("c-real")))
}

// addPipelined registers before and behind an end, without waiting.
func addPipelined(r *recording, x *connection) {
	t := r.newTxn(x, "Tpipe")
	p1, p2, p3 := x.start(addPartitionsCommand(t, r.topic("c-real"))), x.start(endTxnCommand(t, commit.Enum())), x.start(addPartitionsCommand(t, r.topic("c-real")))
	r.finish("pipelined add,end,add: 1", p1, answerTimeout)
	r.finish("pipelined add,end,add: 2", p2, answerTimeout)
	r.finish("pipelined add,end,add: 3", p3, answerTimeout)
}

// playAddSubscriptions registers subscriptions, good ones and bad ones.
func playAddSubscriptions(r *recording) {
	x := r.coordinator()
	topic := r.topic("d")
	r.subscribe(x, topic, "s", pulsarproto.CommandSubscribe_Shared, 0)
	t := r.newTxn(x, "T1")
	r.request("empty-list", x, addSubscriptionsCommand(t))
	r.request("one", x, addSubscriptionsCommand(t, topic, "s"))
	r.request("same-again", x, addSubscriptionsCommand(t, topic, "s"))
	r.request("two", x, addSubscriptionsCommand(t, topic, "s", topic, "s"))
	r.state("state", t)
	r.requestWithin("end", x, endTxnCommand(t, commit.Enum()), 10*time.Second)
	cases := []struct{ n, t, s string }{
		{"unknown-topic", r.topic("d-missing"), "s"},
		{"unknown-subscription", topic, "nope"},
		{"empty-subscription", topic, ""},
		{"empty-topic", "", "s"},
		{"invalid-topic", "foo://a/b/c", "s"},
		{"non-persistent", "non-persistent://public/default/npd-" + r.target.Run, "s"},
		{"missing-namespace", "persistent://public/nons-" + r.target.Run + "/x", "s"},
		{"missing-tenant", "persistent://notenant-" + r.target.Run + "/x/y", "s"},
	}
	for _, c := range cases {
		t = r.newTxn(x, "T-"+c.n)
		r.request(c.n+" add", x, addSubscriptionsCommand(t, c.t, c.s))
		r.requestWithin(c.n+" commit", x, endTxnCommand(t, commit.Enum()), 7*time.Second)
		r.state(c.n+" state", t)
	}
	r.name(1<<40, "2^40")
	r.request("unknown-txn", x, addSubscriptionsCommand(txn.ID{Most: 0, Least: 1 << 40}, topic, "s"))
	t = r.newTxn(x, "Tc")
	x.ask(endTxnCommand(t, commit.Enum()))
	r.request("committed-txn", x, addSubscriptionsCommand(t, topic, "s"))
	t = r.newTxn(x, "Ta")
	x.ask(endTxnCommand(t, abort.Enum()))
	r.request("aborted-txn", x, addSubscriptionsCommand(t, topic, "s"))
	t = r.newTxn(x, "Tm")
	r.request("most-unknown-9", x, addSubscriptionsCommand(txn.ID{Most: 9, Least: t.Least}, topic, "s"))
	b := addSubscriptionsCommand(t, topic, "s")
	b.AddSubscriptionToTxn.TxnidMostBits = nil
	r.request("most-absent", x, b)
	// Subscription without its required fields
	b = addSubscriptionsCommand(t, topic, "s")
	b.AddSubscriptionToTxn.Subscription[0].Subscription = nil
	r.request("subscription-field-absent", x, b)
}
