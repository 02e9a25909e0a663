package peer

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/pulsar-tc/pulsar-tc/cluster"
	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// The commands for coordinators that are led by another instance. Errors of all of them: what the coordinator refuses with, as
// *Refusal; txn.ErrCoordinatorNotFound where nothing definite is known, with ErrUnanswered if the request was sent;
// txn.ErrNotReady and txn.ErrTooManyRequests where it was not.

// NewTxn opens a transaction. named tells a request with client_name, even a blank one.
func (p *Pool) NewTxn(ctx context.Context, to cluster.Instance, tc uint64, caller cnx.Caller, ttlMillis uint64, clientName string, named bool, done func(txn.ID, error)) {
	command := &pulsarproto.CommandNewTxn{TcId: &tc, TxnTtlSeconds: &ttlMillis} // despite its name: milliseconds
	if named {
		command.ClientName = &clientName
	}
	encode := func(dst []byte, requestID uint64) ([]byte, error) {
		command.RequestId = &requestID
		return pulsarproto.AppendCommand(dst, &pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_NEW_TXN.Enum(), NewTxn: command})
	}
	p.start(to, caller, newCall(ctx, txn.ErrCoordinatorNotFound, encode, func(answer *pulsarproto.BaseCommand, err error) {
		if err == nil {
			err = outcome(txn.ID{Most: tc}, pulsarproto.BaseCommand_NEW_TXN_RESPONSE, answer)
		}
		if err != nil {
			done(txn.ID{}, err)
			return
		}
		r := answer.GetNewTxnResponse()
		done(txn.ID{Most: r.GetTxnidMostBits(), Least: r.GetTxnidLeastBits()}, nil)
	}))
}

// EndTxn ends a transaction; done is called when every participant has applied it. named tells a request with client_name, which
// has no other meaning here.
func (p *Pool) EndTxn(ctx context.Context, to cluster.Instance, id txn.ID, caller cnx.Caller, action txn.Action, named bool, done func(error)) {
	command := &pulsarproto.CommandEndTxn{
		TxnidMostBits: &id.Most, TxnidLeastBits: &id.Least, TxnAction: pulsarproto.TxnAction(action).Enum(),
	}
	if named {
		command.ClientName = proto.String("")
	}
	encode := func(dst []byte, requestID uint64) ([]byte, error) {
		command.RequestId = &requestID
		return pulsarproto.AppendCommand(dst, &pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_END_TXN.Enum(), EndTxn: command})
	}
	p.start(to, caller, newCall(ctx, txn.ErrCoordinatorNotFound, encode, finish(id, pulsarproto.BaseCommand_END_TXN_RESPONSE, done)))
}

// AddParticipants registers participants of one kind, all or none.
func (p *Pool) AddParticipants(ctx context.Context, to cluster.Instance, id txn.ID, caller cnx.Caller, participants []txn.Participant, done func(error)) {
	command, response, err := addCommand(id, participants)
	if err != nil {
		done(err)
		return
	}
	encode := func(dst []byte, requestID uint64) ([]byte, error) {
		if command.AddPartitionToTxn != nil {
			command.AddPartitionToTxn.RequestId = &requestID
		} else {
			command.AddSubscriptionToTxn.RequestId = &requestID
		}
		return pulsarproto.AppendCommand(dst, command)
	}
	p.start(to, caller, newCall(ctx, txn.ErrCoordinatorNotFound, encode, finish(id, response, done)))
}

// addCommand is ADD_PARTITION_TO_TXN or ADD_SUBSCRIPTION_TO_TXN, and what answers it.
func addCommand(id txn.ID, participants []txn.Participant) (*pulsarproto.BaseCommand, pulsarproto.BaseCommand_Type, error) {
	var topics []string
	var subscriptions []*pulsarproto.Subscription
	for _, p := range participants {
		if p.Kind == txn.Partition {
			topics = append(topics, p.Topic)
		} else {
			subscriptions = append(subscriptions, &pulsarproto.Subscription{Topic: proto.String(p.Topic), Subscription: proto.String(p.Subscription)})
		}
	}
	if (len(topics) == 0) == (len(subscriptions) == 0) {
		return nil, 0, fmt.Errorf("%w: %d topics and %d subscriptions for one command", txn.ErrNotAllowed, len(topics), len(subscriptions))
	}
	if len(topics) > 0 {
		return &pulsarproto.BaseCommand{
			Type: pulsarproto.BaseCommand_ADD_PARTITION_TO_TXN.Enum(),
			AddPartitionToTxn: &pulsarproto.CommandAddPartitionToTxn{
				TxnidMostBits: &id.Most, TxnidLeastBits: &id.Least, Partitions: topics,
			},
		}, pulsarproto.BaseCommand_ADD_PARTITION_TO_TXN_RESPONSE, nil
	}
	return &pulsarproto.BaseCommand{
		Type: pulsarproto.BaseCommand_ADD_SUBSCRIPTION_TO_TXN.Enum(),
		AddSubscriptionToTxn: &pulsarproto.CommandAddSubscriptionToTxn{
			TxnidMostBits: &id.Most, TxnidLeastBits: &id.Least, Subscription: subscriptions,
		},
	}, pulsarproto.BaseCommand_ADD_SUBSCRIPTION_TO_TXN_RESPONSE, nil
}

// finish passes the outcome of an answer to done.
func finish(id txn.ID, want pulsarproto.BaseCommand_Type, done func(error)) func(*pulsarproto.BaseCommand, error) {
	return func(answer *pulsarproto.BaseCommand, err error) {
		if err == nil {
			err = outcome(id, want, answer)
		}
		done(err)
	}
}
