package recorder

import (
	"fmt"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

const adminBase = "/admin/v3/transactions"

// adminPlay asks about one transaction with a message and an acknowledgement.
type adminPlay struct {
	*recording
	x        *connection
	topic    string
	producer uint64
	message  *pulsarproto.MessageIdData // acknowledged in the transaction; nil if it never came
	id       txn.ID
}

// playAdmin asks the admin REST.
func playAdmin(r *recording) {
	a := &adminPlay{recording: r, x: r.coordinator(), topic: r.topic("k")}
	a.fill()
	a.askCoordinator()
	a.askParticipants()
	a.askEnded()
	a.abortTransactions()
	a.askOddly()
}

func (a *adminPlay) get(step, path string) { a.rest(step, "GET", adminBase+path, "") }

func (a *adminPlay) post(step, path, body string) { a.rest(step, "POST", adminBase+path, body) }

func metadataPath(id txn.ID) string {
	return fmt.Sprintf("/transactionMetadata/%d/%d", id.Most, id.Least)
}

func inBufferPath(id txn.ID, topic string) string {
	return fmt.Sprintf("/transactionInBufferStats/%s/%d/%d", restName(topic), id.Most, id.Least)
}

func inPendingAckPath(id txn.ID, topic, subscription string) string {
	return fmt.Sprintf("/transactionInPendingAckStats/%s/%s/%d/%d", restName(topic), subscription, id.Most, id.Least)
}

func abortPath(id txn.ID) string {
	return fmt.Sprintf("/abortTransaction/%d/%d", id.Most, id.Least)
}

// fill makes the transaction.
func (a *adminPlay) fill() {
	a.producer = a.recording.producer(a.x, a.topic, true)
	consumer := a.subscribe(a.x, a.topic, "s", pulsarproto.CommandSubscribe_Shared, 1000)
	a.send("", a.x, a.producer, "m1", sendOptions{})
	if messages := a.x.receive(consumer, quiet); len(messages) == 1 {
		a.message = messages[0].id
	}
	a.id = a.newTxn(a.x, "T1")
	a.get("metadata, no participants", metadataPath(a.id))
	a.x.ask(addPartitionsCommand(a.id, a.topic))
	a.x.ask(addSubscriptionsCommand(a.id, a.topic, "s"))
	a.get("metadata, registered only", metadataPath(a.id))
	a.send("", a.x, a.producer, "t1", in(&a.id, inMetadata))
	if a.message != nil {
		a.x.ask(ackCommand(consumer, individual, &a.id, a.message))
	}
}

// askCoordinator asks the coordinator's side.
func (a *adminPlay) askCoordinator() {
	a.get("coordinators", "/coordinators")
	a.get("coordinatorStats", "/coordinatorStats")
	a.get("coordinatorStats/0", "/coordinatorStats/0")
	a.get("coordinatorStats?coordinatorId=0", "/coordinatorStats?coordinatorId=0")
	a.get("coordinatorStats?coordinatorId=77", "/coordinatorStats?coordinatorId=77")
	a.get("coordinatorInternalStats/0", "/coordinatorInternalStats/0")
	a.get("coordinatorInternalStats/0?metadata=true", "/coordinatorInternalStats/0?metadata=true")
	a.get("coordinatorInternalStats/77", "/coordinatorInternalStats/77")
	a.get("metadata, live", metadataPath(a.id))
	a.get("metadata, unknown id", metadataPath(txn.ID{Most: 0, Least: a.name(1<<40, "2^40")}))
	a.get("metadata, unknown tc", metadataPath(txn.ID{Most: 77, Least: 1}))
	a.get("metadata, not a number", "/transactionMetadata/0/abc")
	a.get("metadata, negative", "/transactionMetadata/0/-1")
	a.get("slowTransactions/10000", "/slowTransactions/10000")
	a.get("slowTransactions/10000?coordinatorId=0", "/slowTransactions/10000?coordinatorId=0")
	a.get("slowTransactions/10000?coordinatorId=77", "/slowTransactions/10000?coordinatorId=77")
	a.get("slowTransactions/700000", "/slowTransactions/700000")
}

// askParticipants asks the topic's and the subscription's side.
func (a *adminPlay) askParticipants() {
	a.get("inBufferStats, live", inBufferPath(a.id, a.topic))
	a.get("inBufferStats, unknown txn", inBufferPath(txn.ID{Most: 0, Least: 1 << 40}, a.topic))
	a.get("inBufferStats, unknown topic", inBufferPath(a.id, a.recording.topic("k-missing")))
	a.get("inPendingAckStats, live", inPendingAckPath(a.id, a.topic, "s"))
	a.get("inPendingAckStats, unknown txn", inPendingAckPath(txn.ID{Most: 0, Least: 1 << 40}, a.topic, "s"))
	a.get("inPendingAckStats, unknown subscription", inPendingAckPath(a.id, a.topic, "nope"))
	a.get("bufferStats", "/transactionBufferStats/"+restName(a.topic))
	a.get("bufferStats full", "/transactionBufferStats/"+restName(a.topic)+"?lowWaterMarks=true&segmentStats=true")
	a.get("bufferStats, unknown topic", "/transactionBufferStats/"+restName(a.recording.topic("k-missing")))
	a.get("pendingAckStats", "/pendingAckStats/"+restName(a.topic)+"/s")
	a.get("pendingAckStats full", "/pendingAckStats/"+restName(a.topic)+"/s?lowWaterMarks=true")
	a.get("pendingAckStats, unknown subscription", "/pendingAckStats/"+restName(a.topic)+"/nope")
	a.get("pendingAckInternalStats", "/pendingAckInternalStats/"+restName(a.topic)+"/s")
	a.get("bufferInternalStats", "/transactionBufferInternalStats/"+restName(a.topic))
	if a.message == nil {
		return
	}
	position := fmt.Sprintf("%s/s/%d/%d", restName(a.topic), a.message.GetLedgerId(), a.message.GetEntryId())
	next := fmt.Sprintf("%s/s/%d/%d", restName(a.topic), a.message.GetLedgerId(), a.message.GetEntryId()+1)
	a.get("positionStats, pending", "/pendingAckStats/"+position)
	a.get("positionStatsInPendingAck, pending", "/positionStatsInPendingAck/"+position)
	a.get("positionStatsInPendingAck, other", "/positionStatsInPendingAck/"+next)
}

// askEnded asks about transactions that have ended.
func (a *adminPlay) askEnded() {
	a.request("commit", a.x, endTxnCommand(a.id, commit.Enum()))
	a.get("metadata, ended", metadataPath(a.id))
	a.get("inBufferStats, committed", inBufferPath(a.id, a.topic))
	a.get("inPendingAckStats, committed", inPendingAckPath(a.id, a.topic, "s"))
	a.id = a.newTxn(a.x, "T2")
	a.x.ask(addPartitionsCommand(a.id, a.topic))
	a.send("", a.x, a.producer, "t2", in(&a.id, inMetadata))
	a.x.ask(endTxnCommand(a.id, abort.Enum()))
	a.get("inBufferStats, aborted", inBufferPath(a.id, a.topic))
}

// abortTransactions aborts transactions of every state.
func (a *adminPlay) abortTransactions() {
	a.id = a.newTxn(a.x, "T3")
	a.post("abort open", abortPath(a.id), "")
	a.post("abort again", abortPath(a.id), "")
	a.state("aborted by admin", a.id)
	a.request("commit after admin abort", a.x, endTxnCommand(a.id, commit.Enum()))
	a.id = a.newTxn(a.x, "T4")
	a.x.ask(endTxnCommand(a.id, commit.Enum()))
	a.post("abort committed", abortPath(a.id), "")
	a.post("abort unknown", abortPath(txn.ID{Most: 0, Least: 1 << 40}), "")
	a.post("abort unknown tc", abortPath(txn.ID{Most: 77, Least: 1}), "")
}

// askOddly changes the number of coordinators in ways that do not work, and uses paths that are not there.
func (a *adminPlay) askOddly() {
	a.post("replicas lower", "/transactionCoordinator/replicas", "1")
	a.post("replicas 0", "/transactionCoordinator/replicas", "0")
	a.post("replicas not a number", "/transactionCoordinator/replicas", "\"a.x\"")
	a.get("unknown path", "/nothing")
	a.post("wrong method", "/coordinators", "")
	a.rest("v2 base", "GET", "/admin/v2/transactions/coordinators", "")
	a.rest("brokers ready", "GET", "/admin/v2/brokers/ready", "")
	a.rest("brokers health", "GET", "/admin/v2/brokers/health", "")
}
