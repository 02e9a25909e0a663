package topic

import (
	"context"
	"fmt"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// Message is a stored entry.
type Message struct {
	ID      *pulsarproto.MessageIdData
	Txn     txn.ID
	InTxn   bool
	Payload []byte // as the producer sent it: magic and checksum if it sent them, metadata, payload. Never changed
}

func (t *Topic) message(e *ledger.Entry) *Message {
	return &Message{ID: t.messageID(e.Position.Next(), -1), Txn: e.Txn, InTxn: e.InTxn, Payload: e.Payload}
}

// Entry returns an entry by its position. What no consumer may read, because a transaction is open, is not found.
// Errors: ErrTopicNotFound, ErrMessageNotFound.
func (ts *Topics) Entry(ctx context.Context, name topicname.Name, ledgerID, entryID uint64) (*Message, error) {
	at := ledger.Position{Ledger: ledgerID, Entry: entryID}
	return askTopic(ctx, ts, name, func(t *Topic, answer func(*Message, error)) {
		limit := t.maxRead()
		if !t.exists(at) || !at.Before(limit) {
			answer(nil, fmt.Errorf("%w: %v", ErrMessageNotFound, at))
			return
		}
		t.async(func() {
			entries, _, err := t.store.blocks(t.ctx, t.keys, at, limit, 1)
			switch {
			case err != nil:
				answer(nil, err)
			case len(entries) == 0 || entries[0].Position != at:
				answer(nil, fmt.Errorf("%w: %v", ErrMessageNotFound, at))
			default:
				answer(t.message(&entries[0]), nil)
			}
		})
	})
}

// PeekMessages returns the n-th entry, from 1, that a subscription has not acknowledged.
// Errors: ErrTopicNotFound, ErrSubscriptionNotFound, ErrMessageNotFound.
func (ts *Topics) PeekMessages(ctx context.Context, name topicname.Name, named string, n int) (*Message, error) {
	return askSubscription(ctx, ts, name, named, func(s *subscription, answer func(*Message, error)) {
		if n <= 0 {
			answer(nil, fmt.Errorf("%w: message %d of the backlog, want 1 or more", txn.ErrNotAllowed, n))
			return
		}
		s.find(n, func(e *ledger.Entry, err error) {
			switch {
			case err != nil:
				answer(nil, err)
			case e == nil:
				answer(nil, fmt.Errorf("%w: the backlog has fewer than %d", ErrMessageNotFound, n))
			default:
				answer(s.topic.message(e), nil)
			}
		})
	})
}

// LastMessageID returns the position of the last message that consumers may read, -1:-1 if there is none.
// Errors: ErrTopicNotFound.
func (ts *Topics) LastMessageID(ctx context.Context, name topicname.Name) (*pulsarproto.MessageIdData, error) {
	return askTopic(ctx, ts, name, func(t *Topic, answer func(*pulsarproto.MessageIdData, error)) { t.findLast(answer) })
}

// MessageIDAt returns the position of the first message that was published at millis, Unix time, or later; that behind the last
// message if there is none.
// Errors: ErrTopicNotFound.
func (ts *Topics) MessageIDAt(ctx context.Context, name topicname.Name, millis uint64) (*pulsarproto.MessageIdData, error) {
	return askTopic(ctx, ts, name, func(t *Topic, answer func(*pulsarproto.MessageIdData, error)) {
		t.findTime(millis, func(p ledger.Position, err error) {
			if err != nil {
				answer(nil, err)
				return
			}
			answer(t.messageID(p.Next(), -1), nil)
		})
	})
}
