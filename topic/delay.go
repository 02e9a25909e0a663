package topic

import (
	"cmp"
	"container/heap"
	"time"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
)

// delayed is the entries of a subscription that are not due yet, by due time and position. It keeps no payloads, and is not
// stored: whoever reads the backlog again finds them again.
type delayed struct{ entries dueHeap }

type dueEntry struct {
	at       int64 // ms since the epoch
	position ledger.Position
}

// maxDelayed bounds the entries, 24 bytes each. While there are so many, nothing new is looked at.
const maxDelayed = 1 << 20

func (d *delayed) full() bool { return len(d.entries) >= maxDelayed }

func (d *delayed) add(at int64, p ledger.Position) { heap.Push(&d.entries, dueEntry{at, p}) }

// take returns what is due at now.
func (d *delayed) take(now int64) []ledger.Range {
	var due []ledger.Range
	for len(d.entries) > 0 && d.entries[0].at <= now {
		due = append(due, ledger.One(heap.Pop(&d.entries).(dueEntry).position))
	}
	return due
}

// dueHeap implements heap.Interface.
type dueHeap []dueEntry

func (h dueHeap) Len() int { return len(h) }
func (h dueHeap) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[i].at, h[j].at), h[i].position.Compare(h[j].position)) < 0
}
func (h dueHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *dueHeap) Push(x any)   { *h = append(*h, x.(dueEntry)) }
func (h *dueHeap) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	*h = (*h)[:last]
	return e
}

// delays keeps e for later if its producer wants it delivered later.
//
// Source: PersistentDispatcherMultipleConsumers.trackDelayedDelivery; PIP-26: other types ignore deliver_at_time.
func (s *subscription) delays(e *ledger.Entry, f *pulsarproto.DeliveryFields) bool {
	if f.DeliverAt <= 0 || f.DeliverAt <= s.topic.options.Now().UnixMilli() || !s.topic.options.Policies(s.topic.name).DelayedDelivery {
		return false
	}
	if !s.cursor.Done(e.Position) {
		s.delayed.add(f.DeliverAt, e.Position)
	}
	return true
}

// releaseDue lets everything be delivered whose time has come. Of the same tick it goes out in the order of the log.
func (s *subscription) releaseDue() {
	if len(s.delayed.entries) == 0 {
		return
	}
	s.redeliver.AddAll(s.delayed.take(s.topic.options.Now().UnixMilli()))
}

// awaitDue wakes the subscription when the next entry is due, and not more often than the tick.
func (s *subscription) awaitDue() {
	if len(s.delayed.entries) == 0 {
		return
	}
	at := time.UnixMilli(s.delayed.entries[0].at)
	if least := s.lastWake.Add(s.topic.options.DelayedDeliveryTick); at.Before(least) {
		at = least
	}
	s.wakeAt(at)
}

// wakeAt makes the subscription dispatch at a time. Of several the earliest counts.
func (s *subscription) wakeAt(at time.Time) {
	if s.alarm != nil && !at.Before(s.alarmAt) {
		return
	}
	if s.alarm != nil {
		s.alarm.Stop()
	}
	t := s.topic
	s.alarmAt = at
	s.alarm = time.AfterFunc(max(0, at.Sub(t.options.Now())), func() {
		t.post(func(bool) {
			s.alarm, s.lastWake = nil, t.options.Now()
		})
	})
}

// silence stops the alarm.
func (s *subscription) silence() {
	if s.alarm != nil {
		s.alarm.Stop()
		s.alarm = nil
	}
}
