package recorder

import (
	"fmt"
	"time"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

// playUnload unloads the coordinator while clients are connected.
func playUnload(r *recording) {
	x := r.coordinator()
	unloadKinds(r, x)
	connectWhileLoading(r, x)
}

// unloadKinds unloads the namespace and the topic.
func unloadKinds(r *recording, x *connection) {
	try := func(v, path string) {
		x := r.coordinator()
		t := r.newTxn(x, "Topen")
		answer := r.admin("PUT", path, "")
		r.line(v+": unload", "admin unload", fmt.Sprint("HTTP ", answer.code, " ", answer.body))
		r.unsolicited(v+": events", x, 300*time.Millisecond)
		r.request(v+": NEW", x, newTxnCommand(u64(60000), u64(0)))
		r.request(v+": ADD", x, addPartitionsCommand(t, r.topic("m")))
		r.request(v+": ADD subscription", x, addSubscriptionsCommand(t, r.topic("m"), "s"))
		r.request(v+": TC connect without lookup", x, tcConnectCommand(0))
		r.request(v+": lookup", x, lookupCommand(assignTopic+"-partition-0"))
		r.request(v+": NEW after lookup", x, newTxnCommand(u64(60000), u64(0)))
		r.request(v+": END", x, endTxnCommand(txn.ID{Most: 0, Least: 1 << 40}, commit.Enum()))
		r.requestWithin(v+": TC connect", x, tcConnectCommand(0), 20*time.Second)
		r.state(v+": state of the open one", t)
		n := r.request(v+": NEW", x, newTxnCommand(u64(60000), u64(0)))
		if n.ok() {
			r.line(v+": id", "new id after that compared with the last one", fmt.Sprintf("%+d", int64(n.frame.command.NewTxnResponse.GetTxnidLeastBits())-int64(t.Least)))
		}
		r.request(v+": END of the old one", x, endTxnCommand(t, commit.Enum()))
	}
	try("namespace unload", "/admin/v2/namespaces/pulsar/system/unload")
	try("topic unload", "/admin/v2/persistent/pulsar/system/transaction_coordinator_assign-partition-0/unload")
}

// connectWhileLoading connects while the coordinator loads.
func connectWhileLoading(r *recording, x *connection) {
	r.admin("PUT", "/admin/v2/persistent/pulsar/system/transaction_coordinator_assign-partition-0/unload", "")
	x.ask(lookupCommand(assignTopic + "-partition-0"))
	y := r.dial()
	p1, p2, p3 := x.start(tcConnectCommand(0)), x.start(tcConnectCommand(0)), y.start(tcConnectCommand(0))
	p4 := y.start(newTxnCommand(u64(60000), u64(0)))
	r.finish("connects while loading: 1", p1, 20*time.Second)
	r.finish("connects while loading: 2", p2, 20*time.Second)
	r.finish("connects while loading: 3", p3, 20*time.Second)
	r.finish("connects while loading: NEW behind 3", p4, 20*time.Second)
}
