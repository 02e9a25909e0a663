package recorder

import (
	"fmt"
	"time"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// playEndTxnOverlap ends one transaction twice at the same time.
func playEndTxnOverlap(r *recording) {
	x := r.coordinator()
	// no participants: very short window
	for i := 0; i < 3; i++ {
		t := r.newTxn(x, "T")
		p1, p2 := x.start(endTxnCommand(t, commit.Enum())), x.start(endTxnCommand(t, commit.Enum()))
		r.finish(fmt.Sprintf("two-commits-pipelined #%d: 1", i), p1, answerTimeout)
		r.finish(fmt.Sprintf("two-commits-pipelined #%d: 2", i), p2, answerTimeout)
	}
	for i := 0; i < 3; i++ {
		t := r.newTxn(x, "T")
		p1, p2 := x.start(endTxnCommand(t, commit.Enum())), x.start(endTxnCommand(t, abort.Enum()))
		r.finish(fmt.Sprintf("commit+abort-pipelined #%d: 1", i), p1, answerTimeout)
		r.finish(fmt.Sprintf("commit+abort-pipelined #%d: 2", i), p2, answerTimeout)
	}
	for i := 0; i < 2; i++ {
		t := r.newTxn(x, "T")
		p1, p2 := x.start(endTxnCommand(t, abort.Enum())), x.start(endTxnCommand(t, abort.Enum()))
		r.finish(fmt.Sprintf("two-aborts-pipelined #%d: 1", i), p1, answerTimeout)
		r.finish(fmt.Sprintf("two-aborts-pipelined #%d: 2", i), p2, answerTimeout)
	}
	// a participant in a namespace that does not exist (yet) makes END last until the namespace is created
	y := r.coordinator()
	slow := func(name string) (txn.ID, string) {
		t := r.newTxn(x, name)
		ns := fmt.Sprintf("late-%s-%d", r.target.Run, t.Least)
		x.ask(addPartitionsCommand(t, "persistent://public/"+ns+"/x"))
		return t, ns
	}
	mkns := func(step, ns string) {
		code := r.admin("PUT", "/admin/v2/namespaces/public/"+ns, "{}").code
		r.line(step+": namespace created", "admin", fmt.Sprint("HTTP ", code))
	}
	over := func(step string, a, b pulsarproto.TxnAction, z *connection) {
		t, ns := slow("T")
		p1 := x.start(endTxnCommand(t, a.Enum()))
		time.Sleep(500 * time.Millisecond)
		p2 := z.start(endTxnCommand(t, b.Enum()))
		r.requestWithin(step+": ADD meanwhile", z, addPartitionsCommand(t, r.topic("late")), 5*time.Second)
		r.requestWithin(step+": ADD subscription meanwhile", z, addSubscriptionsCommand(t, r.topic("late"), "s"), 5*time.Second)
		r.requestWithin(step+": NEW behind it", x, newTxnCommand(u64(60000), u64(0)), 5*time.Second)
		r.finish(step+": first END, first 3s", p1, 3*time.Second)
		second := r.finish(step+": second END, first 3s", p2, time.Second)
		mkns(step, ns)
		r.finish(step+": first END", p1, 15*time.Second)
		if second.none {
			r.finish(step+": second END", p2, 15*time.Second)
		}
		r.request(step+": again", x, endTxnCommand(t, a.Enum()))
	}
	over("commit+commit same connection", commit, commit, x)
	over("commit+commit other connection", commit, commit, y)
	over("commit+abort other connection", commit, abort, y)
	over("abort+commit other connection", abort, commit, y)
	over("abort+abort other connection", abort, abort, y)
	// client goes away while END is in flight
	z := r.coordinator()
	t, ns := slow("gone")
	z.start(endTxnCommand(t, commit.Enum()))
	time.Sleep(500 * time.Millisecond)
	z.close()
	r.request("connection closed during END: opposite", x, endTxnCommand(t, abort.Enum()))
	mkns("connection closed during END", ns)
	time.Sleep(4 * time.Second)
	r.request("connection closed during END: end again 4s later", x, endTxnCommand(t, commit.Enum()))
	// deadline while COMMITTING
	a := x.ask(newTxnCommand(u64(1500), u64(0)))
	td := txn.ID{Most: 0, Least: a.frame.command.NewTxnResponse.GetTxnidLeastBits()}
	r.name(td.Least, "Tdl")
	ns = fmt.Sprintf("late-%s-%d", r.target.Run, td.Least)
	x.ask(addPartitionsCommand(td, "persistent://public/"+ns+"/x"))
	p1 := x.start(endTxnCommand(td, commit.Enum()))
	time.Sleep(2500 * time.Millisecond)
	r.request("deadline passes while COMMITTING: ADD", x, addPartitionsCommand(td, r.topic("late")))
	mkns("deadline passes while COMMITTING", ns)
	r.finish("deadline passes while COMMITTING: END", p1, 10*time.Second)
	// deadline while COMMITTING is decided by the timeout, client then commits
	a = x.ask(newTxnCommand(u64(1000), u64(0)))
	td = txn.ID{Most: 0, Least: a.frame.command.NewTxnResponse.GetTxnidLeastBits()}
	r.name(td.Least, "Tdl2")
	ns = fmt.Sprintf("late-%s-%d", r.target.Run, td.Least)
	x.ask(addPartitionsCommand(td, "persistent://public/"+ns+"/x"))
	time.Sleep(2 * time.Second)
	r.request("timed out and stuck in ABORTING: ADD", x, addPartitionsCommand(td, r.topic("late")))
	r.request("timed out and stuck in ABORTING: commit", x, endTxnCommand(td, commit.Enum()))
	p1 = x.start(endTxnCommand(td, abort.Enum()))
	r.finish("timed out and stuck in ABORTING: abort, first 2s", p1, 2*time.Second)
	mkns("timed out and stuck in ABORTING", ns)
	r.finish("timed out and stuck in ABORTING: abort", p1, 10*time.Second)
}
