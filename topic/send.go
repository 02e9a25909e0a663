package topic

import (
	"errors"
	"fmt"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/topic/dedup"
	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// none is the position in a receipt that stands for nothing newly stored: -1:-1 on the wire.
// Source: Producer.MessagePublishContext, duplicates.
const none = ^uint64(0)

// sendItem is one SEND.
type sendItem struct {
	producer *producer
	msg      cnx.Send

	err       error // refused
	dropped   bool  // a receipt, nothing stored
	duplicate bool
	asked     bool // the coordinator was asked
	waiting   bool // for its answer
	draft     *blockDraft
	index     int // in the draft
}

// check refuses what can be refused without looking at anything else.
func (s *sendItem) check() {
	options := s.producer.topic.options
	switch size := len(s.msg.Payload); {
	case s.msg.Refused != nil:
		s.err = s.msg.Refused
	case size > options.MaxMessageSize:
		s.err = fmt.Errorf("%w: message of %d bytes, at most %d", txn.ErrNotAllowed, size, options.MaxMessageSize)
	case s.msg.Marker:
		s.err = fmt.Errorf("%w: markers are written by the broker only", txn.ErrNotAllowed)
	case options.Admit != nil:
		s.err = options.Admit()
	}
}

// refuse answers the send with err, or drops it if the settings say so.
func (s *sendItem) refuse(err error) {
	if errors.Is(err, txn.ErrNotAllowed) && s.producer.topic.options.LateSend == LateDrop {
		s.dropped = true
	} else {
		s.err = err
	}
	s.producer.topic.counts.late++
}

// open returns the open key that the send depends on.
func (s *sendItem) open() (openRef, bool) {
	return openRef{s.msg.Txn, s.producer.topic.hash}, s.msg.InTxn && s.err == nil && !s.dropped
}

// prepare breaks the producer if its client sends the message again for the answer: nothing that the producer sent behind it may
// be stored before that, because the order would be lost, and with deduplication the message.
func (s *sendItem) prepare(g *group) bool {
	ready := s.decide(g)
	if ready && s.err != nil && !final(s.err) {
		s.producer.broken = true
	}
	return ready
}

// decide refuses the send, finds that there is nothing to store, or takes it into g. False: it waits for the next group.
func (s *sendItem) decide(g *group) bool {
	if s.err == nil && s.producer.broken {
		s.err = ErrPersistence
	}
	if s.err != nil || s.dropped {
		return true
	}
	wait := s.await(g)
	if wait || s.err != nil || s.dropped || s.duplicate {
		return !wait
	}
	return s.take(g)
}

// await reports whether the fate of something before the send must be known first. If not, it may refuse the send, or find that
// there is nothing to store.
func (s *sendItem) await(g *group) bool {
	id, t := s.msg.Txn, s.producer.topic
	switch verdict, other := s.judge(g); {
	case verdict == dedup.Duplicate:
		s.duplicate = true
		return false
	case verdict == dedup.Unknown && (t.aborting[other] != nil || g.ends(holdRef{id: other})):
		return true
	case verdict == dedup.Unknown:
		s.err = fmt.Errorf("%w: %d of producer %s, in transaction %v", ErrSequenceUnknown, s.msg.SequenceID, s.producer.name, other)
		return false
	}
	if g.terminates {
		return true
	}
	if t.terminated {
		s.err = ErrTopicTerminated
		return false
	}
	if admit := t.options.Admit; admit != nil {
		if s.err = admit(); s.err != nil {
			return false
		}
	}
	if s.msg.InTxn && t.aborting[id] != nil {
		s.refuse(ended(id))
		return false
	}
	return s.msg.InTxn && (g.ends(holdRef{id: id}) || !g.claim(id))
}

// take puts the send into g if there is room.
func (s *sendItem) take(g *group) bool {
	pages, pageBytes := s.dedupCost(g)
	bytes := len(s.msg.Payload) + len(s.producer.name) + ledger.EntryOverhead + pageBytes
	if s.msg.InTxn {
		adds, err := g.markRoom(s)
		if bytes += adds; err != nil {
			s.err = err
			return true
		}
	}
	switch {
	case g.room(3+pages, bytes):
	case g.empty():
		s.tooLarge(fmt.Errorf("%d bytes, with the names of the producers in its transaction", bytes))
		return true
	default:
		return false
	}
	if s.msg.InTxn {
		g.require(openRef{s.msg.Txn, s.producer.topic.hash}, holdRef{id: s.msg.Txn})
		g.note(s)
	} else if s.lastChunk() {
		g.dedup.Raise(s.producer.name, s.highest())
		g.count(pages, pageBytes)
	}
	g.place(s)
	return true
}

// tooLarge implements refusable.
func (s *sendItem) tooLarge(err error) {
	s.err = fmt.Errorf("%w: message of %d bytes does not fit a write: %w", txn.ErrNotAllowed, len(s.msg.Payload), err)
}

// ended is the answer to a send whose transaction is not open any more.
// Source: the text that a 4.0.7 broker gives.
func ended(id txn.ID) error {
	return fmt.Errorf("%w: Transaction [%v] has been ended. Please use a new transaction to send message", txn.ErrNotAllowed, id)
}

// lastChunk reports whether sequence ids count: the chunks of a message share one, which is tested with the last.
func (s *sendItem) lastChunk() bool {
	m := s.msg.Metadata
	return !s.msg.IsChunk || m == nil || m.GetChunkId() == m.GetNumChunksFromMsg()-1
}

func (s *sendItem) highest() uint64 { return max(s.msg.SequenceID, s.msg.HighestSequenceID) }

func (s *sendItem) entry(p ledger.Position) ledger.Entry {
	e := ledger.Entry{
		Position: p, Txn: s.msg.Txn, InTxn: s.msg.InTxn, IsChunk: s.msg.IsChunk,
		SequenceID: s.msg.SequenceID, HighestSequenceID: s.highest(), NumMessages: uint32(max(1, s.msg.NumMessages)),
		Producer: s.producer.name, Payload: s.msg.Payload,
	}
	if m := s.msg.Metadata; m != nil {
		e.PublishTime = m.GetPublishTime()
		if m.NumMessagesInBatch != nil {
			e.IsBatch, e.NumMessages = true, uint32(max(1, m.GetNumMessagesInBatch()))
		}
	}
	return e
}

func (s *sendItem) undo() { s.duplicate, s.draft = false, nil }

func (s *sendItem) done(*group) {
	p := s.producer
	if !p.attached {
		return
	}
	switch {
	case s.err != nil:
		p.client.SendError(s.highest(), s.err)
		if !final(s.err) {
			p.detach()
			p.client.Disconnect()
		}
	case s.dropped || s.duplicate:
		p.client.Receipt(s.msg.SequenceID, s.msg.HighestSequenceID, none, none)
	default:
		at := s.draft.block.Entries[s.index].Position
		p.client.Receipt(s.msg.SequenceID, s.msg.HighestSequenceID, at.Ledger, at.Entry)
	}
}

// fail answers nothing: the client is disconnected and sends again.
func (s *sendItem) fail(error) {}
