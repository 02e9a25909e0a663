package etcdlog

import (
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/keyspace"
	"github.com/pulsar-tc/pulsar-tc/txn"
	"github.com/pulsar-tc/pulsar-tc/txnlog"
)

const (
	// opOverhead is what an operation adds to a request beside its key and value: tags, lengths, nesting, response.
	opOverhead = 32
	// compareOverhead is what a compare adds to a request beside its key.
	compareOverhead = 32
	// fixedCompares are those of the leader key and of the log index.
	fixedCompares = 2
	// requestOverhead is what every request has: the compares, the else branch, the put of the log entry, raft's header.
	requestOverhead = 1024
	// participantHash is the length of the last part of an open key.
	participantHash = 32
)

// piece collects what one etcd transaction writes, folded to one operation per key: etcd refuses two, and refuses a put
// inside a range that the same transaction deletes.
type piece struct {
	space            keyspace.Space
	tc               uint64
	maxOps, maxBytes int
	openKey          int // length of an open key

	encoder txnlog.Encoder
	ops     []clientv3.Op // all but the puts of open keys
	opened  []openKey
	keys    map[string]bool // of opened
	touched map[uint64]touch
	fences  []txn.Fence // of settlements
	fenced  map[txn.Fence]bool
	count   int // operations, all of them
	bytes   int // of the request but the log value, an upper bound
}

// openKey is a put of an open key.
type openKey struct {
	least uint64
	key   string
}

// touch is what a piece does to the open keys of one transaction.
type touch struct {
	puts   int
	closed bool
}

func (p *piece) init(space keyspace.Space, tc uint64, maxOps, maxBytes int) {
	p.space, p.tc, p.maxOps, p.maxBytes = space, tc, maxOps, maxBytes
	p.openKey = len(space.OpenPrefix(txn.ID{Most: tc})) + participantHash
	p.keys = make(map[string]bool)
	p.touched = make(map[uint64]touch)
	p.fenced = make(map[txn.Fence]bool)
}

func (p *piece) reset() {
	p.encoder.Reset()
	clear(p.ops)
	clear(p.opened)
	p.ops, p.opened = p.ops[:0], p.opened[:0]
	clear(p.keys)
	clear(p.touched)
	clear(p.fences)
	p.fences = p.fences[:0]
	clear(p.fenced)
	p.count, p.bytes = 1, requestOverhead // the put of the log entry
}

// add takes an operation that is not of an open key. size is that of its keys and value.
func (p *piece) add(op clientv3.Op, size int) {
	p.ops = append(p.ops, op)
	p.reserve(size)
}

// reserve leaves room for an operation that is appended to ops later.
func (p *piece) reserve(size int) {
	p.count++
	p.bytes += size + opOverhead
}

// fits reports whether an additional change stays within the limits, and leaves no put in a deleted range.
func (p *piece) fits(c *txn.Change) bool {
	if len(c.Opens) > 0 && !c.CloseAll && p.touched[c.Record.Least].closed {
		return false
	}
	count, bytes := p.count, p.bytes
	if c.CloseAll {
		puts := p.touched[c.Record.Least].puts
		count += 1 - puts
		bytes += 2*p.openKey + opOverhead - puts*(p.openKey+opOverhead)
	} else {
		count += len(c.Opens)
		bytes += len(c.Opens) * (p.openKey + opOverhead)
	}
	if s := c.Settlement; s != nil {
		// Some of the fences may be there already: an upper bound.
		if fixedCompares+len(p.fences)+len(s.Fences) > p.maxOps {
			return false
		}
		count += len(s.Puts) + len(s.Deletes)
		bytes += settlementSize(s)
	}
	return count <= p.maxOps && bytes+p.encoder.Len()+txnlog.MaxSize(&c.Record) <= p.maxBytes
}

// fill takes changes as long as they fit. It takes at least a part of one, so that a change too large for any transaction
// is refused by etcd and not tried for ever.
func (p *piece) fill(rest *changes) {
	for !rest.empty() {
		c := rest.first()
		if p.fits(c) {
			p.take(c)
			rest.drop()
			continue
		}
		if p.encoder.Records() > 0 {
			return
		}
		part, remainder := p.cut(c)
		p.take(&part)
		rest.drop()
		if remainder != nil {
			rest.remainder = remainder
			return
		}
	}
}

