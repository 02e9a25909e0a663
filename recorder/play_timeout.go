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
	measure := func(ttl uint64) string {
		a := x.ask(newTxnCommand(u64(ttl), u64(0)))
		n := a.frame.command.NewTxnResponse
		t := txn.ID{Most: n.GetTxnidMostBits(), Least: n.GetTxnidLeastBits()}
		t0 := time.Now()
		var firstNotOpen time.Duration
		for time.Since(t0) < 6*time.Second {
			s := r.adminState(t)
			if s != "OPEN" {
				firstNotOpen = time.Since(t0)
				late := firstNotOpen.Milliseconds() - int64(ttl)
				return fmt.Sprintf("not OPEN any more; within 1s of the deadline: %v", late > -50 && late < 1000)
			}
			time.Sleep(5 * time.Millisecond)
		}
		return "still OPEN"
	}
	for _, ttl := range []uint64{0, 50, 150, 1000, 2000} {
		r.line(fmt.Sprintf("ttl %d", ttl), "poll admin state until it is not OPEN", measure(ttl))
	}
	mk := func(ttl uint64, name string) txn.ID {
		a := x.ask(newTxnCommand(u64(ttl), u64(0)))
		n := a.frame.command.NewTxnResponse
		t := txn.ID{Most: n.GetTxnidMostBits(), Least: n.GetTxnidLeastBits()}
		r.name(t.Least, name)
		return t
	}
	t := mk(1000, "T1")
	time.Sleep(2 * time.Second)
	r.request("commit after timeout", x, endTxnCommand(t, commit.Enum()))
	r.request("abort after timeout", x, endTxnCommand(t, abort.Enum()))
	r.request("add after timeout", x, addPartitionsCommand(t, r.topic("f")))
	for _, place := range []int{inCommand, inMetadata} {
		v := []string{"metadata without ids", "metadata with ids"}[place]
		topic := r.topic(fmt.Sprint("f-", place))
		p := r.producer(x, topic, true)
		c := r.subscribe(x, topic, "s", pulsarproto.CommandSubscribe_Shared, 1000)
		t = mk(1500, fmt.Sprint("Tmsg", place))
		x.ask(addPartitionsCommand(t, topic))
		o := sendOptions{txn: &t}
		if place == inMetadata {
			o.metadata = &t
		}
		r.send(v+": send", x, p, "in-txn", o)
		r.send(v+": send", x, p, "plain-behind", sendOptions{})
		r.receive(v+": before the deadline", x, c, "")
		time.Sleep(1500 * time.Millisecond)
		r.receive(v+": after the deadline", x, c, "")
		r.request(v+": commit after the deadline", x, endTxnCommand(t, commit.Enum()))
		r.send(v+": send again with the timed-out id", x, p, "late", o)
		r.send(v+": plain", x, p, "plain-2", sendOptions{})
		r.receive(v+": then", x, c, "")
		r.request(v+": next txn ends (sweep by low watermark)", x, endTxnCommand(func() txn.ID { q := mk(60000, "Tnext"); x.ask(addPartitionsCommand(q, topic)); return q }(), commit.Enum()))
		r.receive(v+": after next end", x, c, "")
	}
	// the deadline does not move by activity
	t = mk(1500, "Tact")
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
		a := x.ask(newTxnCommand(u64(1000), u64(0)))
		t := txn.ID{Most: 0, Least: a.frame.command.NewTxnResponse.GetTxnidLeastBits()}
		r.name(t.Least, "Tprobe")
		time.Sleep(2500 * time.Millisecond)
		r.state(step+": ttl 1000, 2.5s later", t)
	}
	probe("before")
	for _, v := range []struct {
		n string
		v uint64
	}{{"ttl 2^62", 1 << 62}, {"ttl 2^63", 1 << 63}, {"ttl 2^63-1", 1<<63 - 1}} {
		a := x.ask(newTxnCommand(u64(v.v), u64(0)))
		t := txn.ID{Most: 0, Least: a.frame.command.NewTxnResponse.GetTxnidLeastBits()}
		r.name(t.Least, v.n)
		time.Sleep(500 * time.Millisecond)
		r.state(v.n, t)
		probe("after " + v.n)
		x.ask(endTxnCommand(t, abort.Enum()))
		probe("after " + v.n + " was aborted")
	}
}
