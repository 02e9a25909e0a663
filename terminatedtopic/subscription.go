package terminatedtopic

import (
	"fmt"
	"math"
	"slices"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

const (
	// ledger is the ledger id of every message.
	ledger = 1
	// maxCursors bounds the cursors kept for subscriptions without consumers; the longest unused goes first.
	maxCursors = 1024
	// maxUnacked bounds the messages that a subscription has given out and nobody has acknowledged.
	maxUnacked = 50000
)

// subscription is a cursor and those who move it. mu of the topic guards it.
type subscription struct {
	name      string
	kind      pulsarproto.CommandSubscribe_SubType
	durable   bool
	read      uint64   // place of the last message given out
	unacked   []uint64 // places given out and not acknowledged, ascending
	changes   int      // of read by other than reading on
	consumers []*consumer
	used      uint64
	sought    bool // its consumers were disconnected for a seek: the next one starts there, whatever it asks for
}

// attach makes a consumer of the subscription that cmd names, and the subscription if there is none.
func (t *topic) attach(r *reading, cmd *pulsarproto.CommandSubscribe, client cnx.ConsumerClient) (*consumer, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.reading != r || t.closed {
		return nil, fmt.Errorf("%w: the coordinator's term has just ended", txn.ErrNotReady)
	}
	s := t.subscriptions[cmd.GetSubscription()]
	switch {
	case s == nil, len(s.consumers) == 0 && !s.continues(cmd):
		s = t.newSubscription(r, cmd)
	case len(s.consumers) == 0:
		s.kind, s.durable, s.sought = cmd.GetSubType(), cmd.GetDurable(), false
	case s.kind != cmd.GetSubType() || s.kind == pulsarproto.CommandSubscribe_Exclusive:
		return nil, errConsumerBusy
	}
	t.uses++
	s.used = t.uses
	c := newConsumer(t, r, s, cmd, client)
	s.consumers = append(s.consumers, c)
	if s.kind == pulsarproto.CommandSubscribe_Failover {
		client.ActiveConsumerChange(s.consumers[0] == c)
	}
	t.tasks.Go(c.run)
	return c, nil
}

// continues reports whether cmd goes on where the cursor is: a reader that knows what it saw last, and was not moved by a
// seek, says itself where it goes on.
func (s *subscription) continues(cmd *pulsarproto.CommandSubscribe) bool {
	id := cmd.GetStartMessageId()
	return s.sought || cmd.GetDurable() || id == nil || id.GetLedgerId() == math.MaxInt64
}

func (t *topic) newSubscription(r *reading, cmd *pulsarproto.CommandSubscribe) *subscription {
	s := &subscription{name: cmd.GetSubscription(), kind: cmd.GetSubType(), durable: cmd.GetDurable(), read: r.view.last}
	id := cmd.GetStartMessageId()
	switch {
	case id != nil && !s.durable:
		s.read = r.view.position(id)
		// A reader is given what it names, too: its client knows whether it wants that.
		if id.GetLedgerId() < math.MaxInt64 && s.read > 0 {
			s.read--
		}
	case cmd.GetInitialPosition() == pulsarproto.CommandSubscribe_Earliest:
		s.read = 0
	}
	t.subscriptions[s.name] = s
	if len(t.subscriptions) > maxCursors {
		t.dropCursor()
	}
	return s
}

// dropCursor forgets the subscription without consumers that nobody has used for longest.
func (t *topic) dropCursor() {
	var oldest *subscription
	for _, s := range t.subscriptions {
		if len(s.consumers) == 0 && s.used > 0 && (oldest == nil || s.used < oldest.used) {
			oldest = s
		}
	}
	if oldest != nil {
		delete(t.subscriptions, oldest.name)
	}
}

// position returns the place that id names, within what there is.
//
// Source: MessageId.earliest is -1:-1, MessageId.latest is Long.MAX_VALUE twice.
func (v *view) position(id *pulsarproto.MessageIdData) uint64 {
	switch l := id.GetLedgerId(); {
	case l > math.MaxInt64 || l < ledger:
		return 0
	case l > ledger:
		return v.last
	case id.GetEntryId() > math.MaxInt64:
		return 0
	}
	return min(id.GetEntryId(), v.last)
}

// wake makes the consumers look again.
func (s *subscription) wake() {
	for _, c := range s.consumers {
		c.wake()
	}
}

// moveTo makes the message behind place the next one.
func (s *subscription) moveTo(place uint64) {
	s.read = place
	s.unacked = nil
	s.changes++
	s.wake()
}

// rewind gives out again what is not acknowledged.
func (s *subscription) rewind() {
	if len(s.unacked) > 0 {
		s.moveTo(s.unacked[0] - 1)
	}
}

// ack takes one message, or with all before it.
func (s *subscription) ack(place uint64, cumulative bool) {
	i, found := slices.BinarySearch(s.unacked, place)
	if found {
		i++
	}
	switch {
	case cumulative:
		s.unacked = slices.Delete(s.unacked, 0, i)
	case found:
		s.unacked = slices.Delete(s.unacked, i-1, i)
	}
	s.wake()
}

// markDelete is the place up to which everything is acknowledged.
func (s *subscription) markDelete() uint64 {
	if len(s.unacked) > 0 {
		return s.unacked[0] - 1
	}
	return s.read
}

// remove takes a consumer away; what it had and did not acknowledge goes to the next one. keep keeps the cursor of a
// subscription that is not durable.
func (t *topic) remove(c *consumer, keep bool) {
	s := c.subscription
	i := slices.Index(s.consumers, c)
	if i < 0 {
		return
	}
	c.cancel()
	s.consumers = slices.Delete(s.consumers, i, i+1)
	if i == 0 {
		s.rewind()
	}
	switch {
	case len(s.consumers) == 0 && !s.durable && !keep && t.subscriptions[s.name] == s:
		delete(t.subscriptions, s.name)
	case i == 0 && len(s.consumers) > 0:
		s.consumers[0].client.ActiveConsumerChange(true)
		s.wake()
	}
	if c.reading.users--; c.reading.users == 0 {
		t.drop(c.reading)
	}
}

// disconnect takes away all consumers that read r, and returns them to be told.
func (s *subscription) disconnect(r *reading) []*consumer {
	var gone []*consumer
	for _, c := range slices.Clone(s.consumers) {
		if c.reading == r {
			c.topic.remove(c, true)
			gone = append(gone, c)
		}
	}
	return gone
}