// take adds a change.
func (p *piece) take(c *txn.Change) {
	p.encoder.Add(&c.Record)
	if c.Settlement != nil {
		p.settle(c.Settlement)
	}
	if len(c.Opens) == 0 && !c.CloseAll {
		return
	}
	least := c.Record.Least
	t := p.touched[least]
	if c.CloseAll {
		p.closeAll(least, &t)
	} else {
		for _, participant := range c.Opens {
			p.open(least, participant, &t)
		}
	}
	p.touched[least] = t
}

func (p *piece) open(least uint64, participant txn.Participant, t *touch) {
	key := p.space.Open(txn.ID{Most: p.tc, Least: least}, participant)
	if p.keys[key] {
		return
	}
	p.keys[key] = true
	p.opened = append(p.opened, openKey{least, key})
	t.puts++
	p.reserve(p.openKey)
}

// settle takes what participants make durable.
func (p *piece) settle(s *txn.Settlement) {
	for _, fence := range s.Fences {
		if !p.fenced[fence] {
			p.fenced[fence] = true
			p.fences = append(p.fences, fence)
		}
	}
	for _, key := range s.Puts {
		p.ops = append(p.ops, clientv3.OpPut(key, ""))
	}
	for _, key := range s.Deletes {
		p.ops = append(p.ops, clientv3.OpDelete(key))
	}
	p.count += len(s.Puts) + len(s.Deletes)
	p.bytes += settlementSize(s)
}

// settlementSize is what a settlement adds to a request at most.
func settlementSize(s *txn.Settlement) (size int) {
	for _, fence := range s.Fences {
		size += len(fence.Key) + compareOverhead
	}
	for _, keys := range [][]string{s.Puts, s.Deletes} {
		for _, key := range keys {
			size += len(key) + opOverhead
		}
	}
	return size
}

// closeAll replaces the puts of a transaction by one range delete.
func (p *piece) closeAll(least uint64, t *touch) {
	p.count -= t.puts
	p.bytes -= t.puts * (p.openKey + opOverhead)
	t.puts = 0
	if t.closed {
		return
	}
	t.closed = true
	prefix := p.space.OpenPrefix(txn.ID{Most: p.tc, Least: least})
	p.add(clientv3.OpDelete(prefix, clientv3.WithPrefix()), 2*len(prefix))
}

// finish returns all operations, that of the log entry among them. They are valid until reset.
func (p *piece) finish(entry clientv3.Op) []clientv3.Op {
	p.ops = append(p.ops, entry)
	for _, o := range p.opened {
		if !p.touched[o.least].closed {
			p.ops = append(p.ops, clientv3.OpPut(o.key, ""))
		}
	}
	return p.ops
}

// cut takes as many participants off the front of a change as fit into the empty piece, at least one. Only additions of
// participants can be cut: the parts of any other record do not add up to it. remainder is nil if nothing is left.
func (p *piece) cut(c *txn.Change) (part txn.Change, remainder *txn.Change) {
	adds := c.Record.Op == txn.OpAddPartition || c.Record.Op == txn.OpAddSubscription
	if !adds || c.CloseAll {
		return *c, nil
	}
	opens := make(map[txn.Participant]bool, len(c.Opens))
	for _, participant := range c.Opens {
		opens[participant] = true
	}
	part = txn.Change{Record: c.Record}
	n := 0
	for ; n < len(c.Record.Participants); n++ {
		participant := c.Record.Participants[n]
		longer := part
		longer.Record.Participants = c.Record.Participants[:n+1]
		if opens[participant] {
			longer.Opens = append(part.Opens, participant)
		}
		if n > 0 && !p.fits(&longer) {
			break
		}
		part = longer
		delete(opens, participant)
	}
	if n == len(c.Record.Participants) {
		return *c, nil
	}
	remainder = &txn.Change{Record: c.Record}
	remainder.Record.Participants = c.Record.Participants[n:]
	for _, participant := range c.Opens {
		if opens[participant] {
			remainder.Opens = append(remainder.Opens, participant)
		}
	}
	return part, remainder
}

// changes are what is still to be written of a batch. The batch itself is not touched.
type changes struct {
	remainder *txn.Change // of one that was cut, before all of list
	list      []txn.Change
}

func (c *changes) empty() bool { return c.remainder == nil && len(c.list) == 0 }

func (c *changes) first() *txn.Change {
	if c.remainder != nil {
		return c.remainder
	}
	return &c.list[0]
}

func (c *changes) drop() {
	if c.remainder != nil {
		c.remainder = nil
		return
	}
	c.list = c.list[1:]
}
