package topic

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"github.com/pulsar-tc/pulsar-tc/keyspace"
	"github.com/pulsar-tc/pulsar-tc/topic/dedup"
	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
	"github.com/pulsar-tc/pulsar-tc/topic/txnbuffer"
	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// Topic is one loaded topic or partition. Its fields belong to the goroutine of its mailbox.
type Topic struct {
	mailbox

	name     topicname.Name
	fullName string
	options  *Options
	keys     keyspace.Topic
	store    store
	registry *Topics
	log      zerolog.Logger
	reads    chan struct{} // a token for each asyncRead
	// hash is the participant hash of the topic itself.
	hash string
	// ctx ends when the topic closes.
	ctx    context.Context
	cancel context.CancelFunc

	fence   int64           // mod revision of the owner key
	lost    <-chan struct{} // closed when the lease of the owner key is known to be gone; nil: it has none
	left    *dormant        // what the next load is to know; nil: nothing
	ledger  uint64
	next    uint64          // entry id of the next entry
	ledgers []earlierLedger // that had entries, in order
	unnamed *earlierLedger  // the last of ledgers, as long as its key is not written
	first   ledger.Position // nothing lies before it
	sizes   sizes           // before the current ledger, and up to the end
	buffer  *txnbuffer.Buffer

	dedup   *dedup.State
	tending bool // a forgetNames is under way
	cache   cache

	queue    queue
	writing  *group
	performs []*settledPart // durable, done in memory when the write in flight has ended
	aborts   []*abortion    // in order
	aborting map[txn.ID]*abortion
	unsaved  map[*subscription]struct{} // cursors that need another group
	folding  folding
	settling settling
	asking   map[openRef]*registration
	finding  bool // the blocks of restored transactions are being looked for
	groups   uint64
	singles  int // items of a divided group that are not written yet

	producers     map[string]*producer
	exclusive     *producer         // of producers, the only one; nil: there is none
	waiting       []*attachProducer // to become exclusive, in order
	epoch         uint64            // of the last exclusive producer
	hasEpoch      bool              // there was one
	subscriptions map[string]*subscription
	nextSubID     uint64
	creating      map[string]bool // subscriptions that the group creates, and whether they are durable

	lastVisible lastVisible
	compaction  compactionState
	trim        trimmer
	counts      counts
	in, out     meter
	measured    time.Time // when rates were
	idleSince   time.Time // nobody used it when that was looked at; zero: it is in use
	removing    bool      // it is being deleted and takes no more clients
	deleting    bool      // it is inactive, and whether it can be deleted is being found out
	unloading   bool      // it takes nothing more from its clients
	terminated  bool      // it takes no more messages
	expired     time.Time // when expired messages were last looked for
	expiring    bool      // they are being looked for
	aging       bool      // the age of the backlog is being looked up
	tooOld      bool      // it was beyond its limit then
	draining    []func()
}

// earlierLedger is a ledger of a load before this one.
type earlierLedger struct {
	id   uint64
	last uint64 // its last entry
	sizes
}

// end is the position behind the last entry.
func (t *Topic) end() ledger.Position { return ledger.Position{Ledger: t.ledger, Entry: t.next} }

// behindLast is the position behind the last entry that was ever written.
func (t *Topic) behindLast() ledger.Position {
	if n := len(t.ledgers); t.next == 0 && n > 0 {
		return ledger.Position{Ledger: t.ledgers[n-1].id, Entry: t.ledgers[n-1].last}.Next()
	}
	return t.end()
}

// maxRead is how far the topic may be read: everything before it.
func (t *Topic) maxRead() ledger.Position { return t.buffer.MaxRead(t.end()) }

// oldest is the first position that may have an entry.
func (t *Topic) oldest() ledger.Position { return t.first }

// exists reports whether p was given to an entry once; where the log is trimmed and compacted that is not known any more.
func (t *Topic) exists(p ledger.Position) bool {
	if p.Ledger == t.ledger {
		return p.Entry < t.next
	}
	for _, l := range t.ledgers {
		if l.id == p.Ledger {
			return p.Entry <= l.last
		}
	}
	return t.compaction.generation > 0 && p.Before(t.first)
}

// beyond reports whether p lies at or behind the end of the log.
func (t *Topic) beyond(p ledger.Position) bool { return !p.Before(t.end()) }

// participant is the topic itself as a participant of transactions.
func (t *Topic) participant() txn.Participant { return txn.Participant{Topic: t.fullName} }

// round runs after each round of calls.
func (t *Topic) round() {
	t.flush()
	for _, s := range t.subscriptions {
		s.dispatch()
	}
	t.tellEnd()
	t.evict()
	if len(t.draining) > 0 && t.writing == nil && t.queue.empty() && len(t.aborting) == 0 && t.settling.stop() {
		t.giveUp(txn.ErrNotReady)
	}
}

// async runs task outside the topic. What it finds out it posts.
func (t *Topic) async(task func()) { t.tasks.Go(task) }

// maxReads is how many reads that clients asked for run at once for one topic: each may have a block in memory. Others wait.
const maxReads = 4

// asyncRead is async for a task that reads what a client asks about, of whom any number may ask.
func (t *Topic) asyncRead(task func()) {
	t.async(func() {
		select {
		case t.reads <- struct{}{}:
			defer func() { <-t.reads }()
		case <-t.ctx.Done(): // the task finds out
		}
		task()
	})
}

// drain answers what waits, then closes; closed is called after that.
func (t *Topic) drain(closed func()) {
	t.ask(func(alive bool) {
		if !alive {
			closed()
			return
		}
		t.draining = append(t.draining, closed)
		t.settling.stop()
	})
}

// abandon closes the topic at once.
func (t *Topic) abandon(err error) {
	t.ask(func(alive bool) {
		if alive {
			t.shut(err)
		}
	})
}

// giveUp is shut for a topic that any instance may load from now on. What waits for it to close waits until it may.
func (t *Topic) giveUp(err error) {
	if t.options.Instance == nil {
		t.shut(err)
		return
	}
	waiting := t.draining
	t.draining = nil
	t.shut(err)
	t.async(func() {
		t.release(t.left)
		for _, closed := range waiting {
			closed()
		}
	})
}

// shut closes the topic: nothing definite is answered, clients are disconnected and come again.
func (t *Topic) shut(err error) {
	t.registry.forget(t)
	t.settling.stop()
	if t.folding.alarm != nil {
		t.folding.alarm.Stop()
	}
	t.close()
	t.cancel()
	t.failWaiting(err)
	for _, p := range t.producers {
		p.detach()
		p.client.Disconnect()
	}
	for _, s := range t.subscriptions {
		s.setAhead(page{})
		for _, c := range s.consumers {
			c.attached = false
			c.client.Disconnect()
		}
	}
	if t.writing != nil {
		t.writing.fail(err)
		t.writing = nil
	}
	t.queue.fail(err)
	for s := range t.unsaved {
		s.fail(err)
	}
	for _, a := range t.aborting {
		a.fail(err)
	}
	for _, r := range t.asking {
		r.fail(err)
	}
	t.cache.clear()
	for _, closed := range t.draining {
		closed()
	}
}
