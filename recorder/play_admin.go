package recorder

import (
	"fmt"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// playAdmin asks the admin REST.
func playAdmin(r *recording) {
	x := r.coordinator()
	base := "/admin/v3/transactions"
	topic := r.topic("k")
	p := r.producer(x, topic, true)
	c := r.subscribe(x, topic, "s", pulsarproto.CommandSubscribe_Shared, 1000)
	r.send("", x, p, "m1", sendOptions{})
	ms := x.receive(c, quiet)
	t := r.newTxn(x, "T1")
	tm := func(t txn.ID) string { return fmt.Sprintf("%s/transactionMetadata/%d/%d", base, t.Most, t.Least) }
	r.rest("metadata, no participants", "GET", tm(t), "")
	x.ask(addPartitionsCommand(t, topic))
	x.ask(addSubscriptionsCommand(t, topic, "s"))
	r.rest("metadata, registered only", "GET", tm(t), "")
	r.send("", x, p, "t1", in(&t, inMetadata))
	if len(ms) == 1 {
		x.ask(ackCommand(c, individual, &t, ms[0].id))
	}
	r.rest("coordinators", "GET", base+"/coordinators", "")
	r.rest("coordinatorStats", "GET", base+"/coordinatorStats", "")
	r.rest("coordinatorStats/0", "GET", base+"/coordinatorStats/0", "")
	r.rest("coordinatorStats?coordinatorId=0", "GET", base+"/coordinatorStats?coordinatorId=0", "")
	r.rest("coordinatorStats?coordinatorId=77", "GET", base+"/coordinatorStats?coordinatorId=77", "")
	r.rest("coordinatorInternalStats/0", "GET", base+"/coordinatorInternalStats/0", "")
	r.rest("coordinatorInternalStats/0?metadata=true", "GET", base+"/coordinatorInternalStats/0?metadata=true", "")
	r.rest("coordinatorInternalStats/77", "GET", base+"/coordinatorInternalStats/77", "")
	r.rest("metadata, live", "GET", tm(t), "")
	r.rest("metadata, unknown id", "GET", tm(txn.ID{Most: 0, Least: r.name(1<<40, "2^40")}), "")
	r.rest("metadata, unknown tc", "GET", tm(txn.ID{Most: 77, Least: 1}), "")
	r.rest("metadata, not a number", "GET", base+"/transactionMetadata/0/abc", "")
	r.rest("metadata, negative", "GET", base+"/transactionMetadata/0/-1", "")
	r.rest("slowTransactions/10000", "GET", base+"/slowTransactions/10000", "")
	r.rest("slowTransactions/10000?coordinatorId=0", "GET", base+"/slowTransactions/10000?coordinatorId=0", "")
	r.rest("slowTransactions/10000?coordinatorId=77", "GET", base+"/slowTransactions/10000?coordinatorId=77", "")
	r.rest("slowTransactions/700000", "GET", base+"/slowTransactions/700000", "")
	bs := func(t txn.ID, tp string) string {
		return fmt.Sprintf("%s/transactionInBufferStats/%s/%d/%d", base, restName(tp), t.Most, t.Least)
	}
	ps := func(t txn.ID, tp, s string) string {
		return fmt.Sprintf("%s/transactionInPendingAckStats/%s/%s/%d/%d", base, restName(tp), s, t.Most, t.Least)
	}
	r.rest("inBufferStats, live", "GET", bs(t, topic), "")
	r.rest("inBufferStats, unknown txn", "GET", bs(txn.ID{Most: 0, Least: 1 << 40}, topic), "")
	r.rest("inBufferStats, unknown topic", "GET", bs(t, r.topic("k-missing")), "")
	r.rest("inPendingAckStats, live", "GET", ps(t, topic, "s"), "")
	r.rest("inPendingAckStats, unknown txn", "GET", ps(txn.ID{Most: 0, Least: 1 << 40}, topic, "s"), "")
	r.rest("inPendingAckStats, unknown subscription", "GET", ps(t, topic, "nope"), "")
	r.rest("bufferStats", "GET", base+"/transactionBufferStats/"+restName(topic), "")
	r.rest("bufferStats full", "GET", base+"/transactionBufferStats/"+restName(topic)+"?lowWaterMarks=true&segmentStats=true", "")
	r.rest("bufferStats, unknown topic", "GET", base+"/transactionBufferStats/"+restName(r.topic("k-missing")), "")
	r.rest("pendingAckStats", "GET", base+"/pendingAckStats/"+restName(topic)+"/s", "")
	r.rest("pendingAckStats full", "GET", base+"/pendingAckStats/"+restName(topic)+"/s?lowWaterMarks=true", "")
	r.rest("pendingAckStats, unknown subscription", "GET", base+"/pendingAckStats/"+restName(topic)+"/nope", "")
	r.rest("pendingAckInternalStats", "GET", base+"/pendingAckInternalStats/"+restName(topic)+"/s", "")
	r.rest("bufferInternalStats", "GET", base+"/transactionBufferInternalStats/"+restName(topic), "")
	if len(ms) == 1 {
		id := ms[0].id
		r.rest("positionStats, pending", "GET", fmt.Sprintf("%s/pendingAckStats/%s/s/%d/%d", base, restName(topic), id.GetLedgerId(), id.GetEntryId()), "")
		r.rest("positionStatsInPendingAck, pending", "GET", fmt.Sprintf("%s/positionStatsInPendingAck/%s/s/%d/%d", base, restName(topic), id.GetLedgerId(), id.GetEntryId()), "")
		r.rest("positionStatsInPendingAck, other", "GET", fmt.Sprintf("%s/positionStatsInPendingAck/%s/s/%d/%d", base, restName(topic), id.GetLedgerId(), id.GetEntryId()+1), "")
	}
	r.request("commit", x, endTxnCommand(t, commit.Enum()))
	r.rest("metadata, ended", "GET", tm(t), "")
	r.rest("inBufferStats, committed", "GET", bs(t, topic), "")
	r.rest("inPendingAckStats, committed", "GET", ps(t, topic, "s"), "")
	t = r.newTxn(x, "T2")
	x.ask(addPartitionsCommand(t, topic))
	r.send("", x, p, "t2", in(&t, inMetadata))
	x.ask(endTxnCommand(t, abort.Enum()))
	r.rest("inBufferStats, aborted", "GET", bs(t, topic), "")
	ab := func(t txn.ID) string { return fmt.Sprintf("%s/abortTransaction/%d/%d", base, t.Most, t.Least) }
	t = r.newTxn(x, "T3")
	r.rest("abort open", "POST", ab(t), "")
	r.rest("abort again", "POST", ab(t), "")
	r.state("aborted by admin", t)
	r.request("commit after admin abort", x, endTxnCommand(t, commit.Enum()))
	t = r.newTxn(x, "T4")
	x.ask(endTxnCommand(t, commit.Enum()))
	r.rest("abort committed", "POST", ab(t), "")
	r.rest("abort unknown", "POST", ab(txn.ID{Most: 0, Least: 1 << 40}), "")
	r.rest("abort unknown tc", "POST", ab(txn.ID{Most: 77, Least: 1}), "")
	r.rest("replicas lower", "POST", base+"/transactionCoordinator/replicas", "1")
	r.rest("replicas 0", "POST", base+"/transactionCoordinator/replicas", "0")
	r.rest("replicas not a number", "POST", base+"/transactionCoordinator/replicas", "\"x\"")
	r.rest("unknown path", "GET", base+"/nothing", "")
	r.rest("wrong method", "POST", base+"/coordinators", "")
	r.rest("v2 base", "GET", "/admin/v2/transactions/coordinators", "")
	r.rest("brokers ready", "GET", "/admin/v2/brokers/ready", "")
	r.rest("brokers health", "GET", "/admin/v2/brokers/health", "")
}
