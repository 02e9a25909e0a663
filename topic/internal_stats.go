package topic

import (
	"context"
	"strconv"

	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
	"github.com/pulsar-tc/pulsar-tc/topicname"
)

// InternalStats is what of Pulsar's internal stats of a topic has a meaning here: positions, ledgers and cursors.
//
// Source: org.apache.pulsar.common.policies.data.ManagedLedgerInternalStats.
type InternalStats struct {
	NumberOfEntries      uint64                 `json:"numberOfEntries"`
	TotalSize            uint64                 `json:"totalSize"`
	CurrentLedgerEntries uint64                 `json:"currentLedgerEntries"`
	LastConfirmedEntry   string                 `json:"lastConfirmedEntry"`
	State                string                 `json:"state"` // LedgerOpened or Terminated
	Ledgers              []LedgerStats          `json:"ledgers"`
	Cursors              map[string]CursorStats `json:"cursors"`
}

// LedgerStats is one ledger.
type LedgerStats struct {
	LedgerID uint64 `json:"ledgerId"`
	Entries  uint64 `json:"entries"`
}

// CursorStats is the cursor of one subscription.
type CursorStats struct {
	MarkDeletePosition                       string `json:"markDeletePosition"`
	ReadPosition                             string `json:"readPosition"`
	NumberOfEntriesSinceFirstNotAckedMessage uint64 `json:"numberOfEntriesSinceFirstNotAckedMessage"`
	TotalNonContiguousDeletedMessagesRange   int    `json:"totalNonContiguousDeletedMessagesRange"`
	State                                    string `json:"state"`
}

// InternalStats returns where a topic and its cursors are; a topic that is not loaded is loaded.
// Errors: ErrTopicNotFound.
func (ts *Topics) InternalStats(ctx context.Context, name topicname.Name) (*InternalStats, error) {
	return askTopic(ctx, ts, name, func(t *Topic, answer func(*InternalStats, error)) { answer(t.internalStats(), nil) })
}

func (t *Topic) internalStats() *InternalStats {
	s := &InternalStats{
		NumberOfEntries: t.entriesBetween(t.first, t.end()), CurrentLedgerEntries: t.next, TotalSize: t.storageSize(),
		LastConfirmedEntry: signed(t.lastPosition()), State: "LedgerOpened", Ledgers: []LedgerStats{}, Cursors: make(map[string]CursorStats),
	}
	if t.terminated {
		s.State = "Terminated"
	}
	for _, l := range t.ledgers {
		s.Ledgers = append(s.Ledgers, LedgerStats{LedgerID: l.id, Entries: l.last + 1})
	}
	s.Ledgers = append(s.Ledgers, LedgerStats{LedgerID: t.ledger, Entries: t.next})
	for name, sub := range t.subscriptions {
		frontier := sub.cursor.Frontier()
		s.Cursors[name] = CursorStats{
			MarkDeletePosition: signed(ledger.Position{Ledger: frontier.Ledger, Entry: frontier.Entry - 1}), ReadPosition: sub.read.String(),
			NumberOfEntriesSinceFirstNotAckedMessage: t.entriesBetween(frontier, t.end()),
			TotalNonContiguousDeletedMessagesRange:   sub.cursor.Holes(), State: "Open",
		}
	}
	return s
}

// signed is p as Pulsar writes it, where the position before the first entry of a ledger is ledger:-1.
func signed(p ledger.Position) string {
	return strconv.FormatInt(int64(p.Ledger), 10) + ":" + strconv.FormatInt(int64(p.Entry), 10)
}

// entriesBetween is the number of positions from from on that lie before to and were given to entries.
func (t *Topic) entriesBetween(from, to ledger.Position) uint64 {
	var n uint64
	for _, x := range t.extents(to) {
		switch {
		case x.ledger > from.Ledger:
			n += x.end
		case x.ledger == from.Ledger && x.end > from.Entry:
			n += x.end - from.Entry
		}
	}
	return n
}

// backlog is the number of entries that a subscription has not acknowledged. Those of open transactions count, and aborted ones
// as long as nobody has looked for them.
func (s *subscription) backlog() uint64 {
	t := s.topic
	n := t.entriesBetween(s.cursor.Frontier(), t.end())
	for _, r := range s.cursor.Ranges() {
		n -= min(n, t.entriesBetween(r.From, r.To))
	}
	return n
}
