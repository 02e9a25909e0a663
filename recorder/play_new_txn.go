package recorder

import (
	"fmt"
	"strings"
	"time"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// playNewTxn opens transactions with every kind of ttl, coordinator and field.
func playNewTxn(r *recording) {
	x := r.coordinator()
	base := x.ask(newTxnCommand(u64(600000), u64(0)))
	prev := base.frame.command.NewTxnResponse.GetTxnidLeastBits()
	nw := func(step string, b *pulsarproto.BaseCommand) txn.ID {
		p := x.start(b)
		a := p.wait(answerTimeout)
		t := txn.ID{}
		r.say(step, p.description, p, a)
		if a.ok() && a.frame.command.NewTxnResponse != nil {
			n := a.frame.command.NewTxnResponse
			t = txn.ID{Most: n.GetTxnidMostBits(), Least: n.GetTxnidLeastBits()}
			d := int64(t.Least) - int64(prev)
			if t.Most == 0 {
				prev = t.Least
				r.line(step, "id compared with the one before", fmt.Sprintf("least = previous%+d", d))
			}
			r.name(t.Least, step)
		}
		return t
	}
	end := func(t txn.ID, step string, wait time.Duration) {
		time.Sleep(wait)
		r.state(step, t)
		r.request(step, x, endTxnCommand(t, commit.Enum()))
	}
	t := nw("ttl-absent", newTxnCommand(nil, u64(0)))
	end(t, "ttl-absent then commit after 1s", time.Second)
	t = nw("ttl-0", newTxnCommand(u64(0), u64(0)))
	end(t, "ttl-0 then commit after 1s", time.Second)
	t = nw("ttl-0 at once", newTxnCommand(u64(0), u64(0)))
	end(t, "ttl-0 then commit at once", 0)
	t = nw("ttl-1", newTxnCommand(u64(1), u64(0)))
	end(t, "ttl-1 then commit after 1s", time.Second)
	t = nw("ttl-99", newTxnCommand(u64(99), u64(0)))
	end(t, "ttl-99 then commit at once", 0)
	t = nw("ttl-60000", newTxnCommand(u64(60000), u64(0)))
	end(t, "ttl-60000 then commit", 0)
	for _, v := range []struct {
		n string
		v uint64
	}{{"ttl-2^31", 1 << 31}, {"ttl-2^62", 1 << 62}, {"ttl-2^63", 1 << 63}, {"ttl-2^64-1", 1<<64 - 1}} {
		t = nw(v.n, newTxnCommand(u64(v.v), u64(0)))
		end(t, v.n+" then commit after 1s", time.Second)
	}
	t = nw("tc-absent", newTxnCommand(u64(60000), nil))
	end(t, "tc-absent then commit", 0)
	nw("tc-unknown-5", newTxnCommand(u64(60000), u64(5)))
	nw("tc-unknown-2^64-1", newTxnCommand(u64(60000), u64(1<<64-1)))
	t = nw("field4-string", withUnknown(newTxnCommand(u64(60000), u64(0)), stringField(4, "my-client")))
	end(t, "field4-string then commit", 0)
	t = nw("field4-varint", withUnknown(newTxnCommand(u64(60000), u64(0)), varintField(4, 1)))
	end(t, "field4-varint then commit", 0)
	t = nw("field15-string", withUnknown(newTxnCommand(u64(60000), u64(0)), stringField(15, "x")))
	end(t, "field15-string then commit", 0)
	nw("request-id-0", &pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_NEW_TXN.Enum(), NewTxn: &pulsarproto.CommandNewTxn{RequestId: u64(0), TxnTtlSeconds: u64(60000), TcId: u64(0)}})
	nw("request-id-max", &pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_NEW_TXN.Enum(), NewTxn: &pulsarproto.CommandNewTxn{RequestId: u64(1<<64 - 1), TxnTtlSeconds: u64(60000), TcId: u64(0)}})
	// pipelined
	var ps []*pending
	for i := 0; i < 10; i++ {
		ps = append(ps, x.start(newTxnCommand(u64(60000), u64(0))))
	}
	var ds []string
	for _, p := range ps {
		a := p.wait(answerTimeout)
		if !a.ok() {
			ds = append(ds, "fail")
			continue
		}
		l := a.frame.command.NewTxnResponse.GetTxnidLeastBits()
		ds = append(ds, fmt.Sprintf("%+d", int64(l)-int64(prev)))
		prev = l
	}
	r.line("pipelined-10", "10 x NEW_TXN without waiting, ids in request order", strings.Join(ds, " "))
	// same request id twice
	p1 := x.start(&pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_NEW_TXN.Enum(), NewTxn: &pulsarproto.CommandNewTxn{RequestId: u64(777777777), TxnTtlSeconds: u64(60000), TcId: u64(0)}})
	a1 := p1.wait(answerTimeout)
	p2 := x.start(&pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_NEW_TXN.Enum(), NewTxn: &pulsarproto.CommandNewTxn{RequestId: u64(777777777), TxnTtlSeconds: u64(60000), TcId: u64(0)}})
	a2 := p2.wait(answerTimeout)
	if a1.ok() && a2.ok() {
		l1, l2 := a1.frame.command.NewTxnResponse.GetTxnidLeastBits(), a2.frame.command.NewTxnResponse.GetTxnidLeastBits()
		r.line("same-request-id-twice", "NEW_TXN twice with one request_id", fmt.Sprintf("second id = first%+d", int64(l2)-int64(l1)))
		prev = l2
	}
	// ids used after a failed one
	nw("after-errors", newTxnCommand(u64(60000), u64(0)))
	// closing the connection that made it
	y := r.coordinator()
	ty := r.newTxn(y, "Tclosed")
	y.close()
	time.Sleep(500 * time.Millisecond)
	r.state("creator-connection-closed", ty)
	r.request("creator-connection-closed", x, endTxnCommand(ty, commit.Enum()))
}
