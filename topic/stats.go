package topic

import (
	"context"
	"slices"
	"strings"
)

// counts are what a topic counted since it was loaded.
type counts struct {
	names     uint64 // producer names made
	published int64  // Unix ms, of the last entry
	committed uint64
	aborted   uint64
	late      uint64
}

// Stats tells what a loaded topic does. Counters start at its load.
type Stats struct {
	Topic                 string
	Producers             int
	Subscriptions         int
	Consumers             int
	MessagesIn            uint64
	BytesIn               uint64
	MessagesOut           uint64
	BytesOut              uint64
	StorageSize           uint64 // about
	BacklogSize           uint64 // about, of the slowest subscription
	Backlog               uint64 // entries, over all subscriptions
	TransactionsCommitted uint64
	TransactionsAborted   uint64
	TransactionsOpen      int    // unresolved on this topic
	LateSends             uint64 // refused or dropped, because their transaction was not open
	PendingAckEntries     int    // entries that open transactions acknowledged, over all subscriptions
	LastPosition          string // ledger:entry of the last entry
	MaxReadPosition       string // position behind the last that may be read
	PerSubscription       []SubscriptionCounts
}

// SubscriptionCounts is what Stats tell of one subscription.
type SubscriptionCounts struct {
	Name            string
	Consumers       int
	Backlog         uint64 // entries
	UnackedMessages int
	MessagesOut     uint64 // since the load
	BytesOut        uint64
}

// Stats returns what every loaded topic does, by name.
func (ts *Topics) Stats(ctx context.Context) []Stats {
	var out []Stats
	for _, t := range ts.all() {
		one := make(chan Stats, 1)
		t.ask(func(alive bool) {
			if !alive {
				close(one)
				return
			}
			one <- t.stats()
		})
		select {
		case s, open := <-one:
			if open {
				out = append(out, s)
			}
		case <-ctx.Done():
			return out
		}
	}
	slices.SortFunc(out, func(a, b Stats) int { return strings.Compare(a.Topic, b.Topic) })
	return out
}

func (t *Topic) stats() Stats {
	s := Stats{
		Topic: t.fullName, Producers: len(t.producers), Subscriptions: len(t.subscriptions),
		MessagesIn: t.in.messages, BytesIn: t.in.bytes, MessagesOut: t.out.messages,
		BytesOut: t.out.bytes, StorageSize: t.storageSize(), BacklogSize: t.backlogSize(),
		TransactionsCommitted: t.counts.committed, TransactionsAborted: t.counts.aborted, TransactionsOpen: t.buffer.Len(),
		LateSends: t.counts.late, MaxReadPosition: t.maxRead().String(),
	}
	if last := t.lastPosition(); last.Ledger != none {
		s.LastPosition = last.String()
	}
	for _, sub := range t.subscriptions {
		s.Consumers += len(sub.consumers)
		s.PendingAckEntries += sub.pending.Entries()
		counts := sub.counts()
		s.Backlog += counts.Backlog
		s.PerSubscription = append(s.PerSubscription, counts)
	}
	slices.SortFunc(s.PerSubscription, func(a, b SubscriptionCounts) int { return strings.Compare(a.Name, b.Name) })
	return s
}

func (s *subscription) counts() SubscriptionCounts {
	c := SubscriptionCounts{Name: s.name, Consumers: len(s.consumers), Backlog: s.backlog(), MessagesOut: s.out.messages, BytesOut: s.out.bytes}
	for _, consumer := range s.consumers {
		c.UnackedMessages += consumer.unackedMessages
	}
	return c
}
