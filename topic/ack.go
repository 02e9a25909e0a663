package topic

import (
	"fmt"
	"slices"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
	"github.com/pulsar-tc/pulsar-tc/topic/pendingack"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// ackItem is one ACK.
type ackItem struct {
	consumer   *consumer
	id         txn.ID
	inTxn      bool
	cumulative bool
	holds      []pendingack.Hold
	answer     func(error)

	overtaken bool // by a seek that came behind it: it has no effect

	err    error
	judged bool // err, if there is one, rests on what its group has
	asked  bool // the coordinator was asked
	added  []pendingack.Hold
	before *pendingack.Hold // cumulative: what was held before
	held   bool
}

// Ack implements cnx.Consumer.
func (c *consumer) Ack(cmd *pulsarproto.CommandAck, done func(error)) {
	c.topic.ask(func(alive bool) {
		if !alive {
			done(ErrPersistence)
			return
		}
		c.acknowledge(cmd, done)
	})
}

func (c *consumer) acknowledge(cmd *pulsarproto.CommandAck, done func(error)) {
	a := &ackItem{consumer: c, answer: done, cumulative: cmd.GetAckType() == pulsarproto.CommandAck_Cumulative}
	if cmd.TxnidLeastBits != nil && cmd.TxnidMostBits != nil {
		a.id, a.inTxn = txn.ID{Most: cmd.GetTxnidMostBits(), Least: cmd.GetTxnidLeastBits()}, true
	}
	ids := cmd.GetMessageId()
	// Source: Consumer.messageAcked, which ignores these and answers success.
	if len(ids) == 0 || a.cumulative && (len(ids) != 1 || c.subscription.shared()) {
		done(nil)
		return
	}
	if admit := c.topic.options.AdmitAck; admit != nil {
		if err := admit(); err != nil {
			done(err)
			return
		}
	}
	if ids = c.topic.options.countable(a, ids); len(ids) == 0 {
		done(nil)
		return
	}
	a.holds = make([]pendingack.Hold, 0, len(ids))
	for _, id := range ids {
		a.holds = append(a.holds, pendingack.Hold{Position: ledger.Position{Ledger: id.GetLedgerId(), Entry: id.GetEntryId()}})
	}
	s, seeks := c.subscription, c.subscription.seeks
	s.resolve(ids, a.holds, func(err error) {
		if err != nil {
			done(err)
			return
		}
		// What a transaction holds outlasts a seek.
		a.overtaken = !a.inTxn && s.seeks != seeks
		c.topic.queue.push(a)
	})
}

// countable drops the acknowledgements of parts of batches where those have no effect. A cumulative one counts up to its batch.
//
// Source: Consumer.individualAckNormal; broker.conf acknowledgmentAtBatchIndexLevelEnabled.
func (o *Options) countable(a *ackItem, ids []*pulsarproto.MessageIdData) []*pulsarproto.MessageIdData {
	if !o.WholeBatchAcks || a.inTxn {
		return ids
	}
	partial := func(id *pulsarproto.MessageIdData) bool {
		return slices.ContainsFunc(id.GetAckSet(), func(word int64) bool { return word != 0 })
	}
	if !a.cumulative {
		return slices.DeleteFunc(slices.Clone(ids), partial)
	}
	if partial(ids[0]) {
		before := ids[0].GetEntryId() - 1
		ids = []*pulsarproto.MessageIdData{{LedgerId: ids[0].LedgerId, EntryId: &before}}
	}
	return ids
}

// open returns the open key that the acknowledgement depends on.
func (a *ackItem) open() (openRef, bool) {
	return openRef{a.id, a.consumer.subscription.hash}, a.inTxn && a.err == nil
}

func (a *ackItem) prepare(g *group) bool {
	s := a.consumer.subscription
	if a.err != nil || a.overtaken || s.gone {
		return true
	}
	size := a.size()
	if size > s.topic.options.MaxMessageSize {
		a.err = fmt.Errorf("%w: an acknowledgement of %d messages is too large", txn.ErrNotAllowed, len(a.holds))
		return true
	}
	if a.err = a.fitsParts(); a.err != nil {
		return true
	}
	if a.inTxn && (g.ends(holdRef{s, a.id}) || !g.claim(a.id)) || !g.fits(cursorOps, size) {
		return false
	}
	switch {
	case a.inTxn:
		a.err, a.judged = a.pend(g), true
	case a.cumulative:
		a.ackThrough(a.holds[0])
		g.touch(s)
	default:
		s.ackAll(slices.DeleteFunc(slices.Clone(a.holds), func(h pendingack.Hold) bool { return !s.topic.exists(h.Position) }))
		g.touch(s)
	}
	return true
}

// size is about how many bytes the transaction's hold takes.
func (a *ackItem) size() int {
	if !a.inTxn {
		return 0
	}
	size := 24 * len(a.holds)
	for _, hold := range a.holds {
		size += 8 * len(hold.Acked)
	}
	return size
}

// maxPartBytes bounds the sets of acknowledged indexes of one subscription, in memory and stored: a set is as large as its batch
// says to be, and a compressed batch may say more than it has. A set of a batch of 1000 messages takes 128 bytes.
const maxPartBytes = 64 << 20

// fitsParts refuses to keep more sets than there is room for. Whole entries, and more of a batch that has a set, are not refused.
func (a *ackItem) fitsParts() error {
	s, adds := a.consumer.subscription, 0
	for _, hold := range a.holds {
		if hold.Acked != nil && (a.inTxn || s.cursor.Acked(hold.Position) == nil) {
			adds += 8 * len(hold.Acked)
		}
	}
	if adds == 0 || a.cumulative || s.cursor.PartBytes()+s.pending.PartBytes()+adds <= maxPartBytes {
		return nil
	}
	return fmt.Errorf("%w: subscription %s has too many batches of which a part is acknowledged: %d bytes of ack sets, at most %d",
		txn.ErrNotAllowed, s.name, s.cursor.PartBytes()+s.pending.PartBytes()+adds, maxPartBytes)
}

// pend makes the transaction hold what the command names.
func (a *ackItem) pend(g *group) error {
	s := a.consumer.subscription
	for _, hold := range a.holds {
		if !s.cursor.Passed(hold.Position) && !s.topic.exists(hold.Position) {
			return fmt.Errorf("%w: transaction %v: there is no message %v", txn.ErrNotAllowed, a.id, hold.Position)
		}
	}
	if a.cumulative {
		before, err := s.pending.Cumulative(a.id, a.holds[0], s.cursor)
		if err != nil {
			return err
		}
		a.before, a.held = before, true
		g.hold(s, a.id).Cumulative = &a.holds[0]
	} else {
		added, err := s.pending.Individual(a.id, a.holds, s.cursor)
		if err != nil {
			return err
		}
		a.added, a.held = added, true
		held := g.hold(s, a.id)
		held.Individual = append(held.Individual, added...)
	}
	g.count(0, a.size())
	g.require(openRef{a.id, s.hash}, holdRef{s, a.id})
	return nil
}

// ackThrough acknowledges cumulatively outside transactions. Clients name the position before a ledger's first entry with
// entry id -1. What lies behind the end of the log is ignored, because it may be given to an entry later.
func (a *ackItem) ackThrough(hold pendingack.Hold) {
	s := a.consumer.subscription
	switch {
	case hold.Position.Entry == none:
		s.cursor.AckBefore(ledger.Position{Ledger: hold.Position.Ledger})
	case !s.topic.beyond(hold.Position):
		s.ackThrough(hold)
	}
}

func (a *ackItem) undo() {
	if a.judged {
		a.err, a.judged = nil, false
	}
	if !a.held {
		return
	}
	s := a.consumer.subscription
	if a.cumulative {
		s.pending.UndoCumulative(a.id, a.before)
	} else {
		s.pending.Undo(a.id, a.added)
		s.freePending(pendingack.Held{Individual: a.added})
	}
	a.held, a.added, a.before = false, nil, nil
}

func (a *ackItem) done(*group) {
	s := a.consumer.subscription
	if a.err != nil || a.overtaken || s.gone {
		a.answer(a.err)
		return
	}
	s.taken(a)
	if !s.durable {
		s.cursor.Forget()
	}
	if _, more := s.topic.unsaved[s]; more && !a.inTxn {
		s.waiting = append(s.waiting, a.answer)
		return
	}
	a.answer(nil)
}

func (a *ackItem) fail(err error) { a.answer(err) }

// tooLarge implements refusable. What is acknowledged outside transactions is stored in parts and is never too large.
func (a *ackItem) tooLarge(err error) {
	a.err = fmt.Errorf("%w: an acknowledgement of %d messages does not fit a write: %w", txn.ErrNotAllowed, len(a.holds), err)
}
