package fsm

import (
	"container/heap"
	"fmt"
	"math"

	"github.com/pulsar-tc/pulsar-tc/coordinator/cleaning"
	"github.com/pulsar-tc/pulsar-tc/preserver"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// Options are the limits of one coordinator. 0 means no limit, except where it says otherwise.
type Options struct {
	TC uint64
	// MaxTTLMillis is the longest ttl; a longer one, or one whose deadline no int64 holds, is refused, never shortened
	// (transactionMaxTtlMs).
	MaxTTLMillis uint64
	// MaxActive bounds live transactions (maxActiveTransactionsPerCoordinator).
	MaxActive int
	// MaxParticipants bounds the participants of one transaction.
	MaxParticipants int
	// MaxParticipantBytes bounds their names together (transactionMaxParticipantBytes).
	MaxParticipantBytes int
	// MaxSnapshotBytes bounds the snapshot of one transaction, which must fit one etcd request.
	MaxSnapshotBytes int
	// LogSlack is how much more the log may take than twice what of it is live, in bytes. 0: cleaning.Slack.
	LogSlack  int64
	Preserver preserver.Options
}

const (
	// minTTLMillis is what a shorter ttl is taken for (TC-11).
	minTTLMillis = 100
	// idBlock is how many ids are reserved at a time.
	idBlock = 1 << 16
	// deadlinesPerTick, recoveredPerTick and expiriesPerTick bound what one Tick does, so that a burst does not hold up clients. A
	// transaction counts as many as it has participants.
	deadlinesPerTick = 1024
	recoveredPerTick = 1024
	expiriesPerTick  = 10_000
	// bucketsPerList bounds what one ListNames looks at.
	bucketsPerList = 4096
)

// Machine is the state of one coordinator in one term. Make one with New, feed it the log with Replay, then call Recover;
// from then on Step and Take.
type Machine struct {
	opts     Options
	live     map[uint64]*transaction
	first    *transaction // live ones in order of id
	last     *transaction
	due      deadlines
	undriven []*transaction // decided before this term, not driven in it yet; by id
	outcomes *preserver.Index
	fleeting map[uint64]ended // transactions that ended since the last Take and are not kept
	parked   int              // transactions whose outcome waits for space

	issued    uint64 // last id handed out, or the one before the first of this term
	reserved  uint64 // ids below it are reserved
	place     uint64 // last outcome's
	lastEnded int64  // last outcome's end, ms since the epoch

	space    SpaceLevel
	expiring bool

	head     uint64 // log index behind the last known entry
	logCost  int64  // of the entries in the log
	liveCost int64  // of the snapshots of all live transactions
	cleaning bool

	loading bool
	orphans map[uint64]uint64 // least -> index of a record whose NEW is gone, until a later record stands for it

	ready, spare Ready
	pending      int // see Pending
}

// New returns an empty machine.
func New(opts Options) *Machine {
	if opts.LogSlack == 0 {
		opts.LogSlack = cleaning.Slack
	}
	return &Machine{
		opts:     opts,
		live:     map[uint64]*transaction{},
		outcomes: preserver.New(opts.Preserver),
		fleeting: map[uint64]ended{},
		loading:  true,
		orphans:  map[uint64]uint64{},
	}
}

// Step folds one command into the state. now is milliseconds since the epoch.
func (m *Machine) Step(now int64, cmd Command) {
	switch c := cmd.(type) {
	case *NewTxn:
		m.newTxn(now, c)
	case *AddParticipants:
		m.addParticipants(now, c)
	case *EndTxn:
		m.endTxn(now, c)
	case *Applied:
		m.participantApplied(now, c)
	case *Failed:
		m.participantFailed(c)
	case *Resolve:
		m.resolve(now, c)
	case *Tick:
		m.tick(now, c)
	case *Describe:
		m.describe(now, c)
	case *List:
		m.list(now, c)
	case *ListNames:
		m.listNames(now, c)
	case *ShowName:
		m.showName(now, c)
	case *Cleaned:
		m.clean(now, c)
	case *Space:
		m.setSpace(now, c.Level)
	}
}

// Take hands over the work of all steps since the last Take.
func (m *Machine) Take() *Ready {
	if m.space != SpaceRefuseEnd {
		m.outcomes.TakeForgotten(m.forgetOutcomes)
	}
	if !m.cleaning && m.space != SpaceRefuseEnd && cleaning.Due(m.logCost, m.liveCost+m.outcomes.Bytes(), m.opts.LogSlack) {
		m.cleaning = true
		m.ready.Clean = true
	}
	m.ready, m.spare = m.spare, m.ready
	m.ready.reset()
	m.pending = 0
	clear(m.fleeting)
	return &m.spare
}

// keptCapacity is how many changes and effects a Ready keeps memory for: a cleaning or a recovery may have many more.
const keptCapacity = 4096

func (r *Ready) reset() {
	changes, after := r.Batch.Changes, r.after
	*r = Ready{}
	if cap(changes) <= keptCapacity {
		clear(changes)
		r.Batch.Changes = changes[:0]
	}
	if cap(after) <= keptCapacity {
		clear(after)
		r.after = after[:0]
	}
}

// Pending is the number of changes that wait for the next Take, one that opens or closes keys counting as many: the driver's measure of a
// full batch.
func (m *Machine) Pending() int { return m.pending }

// Appended tells the machine where the last Ready's batch went.
func (m *Machine) Appended(a txn.Appended) {
	m.head = a.Last + 1
	m.logCost += int64(a.Bytes) + int64(a.Last-a.First+1)*cleaning.EntryOverhead
}

// NextDeadline is when Tick has something to do, milliseconds since the epoch; math.MaxInt64 if nothing is due ever.
func (m *Machine) NextDeadline() int64 {
	switch {
	case m.expiring || len(m.undriven) > 0:
		return 0
	case m.space == SpaceRefuseEnd || len(m.due) == 0:
		return math.MaxInt64
	}
	return m.due[0].deadline()
}

// Live is the number of transactions that have not ended.
func (m *Machine) Live() int { return len(m.live) }

// Outcomes is the index of ended transactions, for reading.
func (m *Machine) Outcomes() *preserver.Index { return m.outcomes }

// Issued is the last id handed out.
func (m *Machine) Issued() uint64 { return m.issued }

// LogCost is what the log takes in the store, and LiveCost what of it is live, in bytes.
func (m *Machine) LogCost() int64  { return m.logCost }
func (m *Machine) LiveCost() int64 { return m.liveCost + m.outcomes.Bytes() }

// LowWaterMark is the mark up to which every transaction has ended, two's complement (TC-17): one below the lowest live
// id, or the last id handed out. A NEW whose append is in flight is live here already.
func (m *Machine) LowWaterMark() uint64 {
	if m.first != nil {
		return m.first.least - 1
	}
	return m.issued
}

// append adds a change to the batch and applies its record.
func (m *Machine) append(c txn.Change) *transaction {
	m.ready.Batch.Changes = append(m.ready.Batch.Changes, c)
	t := m.apply(&c.Record, m.head)
	keys := len(c.Opens)
	if c.CloseAll {
		keys = len(t.participants)
	}
	m.pending += max(1, keys)
	return t
}

func (m *Machine) effect(e Effect) { m.ready.after = append(m.ready.after, e) }

func (m *Machine) reply(to any, id txn.ID, err error) {
	m.effect(Effect{Kind: Reply, To: to, ID: id, Err: err})
}

func (m *Machine) id(least uint64) txn.ID { return txn.ID{Most: m.opts.TC, Least: least} }

// refuse answers with something that is true only as long as the term holds.
func (m *Machine) refuse(to any, id txn.ID, err error) {
	m.ready.NeedsProof = true
	m.reply(to, id, err)
}

// refuseUnknown answers that no transaction has an id that the caller may know of. What was forgotten must be durable before, which
// it cannot become while the store takes nothing: until then nobody is told that anything is not known.
func (m *Machine) refuseUnknown(to any, id txn.ID) {
	if m.space == SpaceRefuseEnd && m.outcomes.Forgetting() {
		m.refuse(to, id, fmt.Errorf("%w: the store is full, what became of the transaction is told when there is space", txn.ErrNotReady))
		return
	}
	m.refuse(to, id, &txn.NotFoundError{ID: id})
}

// link puts a new transaction behind all others: ids only grow.
func (m *Machine) link(t *transaction) {
	t.prev = m.last
	if m.last != nil {
		m.last.next = t
	} else {
		m.first = t
	}
	m.last = t
}

func (m *Machine) unlink(t *transaction) {
	if t.prev != nil {
		t.prev.next = t.next
	} else {
		m.first = t.next
	}
	if t.next != nil {
		t.next.prev = t.prev
	} else {
		m.last = t.prev
	}
	t.prev, t.next = nil, nil
}

func (m *Machine) arm(t *transaction) { heap.Push(&m.due, t) }

func (m *Machine) disarm(t *transaction) {
	if t.deadlineAt >= 0 {
		heap.Remove(&m.due, t.deadlineAt)
	}
}

// mayAct is the owner check of every request on a transaction. Source: TransactionMetadataStoreService.verifyTxnOwnership.
func mayAct(caller Caller, owner txn.Owner) bool {
	return !owner.Known || caller.Super || caller.Owner == owner
}

// Abandon returns the To of every END_TXN that waits, in order of id: the term is over and none of them gets an answer from
// this machine, which must not be used any more.
func (m *Machine) Abandon() []any {
	var all []any
	for t := m.first; t != nil; t = t.next {
		for _, w := range t.waiters {
			all = append(all, w.to)
		}
	}
	return all
}
