package topic

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// endCommand is END_TXN_ON_PARTITION or END_TXN_ON_SUBSCRIPTION on its way to its topic.
type endCommand struct {
	id          txn.ID
	participant txn.Participant
	action      txn.Action
	answer      func(error)
}

// EndTxn implements conn.Topics. A participant that does not exist has nothing to apply, and is not created (O-4); one that is
// not loaded is loaded (O-10). The low water mark is not used: what it would sweep cannot come to be here, because nothing is
// stored behind a decision.
func (ts *Topics) EndTxn(ctx context.Context, id txn.ID, participant txn.Participant, action txn.Action, _ uint64, done func(error)) {
	if action != txn.Commit && action != txn.Abort {
		done(fmt.Errorf("%w: unknown action %d", txn.ErrNotAllowed, action))
		return
	}
	name, err := topicname.Parse(participant.Topic)
	if err != nil {
		done(fmt.Errorf("%w: %w", txn.ErrInvalidTopicName, err))
		return
	}
	if name.Domain == topicname.NonPersistent || name.TransactionInternal() {
		done(nil)
		return
	}
	e := endCommand{id, participant, action, done}
	t := ts.loaded(name.String())
	if t == nil {
		go ts.loadAndEnd(ctx, name, e)
		return
	}
	t.applyEnd(e, func(taken bool) {
		if !taken {
			go ts.loadAndEnd(ctx, name, e)
		}
	})
}

// loadAndEnd loads the topic of an end, again if it closes before the end's turn comes.
func (ts *Topics) loadAndEnd(ctx context.Context, name topicname.Name, e endCommand) {
	for range attachTries {
		t, err := ts.load(ctx, name, false)
		switch {
		case errors.Is(err, ErrTopicNotFound), errors.Is(err, ErrNamespaceNotFound), errors.Is(err, txn.ErrNotAllowed):
			e.answer(nil)
			return
		case err != nil:
			e.answer(err)
			return
		}
		answers := make(chan bool, 1)
		t.applyEnd(e, func(taken bool) { answers <- taken })
		if <-answers {
			return
		}
	}
	e.answer(fmt.Errorf("end of transaction %v on %s: %w", e.id, name, errClosing))
}

// applyEnd queues an end behind everything that came before it. taken is told false if the topic closed meanwhile: then
// nothing of it was done.
func (t *Topic) applyEnd(e endCommand, taken func(bool)) {
	t.ask(func(alive bool) {
		defer taken(alive)
		if !alive {
			return
		}
		t.idleSince = time.Time{}
		if e.participant.Kind == txn.AckedSubscription {
			t.queue.push(&endAckItem{topic: t, subscription: e.participant.Subscription, id: e.id, action: e.action, answer: e.answer})
		} else {
			t.queue.push(&endItem{topic: t, id: e.id, action: e.action, answer: e.answer})
		}
	})
}
