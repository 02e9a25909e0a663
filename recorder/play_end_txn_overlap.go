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
	overlapPipelined(r, x)
	overlapSlow(r, x)
	overlapGone(r, x)
	overlapDeadline(r, x)
	overlapTimedOut(r, x)
}

// overlapPipelined ends twice without waiting, without participants.
func overlapPipelined(r *recording, x *connection) {
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
}

// overlapSlow ends twice while a participant cannot be reached yet: its namespace is made later.
func overlapSlow(r *recording, x *connection) {
	y := r.coordinator()
	r.overlap("commit+commit same connection", commit, commit, x, x)
	r.overlap("commit+commit other connection", commit, commit, x, y)
	r.overlap("commit+abort other connection", commit, abort, x, y)
	r.overlap("abort+commit other connection", abort, commit, x, y)
	r.overlap("abort+abort other connection", abort, abort, x, y)
}

// overlapGone closes the connection while an end is under way.
func overlapGone(r *recording, x *connection) {
	z := r.coordinator()
	t, ns := r.unreachable(x, 600_000, "gone")
	z.start(endTxnCommand(t, commit.Enum()))
	time.Sleep(500 * time.Millisecond)
	z.close()
	r.request("connection closed during END: opposite", x, endTxnCommand(t, abort.Enum()))
	r.makeNamespace("connection closed during END", ns)
	time.Sleep(4 * time.Second)
	r.request("connection closed during END: end again 4s later", x, endTxnCommand(t, commit.Enum()))
}

// overlapDeadline lets the deadline pass while the commit is under way.
func overlapDeadline(r *recording, x *connection) {
	td, ns := r.unreachable(x, 1500, "Tdl")
	p1 := x.start(endTxnCommand(td, commit.Enum()))
	time.Sleep(2500 * time.Millisecond)
	r.request("deadline passes while COMMITTING: ADD", x, addPartitionsCommand(td, r.topic("late")))
	r.makeNamespace("deadline passes while COMMITTING", ns)
	r.finish("deadline passes while COMMITTING: END", p1, 10*time.Second)
}

// overlapTimedOut ends a transaction that its deadline is ending.
func overlapTimedOut(r *recording, x *connection) {
	td, ns := r.unreachable(x, 1000, "Tdl2")
	time.Sleep(2 * time.Second)
	r.request("timed out and stuck in ABORTING: ADD", x, addPartitionsCommand(td, r.topic("late")))
	r.request("timed out and stuck in ABORTING: commit", x, endTxnCommand(td, commit.Enum()))
	p1 := x.start(endTxnCommand(td, abort.Enum()))
	early := r.finish("timed out and stuck in ABORTING: abort, first 2s", p1, 2*time.Second)
	r.makeNamespace("timed out and stuck in ABORTING", ns)
	if early.none {
		r.finish("timed out and stuck in ABORTING: abort", p1, 10*time.Second)
	}
}

// unreachable opens a transaction with a participant in a namespace that is not there yet.
func (r *recording) unreachable(x *connection, ttl uint64, name string) (id txn.ID, namespace string) {
	id = r.newTxnFor(x, ttl, name)
	namespace = fmt.Sprintf("late-%s-%d", r.target.Run, id.Least)
	x.ask(addPartitionsCommand(id, "persistent://public/"+namespace+"/x"))
	return id, namespace
}

func (r *recording) makeNamespace(step, namespace string) {
	code := r.admin("PUT", "/admin/v2/namespaces/public/"+namespace, "{}").code
	r.line(step+": namespace created", "admin", fmt.Sprint("HTTP ", code))
}

// overlap starts a first end on x and, while it waits for its participant, a second one on z.
func (r *recording) overlap(step string, first, second pulsarproto.TxnAction, x, z *connection) {
	id, namespace := r.unreachable(x, 600_000, "T")
	p1 := x.start(endTxnCommand(id, first.Enum()))
	time.Sleep(500 * time.Millisecond)
	p2 := z.start(endTxnCommand(id, second.Enum()))
	r.requestWithin(step+": ADD meanwhile", z, addPartitionsCommand(id, r.topic("late")), 5*time.Second)
	r.requestWithin(step+": ADD subscription meanwhile", z, addSubscriptionsCommand(id, r.topic("late"), "s"), 5*time.Second)
	r.requestWithin(step+": NEW behind it", x, newTxnCommand(u64(60000), u64(0)), 5*time.Second)
	early1 := r.finish(step+": first END, first 3s", p1, 3*time.Second)
	early2 := r.finish(step+": second END, first 3s", p2, time.Second)
	r.makeNamespace(step, namespace)
	if early1.none {
		r.finish(step+": first END", p1, 15*time.Second)
	}
	if early2.none {
		r.finish(step+": second END", p2, 15*time.Second)
	}
	r.request(step+": again", x, endTxnCommand(id, first.Enum()))
}
