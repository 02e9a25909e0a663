package server

import (
	"context"
	"errors"

	"github.com/pulsar-tc/pulsar-tc/coordinator"
	"github.com/pulsar-tc/pulsar-tc/topic"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// checkedTopics are the topics as connections see them: an end of one participant that a client sends itself is held against
// what the coordinator has decided, durably, before it reaches the topic. One that another instance sends is decided. So no message from outside can make a participant
// differ from its transaction (O-6, promise 1).
type checkedTopics struct {
	*topic.Topics
	group *coordinator.Group
}

// EndTxn applies END_TXN_ON_PARTITION and END_TXN_ON_SUBSCRIPTION. Errors: *txn.StatusError if the transaction is open or
// decided the other way; those of the coordinator and the topic. One that no coordinator knows is ended as asked: nothing else
// can end it.
func (t *checkedTopics) EndTxn(ctx context.Context, id txn.ID, participant txn.Participant, action txn.Action, lowWaterMark uint64, decided bool, done func(error)) {
	if decided || id.Most >= t.group.Count() {
		t.Topics.EndTxn(ctx, id, participant, action, lowWaterMark, done)
		return
	}
	go func() {
		if err := t.check(ctx, id, action); err != nil {
			done(err)
			return
		}
		t.Topics.EndTxn(ctx, id, participant, action, lowWaterMark, done)
	}()
}

func (t *checkedTopics) check(ctx context.Context, id txn.ID, action txn.Action) error {
	found, err := t.group.DescribeForClient(ctx, id)
	var unknown *txn.NotFoundError
	if errors.As(err, &unknown) {
		return nil
	}
	if err != nil {
		return err
	}
	if decided, is := found.Status.Decided(); !is || decided != action {
		return &txn.StatusError{ID: id, Want: action.Deciding(), Got: found.Status}
	}
	return nil
}
