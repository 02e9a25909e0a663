package server

import (
	"context"
	"errors"
	"testing"

	"github.com/pulsar-tc/pulsar-tc/internal/wireclient"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// O-6: an end of one participant that contradicts the transaction's decision, or comes before there is one, is refused.
func TestEndOnPartitionFollowsTheCoordinator(t *testing.T) {
	s := start(t, load(t))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	client := dialTC(ctx, t, s)
	const topic = "persistent://public/default/checked"
	end := func(id txn.ID, action txn.Action) pulsarproto.ServerError {
		name, wire, mark := topic, pulsarproto.TxnAction(action), uint64(0)
		_, err := client.Call(ctx, &pulsarproto.BaseCommand{
			Type: pulsarproto.BaseCommand_END_TXN_ON_PARTITION.Enum(),
			EndTxnOnPartition: &pulsarproto.CommandEndTxnOnPartition{
				TxnidMostBits: &id.Most, TxnidLeastBits: &id.Least, Topic: &name, TxnAction: &wire, TxnidLeastBitsOfLowWatermark: &mark,
			},
		})
		var refusal *wireclient.ServerError
		if errors.As(err, &refusal) {
			return refusal.Code
		}
		if err != nil {
			t.Fatal(err)
		}
		return -1
	}
	id, err := client.Begin(ctx, 0, 60_000, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Call(ctx, wireclient.AddPartitions(id, topic)); err != nil {
		t.Fatal(err)
	}
	const refused, applied = pulsarproto.ServerError_InvalidTxnStatus, pulsarproto.ServerError(-1)
	for _, action := range []txn.Action{txn.Commit, txn.Abort} {
		if got := end(id, action); got != refused {
			t.Errorf("%s while open: %v, want %v", action, got, refused)
		}
	}
	if err := client.End(ctx, id, txn.Commit, ""); err != nil {
		t.Fatal(err)
	}
	if got := end(id, txn.Abort); got != refused {
		t.Errorf("ABORT after commit: %v, want %v", got, refused)
	}
	if got := end(id, txn.Commit); got != applied {
		t.Errorf("COMMIT after commit: %v", got)
	}
	if got := end(txn.ID{Most: 0, Least: 7}, txn.Abort); got != applied {
		t.Errorf("ABORT of an unknown transaction: %v", got)
	}
}
