package topic

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
	"github.com/pulsar-tc/pulsar-tc/topicname"
)

// Terminate makes a topic take no more messages, for ever, and returns the position of its last entry, -1:-1 if there is none.
// What was sent before is stored first; producers are disconnected and hear, when they come again, that the topic is
// terminated. Transactions that are open go on to their end. A topic that is terminated already gives the same answer.
// Errors: ErrTopicNotFound.
//
// Source: ManagedLedgerImpl.terminate.
func (ts *Topics) Terminate(ctx context.Context, name topicname.Name) (*pulsarproto.MessageIdData, error) {
	return askTopic(ctx, ts, name, func(t *Topic, answer func(*pulsarproto.MessageIdData, error)) {
		t.queue.push(&terminateItem{t, answer})
	})
}

// terminateItem lets no message into its group behind it.
type terminateItem struct {
	topic  *Topic
	answer func(*pulsarproto.MessageIdData, error)
}

func (i *terminateItem) prepare(g *group) bool {
	if i.topic.terminated || g.terminates {
		return true
	}
	if !g.fits(1, 0) {
		return false
	}
	g.terminates = true
	g.write(clientv3.OpPut(i.topic.keys.Terminated(), "1"))
	g.count(1, 0)
	return true
}

func (i *terminateItem) undo() {}

func (i *terminateItem) done(*group) {
	t := i.topic
	t.terminated = true
	t.failWaiting(ErrTopicTerminated)
	for _, p := range t.producers {
		p.detach()
		p.client.Disconnect()
	}
	i.answer(t.messageID(t.lastPosition().Next(), -1), nil)
}

func (i *terminateItem) fail(err error) { i.answer(nil, err) }

// lastPosition is the position of the last entry that was ever written, -1:-1 if there was none.
func (t *Topic) lastPosition() ledger.Position {
	if t.next == 0 && len(t.ledgers) == 0 {
		return ledger.Position{Ledger: none, Entry: none}
	}
	p := t.behindLast()
	p.Entry--
	return p
}

// tellEnd tells consumers that have acknowledged everything of a terminated topic that nothing will follow.
//
// Source: PersistentSubscription.acknowledgeMessage, Consumer.reachedEndOfTopic.
func (t *Topic) tellEnd() {
	if !t.terminated || t.maxRead() != t.end() {
		return
	}
	for _, s := range t.subscriptions {
		if s.cursor.SkipDone(s.cursor.Frontier()).Before(t.behindLast()) {
			continue
		}
		for _, c := range s.consumers {
			if !c.toldEnd {
				c.toldEnd = true
				c.client.ReachedEndOfTopic()
			}
		}
	}
}
