package topic

import (
	"github.com/pulsar-tc/pulsar-tc/topic/dedup"
	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// modelMessage is one message as an obviously right topic would have it.
type modelMessage struct {
	payload  string
	producer string
	highest  uint64 // sequence id
	position ledger.Position
	in       *modelTxn // nil: plain
	acked    bool
	heldBy   *modelTxn
}

type modelTxn struct {
	id        txn.ID
	ended     bool
	committed bool
}

func (m *modelMessage) aborted() bool { return m.in != nil && m.in.ended && !m.in.committed }

// modelTopic is a list.
type modelTopic []*modelMessage

// visible returns what may be read: nothing behind the first message of an open transaction, and nothing aborted.
func (m modelTopic) visible() modelTopic {
	var out modelTopic
	for _, msg := range m {
		if msg.in != nil && !msg.in.ended {
			break
		}
		if !msg.aborted() {
			out = append(out, msg)
		}
	}
	return out
}

func (m modelTopic) payloads(keep func(*modelMessage) bool) []string {
	out := []string{}
	for _, msg := range m {
		if keep(msg) {
			out = append(out, msg.payload)
		}
	}
	return out
}

// judge tells what becomes of a send with deduplication: it is not stored if the producer has stored as high a sequence id for
// good or in the same transaction, and its fate is unknown if it has in another that is open.
func (m modelTopic) judge(producer string, lowest uint64, in *modelTxn) dedup.Verdict {
	verdict := dedup.Fresh
	for _, msg := range m {
		switch {
		case msg.producer != producer || msg.highest < lowest || msg.aborted():
		case msg.in == nil || msg.in.ended || msg.in == in:
			return dedup.Duplicate
		default:
			verdict = dedup.Unknown
		}
	}
	return verdict
}

// last is the highest sequence id that a producer has stored, -1 if there is none.
func (m modelTopic) last(producer string) int64 {
	last := int64(-1)
	for _, msg := range m {
		if msg.producer == producer && !msg.aborted() {
			last = max(last, int64(msg.highest))
		}
	}
	return last
}
