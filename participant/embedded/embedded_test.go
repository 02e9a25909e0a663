package embedded

import (
	"context"
	"errors"
	"testing"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

// topics keeps the answer of an end back.
type topics struct {
	done         func(error)
	lowWaterMark uint64
}

func (t *topics) EndTxn(_ context.Context, _ txn.ID, _ txn.Participant, _ txn.Action, lowWaterMark uint64, done func(error)) {
	t.done, t.lowWaterMark = done, lowWaterMark
}

func (t *topics) Settle(txn.ID, []txn.Participant) (*txn.Settlement, func(error)) { return nil, nil }

func TestEndIsAnsweredOnce(t *testing.T) {
	failed := errors.New("failed")
	for _, cancelFirst := range []bool{false, true} {
		ctx, cancel := context.WithCancel(context.Background())
		inner := &topics{}
		answers := make(chan error, 2)
		New(inner).End(ctx, txn.ID{Least: 1}, txn.Participant{Topic: "t"}, txn.Commit, 1<<64-1, func(err error) { answers <- err })
		if inner.lowWaterMark != 1<<64-1 {
			t.Fatalf("low water mark %d", inner.lowWaterMark)
		}
		if cancelFirst {
			cancel()
			if err := <-answers; !errors.Is(err, context.Canceled) {
				t.Fatalf("%v, want that the context ended", err)
			}
			inner.done(nil)
		} else {
			inner.done(failed)
			cancel()
			if err := <-answers; !errors.Is(err, failed) {
				t.Fatalf("%v, want %v", err, failed)
			}
		}
		if len(answers) > 0 {
			t.Fatalf("answered twice, with %v", <-answers)
		}
	}
}
