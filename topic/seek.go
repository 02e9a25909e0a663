package topic

import (
	"fmt"
	"math"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
	"github.com/pulsar-tc/pulsar-tc/topic/pendingack"
)

// seekItem resets a cursor. What transactions hold stays held, and their commit acknowledges it.
type seekItem struct {
	subscription *subscription
	to           ledger.Position
	acked        *pendingack.Hold // indexes of the batch at to that are not wanted
	answer       func(error)
}

// Seek implements cnx.Consumer.
func (c *consumer) Seek(cmd *pulsarproto.CommandSeek, done func(error)) {
	t := c.topic
	t.ask(func(alive bool) {
		switch {
		case !alive:
			done(ErrPersistence)
		case !c.attached:
			done(ErrMetadata)
		case cmd.MessageId != nil:
			c.subscription.beginSeek(nil)
			c.seekID(cmd.GetMessageId(), done)
		case cmd.MessagePublishTime != nil:
			c.subscription.beginSeek(nil)
			t.findTime(cmd.GetMessagePublishTime(), func(p ledger.Position, err error) {
				if err != nil {
					c.subscription.seeking--
					done(err)
					return
				}
				c.subscription.seek(p, nil, done)
			})
		default:
			done(fmt.Errorf("%w: seek without message id and publish time", ErrMetadata))
		}
	})
}

// seek resets the cursor behind everything that is in the queue.
func (s *subscription) seek(to ledger.Position, acked *pendingack.Hold, answer func(error)) {
	s.seeks++
	s.topic.queue.push(&seekItem{subscription: s, to: to, acked: acked, answer: answer})
}

// beginSeek takes all consumers away before a seek, but the one that is to start there: no message may follow. A subscription
// that ends with its consumers stays for a while, because they come again; if they come before the seek is done, they wait.
func (s *subscription) beginSeek(but *consumer) {
	s.seeking++
	for _, c := range slices.Clone(s.consumers) {
		if c != but {
			s.remove(c)
			c.client.Disconnect()
		}
	}
}

func (c *consumer) seekID(id *pulsarproto.MessageIdData, done func(error)) {
	t, s := c.topic, c.subscription
	to := t.seekPosition(id, s.readCompacted)
	if len(id.GetAckSet()) == 0 || !names(id, to) || !t.exists(to) {
		s.seek(to, nil, done)
		return
	}
	holds := []pendingack.Hold{{Position: to}}
	s.resolve([]*pulsarproto.MessageIdData{id}, holds, func(err error) {
		if err != nil {
			s.seeking--
			done(err)
			return
		}
		s.seek(to, &holds[0], done)
	})
}

// seekPosition returns the position that id names, moved to the nearest one that can be read; compacted says by whom.
//
// Source: MessageId.earliest is -1:-1, MessageId.latest is Long.MAX_VALUE twice.
func (t *Topic) seekPosition(id *pulsarproto.MessageIdData, compacted bool) ledger.Position {
	oldest := t.earliest(compacted)
	p := ledger.Position{Ledger: id.GetLedgerId(), Entry: id.GetEntryId()}
	if p.Ledger > math.MaxInt64 {
		return oldest
	}
	if p.Entry > math.MaxInt64 {
		p.Entry = 0
	}
	if p.Before(oldest) {
		return oldest
	}
	if limit := t.maxRead(); limit.Before(p) {
		return limit
	}
	return p
}

// names reports whether id names p itself, rather than something of which p is the nearest that can be read.
func names(id *pulsarproto.MessageIdData, p ledger.Position) bool {
	return p == ledger.Position{Ledger: id.GetLedgerId(), Entry: id.GetEntryId()}
}

func (i *seekItem) prepare(g *group) bool {
	s := i.subscription
	if s.gone {
		return true
	}
	if s.unfolded() {
		s.topic.settling.withdraw(s.name) // else more of them come all the time
		return false
	}
	if !g.fits(cursorOps, 0) {
		return false
	}
	if s.durable {
		s.topic.settling.add(s.name, s.keys)
	}
	s.cursor.Reset(i.to)
	if i.acked != nil {
		s.ack(*i.acked)
	}
	s.rewind()
	clear(s.redelivered)
	g.touch(s)
	return true
}

func (i *seekItem) undo() {}

func (i *seekItem) done(*group) {
	s := i.subscription
	s.seeking--
	if _, more := s.topic.unsaved[s]; more {
		s.waiting = append(s.waiting, i.answer)
		return
	}
	i.answer(nil)
}

func (i *seekItem) fail(err error) { i.answer(err) }

// unsubscribeItem deletes a subscription with all it has.
type unsubscribeItem struct {
	subscription *subscription
	by           *consumer // nil: no consumer asks
	force        bool      // though it has other consumers
	answer       func(error)
	busy         bool // it has others
	deletes      bool
}

// Unsubscribe implements cnx.Consumer.
func (c *consumer) Unsubscribe(force bool, done func(error)) {
	t, s := c.topic, c.subscription
	t.ask(func(alive bool) {
		switch {
		case !alive:
			done(ErrPersistence)
		case !c.attached:
			done(ErrMetadata)
		default:
			t.queue.push(&unsubscribeItem{subscription: s, by: c, force: force, answer: done})
		}
	})
}

// errConnected has the code that Pulsar answers when a subscription is in use.
var errConnected = cnx.Refuse(pulsarproto.ServerError_MetadataError, "Unconnected or shared consumer attempting to unsubscribe")

func (i *unsubscribeItem) prepare(g *group) bool {
	s := i.subscription
	if !i.force && g.subscribes(s.name) {
		return false
	}
	i.busy = !i.force && !s.gone && slices.ContainsFunc(s.consumers, func(c *consumer) bool { return c != i.by })
	if i.busy && s.durable {
		s.topic.settling.add(s.name, s.keys) // it was withdrawn for a turn before
	}
	if s.gone || i.busy {
		return true
	}
	if s.durable && !s.topic.settling.withdraw(s.name) {
		return false
	}
	for ref := range g.holds {
		if ref.subscription == s {
			return false
		}
	}
	_, touched := g.cursors[s]
	_, unsaved := s.topic.unsaved[s]
	// A cursor that is to be stored later would leave keys of a subscription that is not there.
	if touched || unsaved || s.unfolded() || len(s.commits) > 0 || !g.fits(1, 0) {
		return false
	}
	s.gone, i.deletes = true, true
	if s.durable {
		g.write(clientv3.OpDelete(s.keys.Prefix(), clientv3.WithPrefix()))
		g.count(1, 0)
	}
	return true
}

func (i *unsubscribeItem) undo() {
	if s := i.subscription; i.deletes {
		s.gone, i.deletes = false, false
		if s.durable {
			s.topic.settling.add(s.name, s.keys)
		}
	}
}

func (i *unsubscribeItem) done(*group) {
	s := i.subscription
	switch {
	case i.busy && i.by != nil:
		i.answer(fmt.Errorf("%w: subscription %s has other consumers", errConnected, s.name))
		return
	case i.busy:
		i.answer(fmt.Errorf("%w: %s", ErrSubscriptionBusy, s.name))
		return
	}
	if s.topic.subscriptions[s.name] == s {
		delete(s.topic.subscriptions, s.name)
	}
	s.disconnect(i.by)
	i.answer(nil)
}

func (i *unsubscribeItem) fail(err error) { i.answer(err) }
