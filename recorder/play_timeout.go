package recorder

import (
	"fmt"
	"time"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// playTimeout lets deadlines pass.
func playTimeout(r *recording) {
	x := r.coordinator()
	timeoutKinds(r, x)
	timeoutOfBusy(r, x)
}

// timeoutKinds waits for deadlines with and without messages.
func timeoutKinds(r *recording, x *connection) {
	for _, ttl := range []uint64{0, 50, 150, 1000, 2000} {
		r.line(fmt.Sprintf("ttl %d", ttl), "poll admin state until it is not OPEN", r.timeUntilEnded(x, ttl))
	}
	t := r.newTxnFor(x, 1000, "T1")
	time.Sleep(2 * time.Second)
	r.request("commit after timeout", x, endTxnCommand(t, commit.Enum()))
	r.request("abort after timeout", x, endTxnCommand(t, abort.Enum()))
	r.request("add after timeout", x, addPartitionsCommand(t, r.topic("f")))
	for _, place := range []int{inCommand, inMetadata} {
		v := []string{"metadata without ids", "metadata with ids"}[place]
		topic := r.topic(fmt.Sprint("f-", place))
		p := r.producer(x, topic, true)
		c := r.subscribe(x, topic, "s", pulsarproto.CommandSubscribe_Shared, 1000)
		t = r.newTxnFor(x, 1500, fmt.Sprint("Tmsg", place))
		x.ask(addPartitionsCommand(t, topic))
		o := in(&t, place)
		r.send(v+": send", x, p, "in-txn", o)
		r.send(v+": send", x, p, "plain-behind", sendOptions{})
		r.receive(v+": before the deadline", x, c, "")
		time.Sleep(1500 * time.Millisecond)
		r.receive(v+": after the deadline", x, c, "")
		r.request(v+": commit after the deadline", x, endTxnCommand(t, commit.Enum()))
		r.send(v+": send again with the timed-out id", x, p, "late", o)
		r.send(v+": plain", x, p, "plain-2", sendOptions{})
		r.receive(v+": then", x, c, "")
		next := r.newTxnFor(x, 60_000, "Tnext")
		x.ask(addPartitionsCommand(next, topic))
		r.request(v+": next txn ends (sweep by low watermark)", x, endTxnCommand(next, commit.Enum()))
		r.receive(v+": after next end", x, c, "")
	}
}

// timeoutOfBusy keeps a transaction busy until its deadline.
func timeoutOfBusy(r *recording, x *connection) {
	t := r.newTxnFor(x, 1500, "Tact")
	t0 := time.Now()
	for time.Since(t0) < 1400*time.Millisecond {
		x.ask(addPartitionsCommand(t, r.topic("f")))
		time.Sleep(100 * time.Millisecond)
	}
	time.Sleep(600 * time.Millisecond)
	r.state("ADDs do not extend the deadline", t)
}

// playOverflow opens a transaction whose deadline overflows, then ordinary ones.
func playOverflow(r *recording) {
	x := r.coordinator()
	probe := func(step string) {
		t := r.newTxnFor(x, 1000, "Tprobe")
		time.Sleep(2500 * time.Millisecond)
		r.state(step+": ttl 1000, 2.5s later", t)
	}
	probe("before")
	for _, v := range []struct {
		n string
		v uint64
	}{{"ttl 2^62", 1 << 62}, {"ttl 2^63", 1 << 63}, {"ttl 2^63-1", 1<<63 - 1}} {
		t := r.newTxnFor(x, v.v, v.n)
		time.Sleep(500 * time.Millisecond)
		if t != (txn.ID{}) {
			r.state(v.n, t)
		}
		probe("after " + v.n)
		x.ask(endTxnCommand(t, abort.Enum()))
		probe("after " + v.n + " was aborted")
	}
}

// timeUntilEnded opens a transaction and says when it is not open any more.
func (r *recording) timeUntilEnded(x *connection, ttl uint64) string {
	started := time.Now()
	id := r.newTxnFor(x, ttl, "Ttimed")
	for time.Since(started) < 6*time.Second {
		state := r.adminState(id)
		late := time.Since(started) - time.Duration(ttl)*time.Millisecond
		switch {
		case state == "OPEN":
		case late < 0:
			return state + " too early"
		case late < 250*time.Millisecond:
			return state + " after ttl+0..200ms"
		default:
			return state + " too late"
		}
		time.Sleep(5 * time.Millisecond)
	}
	return "still OPEN"
}
