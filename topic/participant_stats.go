package topic

import (
	"context"
	"fmt"

	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// BufferStats is the transaction buffer of a topic.
type BufferStats struct {
	MaxReadPosition string // ledger:entry of the last entry that may be read
	Open            int    // unresolved transactions
	Oldest          txn.ID // the one that holds the topic back, if Open is not 0
}

// InBuffer is the part of a transaction at a topic.
type InBuffer struct {
	StartPosition string // ledger:entry of its first entry
	Aborting      bool   // its entries are being deleted
}

// PendingAckStats is the pending acknowledgements of a subscription.
type PendingAckStats struct {
	Open    int // transactions that hold acknowledgements
	Entries int // that they hold
}

// BufferStats returns the state of a topic's transaction buffer. Errors: ErrTopicNotFound.
func (ts *Topics) BufferStats(ctx context.Context, name topicname.Name) (*BufferStats, error) {
	return askTopic(ctx, ts, name, func(t *Topic, answer func(*BufferStats, error)) {
		s := &BufferStats{MaxReadPosition: t.lastBefore(t.maxRead()), Open: t.buffer.Len()}
		if oldest := t.buffer.Oldest(); oldest != nil {
			s.Oldest = oldest.ID
		}
		answer(s, nil)
	})
}

// lastBefore is the position before p as text, as Pulsar counts: entry -1 if p is the first of its ledger.
func (t *Topic) lastBefore(p ledger.Position) string {
	return fmt.Sprintf("%d:%d", p.Ledger, int64(p.Entry)-1)
}

// InBuffer returns what a transaction has on a topic. Errors: ErrTopicNotFound, *txn.NotFoundError if it has nothing there.
func (ts *Topics) InBuffer(ctx context.Context, name topicname.Name, id txn.ID) (*InBuffer, error) {
	return askTopic(ctx, ts, name, func(t *Topic, answer func(*InBuffer, error)) {
		found := t.buffer.Get(id)
		if found == nil {
			answer(nil, &txn.NotFoundError{ID: id})
			return
		}
		action, ending := found.Ending()
		answer(&InBuffer{StartPosition: found.First.String(), Aborting: ending && action == txn.Abort}, nil)
	})
}

// PendingAckStats returns what transactions hold on a subscription. Errors: ErrTopicNotFound, ErrSubscriptionNotFound.
func (ts *Topics) PendingAckStats(ctx context.Context, name topicname.Name, named string) (*PendingAckStats, error) {
	return askSubscription(ctx, ts, name, named, func(s *subscription, answer func(*PendingAckStats, error)) {
		answer(&PendingAckStats{Open: s.pending.Transactions(), Entries: s.pending.Entries()}, nil)
	})
}

// CumulativeInPendingAck returns the position (ledger:entry) up to which a transaction holds a subscription, empty if it holds
// single entries only. Errors: ErrTopicNotFound, ErrSubscriptionNotFound, *txn.NotFoundError if it holds nothing there.
func (ts *Topics) CumulativeInPendingAck(ctx context.Context, name topicname.Name, named string, id txn.ID) (string, error) {
	return askSubscription(ctx, ts, name, named, func(s *subscription, answer func(string, error)) {
		switch {
		case !s.pending.Holds(id):
			answer("", &txn.NotFoundError{ID: id})
		case s.pending.Held(id).Cumulative != nil:
			answer(s.pending.Held(id).Cumulative.Position.String(), nil)
		default:
			answer("", nil)
		}
	})
}

// AckState is what a subscription knows of a position.
type AckState uint8

// The values of AckState. Source: PositionInPendingAckStats.State.
const (
	InvalidPosition AckState = iota // no entry was ever there
	MarkDelete                      // acknowledged for good
	PendingAck                      // held by a transaction
	NotInPendingAck
)

// AckStateOf returns the state of an entry, or of one index of a batch if index is not negative.
// Errors: ErrTopicNotFound, ErrSubscriptionNotFound.
func (ts *Topics) AckStateOf(ctx context.Context, name topicname.Name, named string, ledgerID, entryID uint64, index int) (AckState, error) {
	at := ledger.Position{Ledger: ledgerID, Entry: entryID}
	return askSubscription(ctx, ts, name, named, func(s *subscription, answer func(AckState, error)) { answer(s.ackState(at, index), nil) })
}

func (s *subscription) ackState(at ledger.Position, index int) AckState {
	whole, held := s.pending.Hidden(at)
	switch {
	case !s.topic.exists(at):
		return InvalidPosition
	case s.cursor.Done(at), index >= 0 && s.cursor.Acked(at).Has(index):
		return MarkDelete
	case whole, index >= 0 && held.Has(index), index < 0 && !held.Empty():
		return PendingAck
	}
	return NotInPendingAck
}
