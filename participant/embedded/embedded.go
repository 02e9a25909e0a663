package embedded

import (
	"context"
	"fmt"
	"sync"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

// Topics is where transactions are ended.
type Topics interface {
	EndTxn(ctx context.Context, id txn.ID, participant txn.Participant, action txn.Action, lowWaterMark uint64, done func(error))
	Settle(id txn.ID, participants []txn.Participant) (*txn.Settlement, func(error))
}

// Participants implements coordinator.Participants.
type Participants struct{ topics Topics }

// New returns the participants that topics are.
func New(topics Topics) *Participants { return &Participants{topics} }

// End implements coordinator.Participants.
func (p *Participants) End(ctx context.Context, id txn.ID, participant txn.Participant, action txn.Action, lowWaterMark uint64, done func(error)) {
	var once sync.Once
	stop := context.AfterFunc(ctx, func() {
		once.Do(func() { done(fmt.Errorf("end %v on %v: %w", id, participant, context.Cause(ctx))) })
	})
	p.topics.EndTxn(ctx, id, participant, action, lowWaterMark, func(err error) {
		stop()
		once.Do(func() { done(err) })
	})
}

// Settle implements coordinator.Participants.
func (p *Participants) Settle(id txn.ID, participants []txn.Participant) (*txn.Settlement, func(error)) {
	return p.topics.Settle(id, participants)
}
