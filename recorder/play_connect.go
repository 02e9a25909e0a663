package recorder

import (
	"fmt"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// playConnect shows the first contact with a fresh server.
func playConnect(r *recording) {
	x := r.dialRaw()
	r.hello("connect", x, 20)
	y := r.dialRaw()
	r.hello("connect-99", y, 99)
	y.close()
	r.name(1<<40, "2^40")
	r.request("new-before-anything", x, newTxnCommand(u64(60000), u64(0)))
	r.request("end-before-anything", x, endTxnCommand(txn.ID{Most: 0, Least: 1 << 40}, commit.Enum()))
	r.request("add-before-anything", x, addPartitionsCommand(txn.ID{Most: 0, Least: 1 << 40}, r.topic("a")))
	r.request("tc0-before-lookup", x, tcConnectCommand(0))
	r.request("tc7-before-lookup", x, tcConnectCommand(7))
	r.request("new-before-lookup", x, newTxnCommand(u64(60000), u64(0)))
	r.request("pmeta", x, partitionsCommand(assignTopic))
	r.request("lookup-0", x, lookupCommand(assignTopic+"-partition-0"))
	r.request("tc0", x, tcConnectCommand(0))
	r.request("tc0-again", x, tcConnectCommand(0))
	// The numbers are those of a server that nothing else uses; here other scenarios run beside this one, and ids begin at the
	// time of the start.
	lw := func(step string) {
		m := r.admin("GET", "/admin/v3/transactions/coordinatorStats?coordinatorId=0", "").object()
		r.line(step, "admin coordinatorStats (first run on a fresh server only)",
			fmt.Sprintf("leastSigBits=%s lowWaterMark=%s ongoingTxnSize=%s", shape(m["leastSigBits"]), shape(m["lowWaterMark"]), shape(m["ongoingTxnSize"])))
	}
	lw("stats: nothing open")
	n1 := r.request("new", x, newTxnCommand(u64(60000), u64(0)))
	lw("stats: one open")
	z := r.dial()
	r.request("new-on-connection-without-tc-connect", z, newTxnCommand(u64(60000), u64(0)))
	lw("stats: two open")
	if n1.ok() {
		x.ask(endTxnCommand(txn.ID{Most: 0, Least: n1.frame.command.NewTxnResponse.GetTxnidLeastBits()}, commit.Enum()))
		lw("stats: older one committed")
		x.ask(endTxnCommand(txn.ID{Most: 0, Least: n1.frame.command.NewTxnResponse.GetTxnidLeastBits() + 1}, commit.Enum()))
		lw("stats: both committed")
	}
	r.request("end-unknown-without-tc-connect", z, endTxnCommand(txn.ID{Most: 0, Least: 1 << 40}, commit.Enum()))
	tcAbsent := &pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_TC_CLIENT_CONNECT_REQUEST.Enum(), TcClientConnectRequest: &pulsarproto.CommandTcClientConnectRequest{}}
	r.request("tc-id-absent", z, tcAbsent)
	z2 := r.dial()
	r.request("tc7-no-lookup", z2, tcConnectCommand(7))
	r.request("tc-2^63", z2, tcConnectCommand(1<<63))
	r.request("tc-max", z2, tcConnectCommand(1<<64-1))
	r.request("new-on-tc7", z2, newTxnCommand(u64(60000), u64(7)))
	r.request("lookup-12", z2, lookupCommand(assignTopic+"-partition-12"))
	r.request("tc12-after-lookup", z2, tcConnectCommand(12))
	r.request("tc12-again", z2, tcConnectCommand(12))
	r.request("new-on-tc12", z2, newTxnCommand(u64(60000), u64(12)))
	r.request("tc7-scalable-true", z2, withUnknown(tcConnectCommand(0), varintField(3, 1)))
	r.rest("coordinators", "GET", "/admin/v3/transactions/coordinators", "")
	r.rest("stats", "GET", "/admin/v3/transactions/coordinatorStats", "")
}

// hello shakes hands with a protocol version and records the answer.
func (r *recording) hello(step string, x *connection, version int32) {
	x.write(connectCommand(version))
	connected := &pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_CONNECTED.Enum(), Connected: x.waitHello()}
	r.line(step, fmt.Sprintf("CONNECT protocol_version=%d", version), r.answer(connected, nil))
}
