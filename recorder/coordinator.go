package recorder

import (
	"time"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

// coordinator opens a connection that has registered with coordinator 0, as the clients do.
func (r *recording) coordinator() *connection {
	x := r.dial()
	x.ask(partitionsCommand(assignTopic))
	x.ask(lookupCommand(assignTopic + "-partition-0"))
	for range 50 {
		if x.ask(tcConnectCommand(0)).ok() {
			return x
		}
		time.Sleep(200 * time.Millisecond)
	}
	r.line("coordinator", "TC_CLIENT_CONNECT_REQUEST tc_id=0", "FAILED")
	return x
}

// newTxn opens a transaction of ten minutes without a line.
func (r *recording) newTxn(x *connection, name string) txn.ID {
	return r.newTxnFor(x, 600_000, name)
}

// newTxnFor opens a transaction with a ttl in milliseconds.
func (r *recording) newTxnFor(x *connection, ttl uint64, name string) txn.ID {
	id, ok := x.ask(newTxnCommand(&ttl, u64(0))).txnID()
	if !ok {
		r.line("new transaction", "NEW_TXN "+name, "FAILED")
		return id
	}
	r.name(id.Least, name)
	return id
}

// txnID is the id that a NEW_TXN was answered with.
func (a *reply) txnID() (txn.ID, bool) {
	if !a.ok() || a.frame.command.NewTxnResponse == nil {
		return txn.ID{}, false
	}
	response := a.frame.command.NewTxnResponse
	return txn.ID{Most: response.GetTxnidMostBits(), Least: response.GetTxnidLeastBits()}, true
}
