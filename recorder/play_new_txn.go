package recorder

import (
	"fmt"
	"strings"
	"time"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// opener opens transactions and compares their ids.
type opener struct {
	*recording
	x        *connection
	previous uint64 // the id before
}

// playNewTxn opens transactions with every kind of ttl, coordinator and field.
func playNewTxn(r *recording) {
	x := r.coordinator()
	o := &opener{recording: r, x: x, previous: r.newTxn(x, "first").Least}
	o.ttls()
	o.coordinators()
	o.unknownFields()
	o.requestIDs()
	o.pipelined()
	o.open("after-errors", newTxnCommand(u64(60000), u64(0)))
	o.gone()
}

// open records the answer to a NEW_TXN and how its id relates to the one before.
func (o *opener) open(step string, command *pulsarproto.BaseCommand) txn.ID {
	p := o.x.start(command)
	a := p.wait(answerTimeout)
	o.say(step, p.description, p, a)
	id, ok := a.txnID()
	if !ok {
		return id
	}
	if id.Most == 0 {
		o.line(step, "id compared with the one before", fmt.Sprintf("least = previous%+d", int64(id.Least)-int64(o.previous)))
		o.previous = id.Least
	}
	o.name(id.Least, step)
	return id
}

// commit records the state of a transaction and its commit; nothing if it could not be opened.
func (o *opener) commit(id txn.ID, step string, wait time.Duration) {
	if id == (txn.ID{}) {
		return
	}
	time.Sleep(wait)
	o.state(step, id)
	o.request(step, o.x, endTxnCommand(id, commit.Enum()))
}

func (o *opener) ttls() {
	o.commit(o.open("ttl-absent", newTxnCommand(nil, u64(0))), "ttl-absent then commit after 1s", time.Second)
	o.commit(o.open("ttl-0", newTxnCommand(u64(0), u64(0))), "ttl-0 then commit after 1s", time.Second)
	o.commit(o.open("ttl-0 at once", newTxnCommand(u64(0), u64(0))), "ttl-0 then commit at once", 0)
	o.commit(o.open("ttl-1", newTxnCommand(u64(1), u64(0))), "ttl-1 then commit after 1s", time.Second)
	o.commit(o.open("ttl-99", newTxnCommand(u64(99), u64(0))), "ttl-99 then commit at once", 0)
	o.commit(o.open("ttl-60000", newTxnCommand(u64(60000), u64(0))), "ttl-60000 then commit", 0)
	for _, ttl := range []struct {
		step   string
		millis uint64
	}{{"ttl-2^31", 1 << 31}, {"ttl-2^62", 1 << 62}, {"ttl-2^63", 1 << 63}, {"ttl-2^64-1", 1<<64 - 1}} {
		o.commit(o.open(ttl.step, newTxnCommand(u64(ttl.millis), u64(0))), ttl.step+" then commit after 1s", time.Second)
	}
}

func (o *opener) coordinators() {
	o.commit(o.open("tc-absent", newTxnCommand(u64(60000), nil)), "tc-absent then commit", 0)
	o.open("tc-unknown-5", newTxnCommand(u64(60000), u64(5)))
	o.open("tc-unknown-2^64-1", newTxnCommand(u64(60000), u64(1<<64-1)))
}

func (o *opener) unknownFields() {
	for _, field := range []struct {
		step  string
		bytes []byte
	}{{"field4-string", stringField(4, "my-client")}, {"field4-varint", varintField(4, 1)}, {"field15-string", stringField(15, "x")}} {
		o.commit(o.open(field.step, withUnknown(newTxnCommand(u64(60000), u64(0)), field.bytes)), field.step+" then commit", 0)
	}
}

// newTxnWithRequestID is a NEW_TXN whose request id is chosen.
func newTxnWithRequestID(id uint64) *pulsarproto.BaseCommand {
	command := newTxnCommand(u64(60000), u64(0))
	command.NewTxn.RequestId = &id
	return command
}

func (o *opener) requestIDs() {
	o.open("request-id-0", newTxnWithRequestID(0))
	o.open("request-id-max", newTxnWithRequestID(1<<64-1))
}

// pipelined opens ten without waiting, then two with one request id.
func (o *opener) pipelined() {
	var all []*pending
	for range 10 {
		all = append(all, o.x.start(newTxnCommand(u64(60000), u64(0))))
	}
	var steps []string
	for _, p := range all {
		id, ok := p.wait(answerTimeout).txnID()
		if !ok {
			steps = append(steps, "fail")
			continue
		}
		steps = append(steps, fmt.Sprintf("%+d", int64(id.Least)-int64(o.previous)))
		o.previous = id.Least
	}
	o.line("pipelined-10", "10 x NEW_TXN without waiting, ids in request order", strings.Join(steps, " "))
	first, ok := o.x.ask(newTxnWithRequestID(777777777)).txnID()
	second, again := o.x.ask(newTxnWithRequestID(777777777)).txnID()
	if ok && again {
		o.line("same-request-id-twice", "NEW_TXN twice with one request_id", fmt.Sprintf("second id = first%+d", int64(second.Least)-int64(first.Least)))
		o.previous = second.Least
	}
}

// gone closes the connection that opened a transaction.
func (o *opener) gone() {
	y := o.coordinator()
	id := o.newTxn(y, "Tclosed")
	y.close()
	o.commit(id, "creator-connection-closed", 500*time.Millisecond)
}
