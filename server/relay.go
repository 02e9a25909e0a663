package server

import (
	"context"
	"fmt"

	"github.com/pulsar-tc/pulsar-tc/cluster"
	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/coordinator/fsm"
	"github.com/pulsar-tc/pulsar-tc/peer"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// relay passes requests on to the instance that is to lead a coordinator, which keeps them until it does.
type relay struct {
	cluster *cluster.Cluster
	peers   *peer.Pool
}

// to is that instance. Errors: txn.ErrCoordinatorNotFound.
func (r relay) to(tc uint64) (cluster.Instance, error) {
	place := r.cluster.PlaceCoordinator(tc)
	if place.ID == "" || place.ID == r.cluster.Self().ID {
		return cluster.Instance{}, fmt.Errorf("%w: coordinator %d is being handed over to nobody else", txn.ErrCoordinatorNotFound, tc)
	}
	return place, nil
}

func callerBehind(caller fsm.Caller) cnx.Caller {
	return cnx.Caller{Role: caller.Owner.Role, Known: caller.Owner.Known, Super: caller.Super}
}

// NewTxn implements coordinator.Relay.
func (r relay) NewTxn(ctx context.Context, tc uint64, cmd *fsm.NewTxn, done func(txn.ID, error)) {
	to, err := r.to(tc)
	if err != nil {
		done(txn.ID{Most: tc}, err)
		return
	}
	caller := cnx.Caller{Role: cmd.Owner.Role, Known: cmd.Owner.Known}
	r.peers.NewTxn(ctx, to, tc, caller, cmd.TTLMillis, cmd.ClientName, cmd.Named, done)
}

// AddParticipants implements coordinator.Relay.
func (r relay) AddParticipants(ctx context.Context, tc uint64, cmd *fsm.AddParticipants, done func(error)) {
	to, err := r.to(tc)
	if err != nil {
		done(err)
		return
	}
	r.peers.AddParticipants(ctx, to, txn.ID{Most: tc, Least: cmd.Least}, callerBehind(cmd.Caller), cmd.Participants, done)
}

// EndTxn implements coordinator.Relay.
func (r relay) EndTxn(ctx context.Context, tc uint64, cmd *fsm.EndTxn, done func(error)) {
	to, err := r.to(tc)
	if err != nil {
		done(err)
		return
	}
	r.peers.EndTxn(ctx, to, txn.ID{Most: tc, Least: cmd.Least}, callerBehind(cmd.Caller), cmd.Action, cmd.Named, done)
}
