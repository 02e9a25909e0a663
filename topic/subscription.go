package topic

import (
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/keyspace"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topic/cursor"
	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
	"github.com/pulsar-tc/pulsar-tc/topic/pendingack"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// subscription is a durable subscription, or one that exists while it has consumers.
type subscription struct {
	topic   *Topic
	name    string
	durable bool
	// properties are those of the client that created it; never changed.
	properties map[string]string
	keys       keyspace.Subscription
	hash       string    // as a participant
	gone       bool      // deleted, or about to be
	unused     time.Time // it had no consumers when that was looked at; zero: it has
	seeking    int       // seeks for which its consumers were disconnected: nothing is delivered until all are done
	seeks      int       // how many came
	kind       pulsarproto.CommandSubscribe_SubType

	cursor      *cursor.Cursor
	pending     *pendingack.Handle
	nextPending uint64
	commits     []*ackCommit
	settled     []txn.ID      // committed, not in the stored cursor yet
	waiting     []func(error) // answers to acknowledgements whose cursor needs another group

	consumers []*consumer
	// Exclusive and Failover.
	active    *consumer
	settling  bool // the active one changed, and starts at settledAt
	settledAt time.Time
	// Shared and Key_Shared.
	levels          []level    // the consumers by priority, lowest number first
	sticky          *keyShared // nil unless Key_Shared
	holders         keyHolders
	parked          parking
	chunks          map[waitKey]*consumer // who is given the rest of a message in chunks
	delayed         delayed
	unackedMessages int
	overloaded      bool

	alarm    *time.Timer // nil: none runs
	alarmAt  time.Time
	lastWake time.Time

	read ledger.Position // everything before it was looked at for delivery
	// readCompacted makes it read compacted entries as far as there are any.
	readCompacted bool
	// redeliver is what was looked at and is to be delivered again; given restricts it to indexes of a batch.
	redeliver ledger.Set
	given     map[ledger.Position]ledger.Bits
	// passed is what was not given, while a write is in flight, because a transaction holds it: by that write, perhaps.
	passed      []pendingack.Hold
	redelivered map[ledger.Position]uint32 // Shared: how often
	sizes       map[ledger.Position]int    // of batches that were delivered
	sizesLimit  int

	out, repeated meter // as those of its consumers

	ahead   page // entries read from the store
	reading bool
}

func (t *Topic) newSubscription(name string, durable bool, c *cursor.Cursor) *subscription {
	s := &subscription{
		topic: t, name: name, durable: durable, cursor: c, pending: pendingack.New(), read: c.Frontier(),
		given: make(map[ledger.Position]ledger.Bits), redelivered: make(map[ledger.Position]uint32), sizes: make(map[ledger.Position]int),
	}
	s.hash = s.participant().Hash()
	return s
}

func (s *subscription) participant() txn.Participant {
	return txn.Participant{Topic: s.topic.fullName, Subscription: s.name, Kind: txn.AckedSubscription}
}

// committing returns the commit of id that is being stored, or nil.
func (s *subscription) committing(id txn.ID) *ackCommit {
	for _, c := range s.commits {
		if c.id == id {
			return c
		}
	}
	return nil
}

// commit puts what id holds into the cursor.
func (s *subscription) commit(id txn.ID, answer func(error)) *ackCommit {
	s.ackHeld(s.pending.Held(id))
	c := &ackCommit{id: id, waiters: []func(error){answer}}
	s.commits = append(s.commits, c)
	s.topic.settling.take(id)
	return c
}

func (s *subscription) ackHeld(held pendingack.Held) {
	s.ackAll(held.Individual)
	if held.Cumulative != nil {
		s.ackThrough(*held.Cumulative)
	}
}

func (s *subscription) ack(hold pendingack.Hold) {
	if hold.Acked == nil {
		s.cursor.Ack(hold.Position)
	} else {
		s.cursor.AckBits(hold.Position, hold.Acked, hold.Size)
	}
	if s.cursor.Done(hold.Position) {
		delete(s.redelivered, hold.Position)
	}
}

// ackAll is ack of each of holds; what it completes costs together as much as one.
func (s *subscription) ackAll(holds []pendingack.Hold) {
	whole := make([]ledger.Position, 0, len(holds))
	for _, hold := range holds {
		if hold.Acked == nil || s.cursor.Acked(hold.Position).Or(hold.Acked).Count() >= hold.Size {
			whole = append(whole, hold.Position)
		} else {
			s.cursor.AckBits(hold.Position, hold.Acked, hold.Size)
		}
	}
	s.cursor.AckAll(whole)
	for _, p := range whole {
		delete(s.redelivered, p)
	}
}

func (s *subscription) ackThrough(hold pendingack.Hold) {
	if hold.Acked == nil {
		s.cursor.AckThrough(hold.Position)
		return
	}
	s.cursor.AckBefore(hold.Position)
	s.cursor.AckBits(hold.Position, hold.Acked, hold.Size)
}

// resume makes g write the cursor, and what is committed.
func (s *subscription) resume(g *group) {
	g.touch(s)
	for _, c := range s.commits {
		if ref := (holdRef{s, c.id}); !g.ends(ref) {
			g.end(ref)
			g.count(1, 0)
		}
	}
}

// dropCommitted deletes what committed transactions held, in the group that completes the cursor.
func (s *subscription) dropCommitted(g *group) {
	for _, c := range s.commits {
		g.write(clientv3.OpDelete(s.keys.PendingPrefix(c.id), clientv3.WithPrefix()))
	}
}

// saved answers what waited for the cursor to be stored.
func (s *subscription) saved() {
	commits, waiting := s.commits, s.waiting
	s.commits, s.waiting = nil, nil
	for _, c := range commits {
		s.freePending(s.pending.Release(c.id))
		s.topic.settling.drop(c.id)
	}
	for _, c := range commits {
		c.answer(nil)
	}
	for _, answer := range waiting {
		answer(nil)
	}
	if !s.durable {
		s.cursor.Forget()
	}
	s.pruneSizes()
}

// fail answers what waited that nothing is known.
func (s *subscription) fail(err error) {
	for _, c := range s.commits {
		c.answer(err)
	}
	for _, answer := range s.waiting {
		answer(err)
	}
	s.commits, s.waiting = nil, nil
}

// giveBack makes available again exactly what an aborted transaction held, as far as it was looked at already; the rest is
// delivered in its turn.
func (s *subscription) giveBack(held pendingack.Held) {
	defer s.freePending(held)
	for _, hold := range held.Individual {
		s.again(hold.Position, hold.Acked)
	}
	if held.Cumulative == nil {
		return
	}
	to := held.Cumulative.Position
	if held.Cumulative.Acked != nil {
		s.again(to, held.Cumulative.Acked)
	} else {
		to = to.Next()
	}
	if s.read.Before(to) {
		to = s.read
	}
	r := ledger.Range{From: s.cursor.Frontier(), To: to}
	s.redeliver.Add(r)
	for p := range s.given {
		if r.Contains(p) {
			delete(s.given, p)
		}
	}
}

// again queues p, or indexes of the batch at p, for redelivery.
func (s *subscription) again(p ledger.Position, indexes ledger.Bits) {
	if s.cursor.Done(p) {
		return
	}
	if s.shared() {
		s.redelivered[p]++
	}
	if s.restrict(p, indexes) {
		s.redeliver.Add(ledger.One(p))
	}
}

// restrict notes that p, or indexes of the batch at p, are to be delivered again. It reports whether p must be queued for that:
// it is done, or its turn comes anyway, otherwise.
func (s *subscription) restrict(p ledger.Position, indexes ledger.Bits) bool {
	if s.cursor.Done(p) || !p.Before(s.read) {
		return false
	}
	waits := s.parked.contains(p)
	before, restricted := s.given[p]
	switch {
	case indexes == nil:
		delete(s.given, p)
	case restricted || !waits && !s.redeliver.Contains(p):
		s.given[p] = before.Or(indexes)
	}
	return !waits
}

// passOver notes that p, or indexes of the batch at p, are not given because a transaction holds them.
func (s *subscription) passOver(p ledger.Position, indexes ledger.Bits) {
	if s.topic.writing != nil {
		s.passed = append(s.passed, pendingack.Hold{Position: p, Acked: indexes})
	}
}

// returnPassed makes what was passed over due again: the write in flight did not come to be.
func (s *subscription) returnPassed() {
	due := make([]ledger.Range, 0, len(s.passed))
	for _, hold := range s.passed {
		if s.restrict(hold.Position, hold.Acked) {
			due = append(due, ledger.One(hold.Position))
		}
	}
	s.passed = nil
	s.redeliver.AddAll(due)
}

// rewind makes everything that is not acknowledged due again.
func (s *subscription) rewind() {
	s.read = s.cursor.Frontier()
	s.redeliver.Clear()
	clear(s.given)
	s.passed = nil
	s.parked.clear(s.consumers)
	s.delayed = delayed{}
	s.setAhead(page{})
}

// batchSize returns the size of a batch that was delivered or is in the cache, and 0 if it is not known.
func (s *subscription) batchSize(p ledger.Position) int {
	if size := s.sizes[p]; size != 0 {
		return size
	}
	if s.topic.cache.covers(p) {
		if e := s.topic.cache.find(p, p.Next()); e != nil {
			return e.BatchSize()
		}
	}
	return 0
}

const leastSizes = 1024

func (s *subscription) pruneSizes() {
	if len(s.sizes) < max(leastSizes, s.sizesLimit) {
		return
	}
	for p := range s.sizes {
		if s.cursor.Done(p) {
			delete(s.sizes, p)
		}
	}
	s.sizesLimit = 2 * len(s.sizes)
}

// remove takes a consumer away; what it had goes to others. Without any, the next one starts at the first message that is not
// acknowledged, and counts of redelivery start anew.
//
// Source: PersistentDispatcherMultipleConsumers.removeConsumer.
func (s *subscription) remove(c *consumer) {
	i := slices.Index(s.consumers, c)
	if i < 0 {
		return
	}
	c.attached = false
	s.consumers = slices.Delete(s.consumers, i, i+1)
	if s.shared() {
		s.removeShared(c)
	} else {
		s.elect()
	}
	if len(s.consumers) == 0 && !s.durable && s.seeking == 0 {
		s.gone = true
		delete(s.topic.subscriptions, s.name)
	}
}

// removeShared gives what a consumer had to others.
func (s *subscription) removeShared(c *consumer) {
	s.leave(c)
	s.leaveChunks(c)
	c.waiting = nil
	s.lookAgain()
	due := make([]ledger.Range, 0, len(c.unacked))
	for p, was := range c.unacked {
		if s.restrict(p, was.indexes) {
			due = append(due, ledger.One(p))
		}
		s.letGo(c, p, was.key)
	}
	s.redeliver.AddAll(due)
	c.count(-c.unackedMessages)
	c.unacked = nil
	if s.keyShared() {
		s.sticky.remove(c)
		s.holders.leave(c)
	}
	if len(s.consumers) == 0 {
		s.rewind()
		clear(s.redelivered)
		s.silence()
	}
}

// disconnect takes all consumers away and tells them to come again.
func (s *subscription) disconnect(but *consumer) {
	for len(s.consumers) > 0 {
		c := s.consumers[0]
		s.remove(c)
		if c != but {
			c.client.Disconnect()
		}
	}
}
