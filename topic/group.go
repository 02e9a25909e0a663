package topic

import (
	"slices"

	"github.com/pulsar-tc/pulsar-tc/topic/cursor"
	"github.com/pulsar-tc/pulsar-tc/topic/dedup"
	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
	"github.com/pulsar-tc/pulsar-tc/topic/pendingack"
	"github.com/pulsar-tc/pulsar-tc/txn"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// openRef names an open key that a group compares.
type openRef struct {
	id   txn.ID
	hash string // of the participant
}

// group is what one etcd transaction writes.
type group struct {
	topic  *Topic
	number uint64
	items  []item

	opens map[openRef]struct{} // open keys that must exist
	// written and ended keep what a transaction adds and its end there out of the same group.
	written, ended map[holdRef]struct{}

	blocks    []*blockDraft
	lastBlock map[openTxn]int // the newest block of a transaction, or of none
	marks     map[txn.ID]*markDraft
	dedup     dedup.Draft
	clears    bool // forgets all names, as the topic does not deduplicate any more
	holds     map[holdRef]*pendingack.Held
	cursors   map[*subscription]*cursor.Changes
	steps     []*abortStep
	// claimed are transactions about which nobody else writes meanwhile.
	claimed map[txn.ID]struct{}
	// folds is how many settled commits of a subscription are stored with its cursor.
	folds map[*subscription]int

	attaches bool // a producer

	ops     []clientv3.Op
	opCount int // upper bound of the operations, without those of the cursors
	bytes   int
	stored  uint64 // bytes of the blocks
	// reserved is that part of bytes which is kept free for cursors that did not fit the group before.
	reserved int
	single   bool // has one item and nothing else
	// terminates tells that no message may come behind what the group has.
	terminates bool
}

// openTxn is a transaction or none.
type openTxn struct {
	id    txn.ID
	inTxn bool
}

// blockDraft is a block whose entries have no ids yet.
type blockDraft struct {
	openTxn
	sends []*sendItem
	bytes int
	block ledger.Block
}

// holdRef names what a transaction holds on a subscription or, without one, its messages.
type holdRef struct {
	subscription *subscription
	id           txn.ID
}

const (
	// fixedOps are those of the tail and of the name of the ledger before.
	fixedOps = 2
	// cursorOps are kept free for the cursor of each subscription that a group touches.
	cursorOps = 8
	// cursorBytes are kept free for them: for each a bucket, or a batch of a thousand messages.
	cursorBytes = cursorOps * (cursor.PutOverhead + cursor.BucketEntries/8)
	// maxBlockBytes bounds a block of more than one entry, so that a reader gets what it asks for in small pieces.
	maxBlockBytes = 256 << 10
	// opBytes is about what an operation takes beside its value.
	opBytes = 200
)

func newGroup(t *Topic) *group {
	t.groups++
	g := &group{
		topic:     t,
		number:    t.groups,
		opens:     make(map[openRef]struct{}),
		written:   make(map[holdRef]struct{}),
		ended:     make(map[holdRef]struct{}),
		lastBlock: make(map[openTxn]int),
		marks:     make(map[txn.ID]*markDraft),
		holds:     make(map[holdRef]*pendingack.Held),
		cursors:   make(map[*subscription]*cursor.Changes),
		claimed:   make(map[txn.ID]struct{}),
		folds:     make(map[*subscription]int),
		opCount:   fixedOps,
	}
	g.deduplicate()
	return g
}

// room reports whether ops operations with bytes of values and one more compare fit.
func (g *group) room(ops, bytes int) bool {
	maxOps := g.topic.options.MaxTxnOps
	return g.opCount+ops <= maxOps && len(g.opens)+2 <= maxOps &&
		g.bytes+bytes+ops*opBytes <= g.topic.options.MaxRequestBytes-requestHeadroom/2
}

// empty reports whether the group would write nothing.
func (g *group) empty() bool { return len(g.items) == 0 && len(g.ops) == 0 && len(g.cursors) == 0 }

// fits is room, and true for whatever comes first.
func (g *group) fits(ops, bytes int) bool {
	return g.empty() || g.room(ops, bytes)
}

func (g *group) count(ops, bytes int) {
	g.opCount += ops
	g.bytes += bytes + ops*opBytes
}

func (g *group) write(op clientv3.Op) { g.ops = append(g.ops, op) }

// require makes the group, which adds to ref, depend on the open key: its transaction is open, and registered there.
func (g *group) require(open openRef, ref holdRef) {
	g.opens[open] = struct{}{}
	g.written[ref] = struct{}{}
}

// claim lets g write about transaction id, until release. It reports false while a commit of id is being settled.
func (g *group) claim(id txn.ID) bool {
	if _, has := g.claimed[id]; has {
		return true
	}
	if !g.topic.settling.take(id) {
		return false
	}
	g.claimed[id] = struct{}{}
	return true
}

// release ends what claim began: the fate of g is known, or there is no group.
func (g *group) release() {
	for id := range g.claimed {
		g.topic.settling.drop(id)
	}
}

// adds reports whether the group adds to ref.
func (g *group) adds(ref holdRef) bool {
	_, found := g.written[ref]
	return found
}

// subscribes reports whether a consumer may be attached to a subscription when the group is done.
func (g *group) subscribes(subscription string) bool {
	return slices.ContainsFunc(g.items, func(it item) bool {
		i, is := it.(*subscribeItem)
		return is && i.cmd != nil && i.name == subscription
	})
}

// ends reports whether the group writes the end of ref.
func (g *group) ends(ref holdRef) bool {
	_, found := g.ended[ref]
	return found
}

// end notes that the group writes the end of ref.
func (g *group) end(ref holdRef) {
	g.ended[ref] = struct{}{}
}

// touch makes the group write what changed in the cursor of s.
func (g *group) touch(s *subscription) {
	if _, found := g.cursors[s]; !found && s.durable {
		g.cursors[s] = nil
		g.opCount += cursorOps
		g.bytes += cursorBytes
	}
}

// reserve keeps the bytes free that the largest part of a cursor takes: a batch of as many messages as a payload can hold.
func (g *group) reserve() {
	g.reserved = cursor.PutOverhead + ledger.BitsBytes(g.topic.options.MaxMessageSize)
	g.bytes += g.reserved
}

// hold notes what an acknowledgement added.
func (g *group) hold(s *subscription, id txn.ID) *pendingack.Held {
	ref := holdRef{s, id}
	held := g.holds[ref]
	if held == nil {
		held = &pendingack.Held{}
		g.holds[ref] = held
		g.count(1, 0)
	}
	return held
}

// place gives a send its place in the log: behind all that its producer sent before, and in a block of its transaction.
func (g *group) place(s *sendItem) {
	key := openTxn{s.msg.Txn, s.msg.InTxn}
	size := len(s.msg.Payload) + len(s.producer.name) + ledger.EntryOverhead
	i, found := g.lastBlock[key]
	if !found || i < s.producer.placedIn(g) || g.blocks[i].bytes+size > maxBlockBytes {
		i = len(g.blocks)
		g.blocks = append(g.blocks, &blockDraft{openTxn: key})
		g.lastBlock[key] = i
		g.count(1, ledger.BlockOverhead)
	}
	s.draft, s.index = g.blocks[i], len(g.blocks[i].sends)
	g.blocks[i].sends = append(g.blocks[i].sends, s)
	g.blocks[i].bytes += size
	s.producer.placed(g, i)
	g.count(0, size)
}

// undo takes back what the group changed in memory: it was not applied.
func (g *group) undo() {
	g.release()
	for i := len(g.items) - 1; i >= 0; i-- {
		g.items[i].undo()
	}
	for _, s := range g.topic.subscriptions {
		s.returnPassed()
	}
}

// fail answers that nothing is known of what the group held.
func (g *group) fail(err error) {
	for _, it := range g.items {
		it.fail(err)
	}
}
