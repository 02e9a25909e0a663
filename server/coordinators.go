package server

import (
	"context"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/coordinator"
	"github.com/pulsar-tc/pulsar-tc/coordinator/fsm"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// coordinators shows a coordinator.Group to connections and topics, which know callers by role.
type coordinators struct{ *coordinator.Group }

func ownerOf(caller cnx.Caller) txn.Owner { return txn.Owner{Role: caller.Role, Known: caller.Known} }

func callerOf(caller cnx.Caller) fsm.Caller {
	return fsm.Caller{Owner: ownerOf(caller), Super: caller.Super}
}

func (c *coordinators) NewTxn(ctx context.Context, tc uint64, caller cnx.Caller, ttlMillis uint64, clientName string, named bool, done func(txn.ID, error)) {
	c.Group.NewTxn(ctx, tc, ownerOf(caller), ttlMillis, clientName, named, done)
}

func (c *coordinators) AddParticipants(ctx context.Context, id txn.ID, caller cnx.Caller, participants []txn.Participant, done func(error)) {
	c.Group.AddParticipants(ctx, id, callerOf(caller), participants, done)
}

func (c *coordinators) EndTxn(ctx context.Context, id txn.ID, caller cnx.Caller, action txn.Action, named bool, done func(error)) {
	c.Group.EndTxn(ctx, id, callerOf(caller), action, named, done)
}
