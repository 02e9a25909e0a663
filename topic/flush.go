package topic

import (
	"encoding/binary"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
	"github.com/pulsar-tc/pulsar-tc/topic/pendingack"
)

// errFenced: another load owns the topic, so nothing was written.
var errFenced = errors.New("the topic was loaded again elsewhere")

// flush writes what waits, unless a write is in flight.
func (t *Topic) flush() {
	if t.writing != nil || t.closedNow() {
		return
	}
	g := t.gather()
	if g == nil {
		return
	}
	g.finish()
	t.writing = g
	compares, otherwise := g.conditions()
	then := g.ops
	if len(then) == 0 {
		then = []clientv3.Op{clientv3.OpGet(t.keys.Owner(), clientv3.WithKeysOnly())}
	}
	if t.options.Wrote != nil {
		t.options.Wrote(g.bytes)
	}
	t.async(func() {
		result, err := t.store.txn(t.ctx, compares, then, otherwise)
		t.post(func(alive bool) {
			if alive {
				t.written(g, result, err)
			}
		})
	})
}

func (t *Topic) closedNow() bool { return t.ctx.Err() != nil }

// gather makes the next group, or returns nil if nothing can be done now.
func (t *Topic) gather() *group {
	if t.queue.empty() && len(t.aborting) == 0 && len(t.unsaved) == 0 && !t.folding.due {
		return nil
	}
	if g := t.gatherOne(); g != nil {
		return g
	}
	g := newGroup(t)
	if len(t.unsaved) > 0 {
		g.reserve()
	}
	for s := range t.unsaved {
		s.resume(g)
	}
	t.fold(g)
	t.stepAborts(g)
	for !t.queue.empty() && t.queue.peek().prepare(g) {
		g.items = append(g.items, t.queue.peek())
		t.queue.pop()
	}
	if g.empty() {
		g.release()
		return nil
	}
	return g
}

// conditions returns the fence and the open keys, and the reads that tell which of them was false.
func (g *group) conditions() (compares []clientv3.Cmp, otherwise []clientv3.Op) {
	t := g.topic
	owner := t.keys.Owner()
	compares = append(make([]clientv3.Cmp, 0, 1+len(g.opens)), clientv3.Compare(clientv3.ModRevision(owner), "=", t.fence))
	otherwise = append(make([]clientv3.Op, 0, 1+len(g.opens)), clientv3.OpGet(owner, clientv3.WithKeysOnly()))
	for ref := range g.opens {
		key := t.openKey(ref)
		compares = append(compares, clientv3.Compare(clientv3.CreateRevision(key), ">", 0))
		otherwise = append(otherwise, clientv3.OpGet(key, clientv3.WithKeysOnly()))
	}
	return compares, otherwise
}

func (t *Topic) openKey(ref openRef) string { return t.options.Keys.OpenPrefix(ref.id) + ref.hash }

// finish turns the drafts into operations.
func (g *group) finish() {
	t := g.topic
	written := uint64(t.options.Now().UnixMilli())
	next := t.next
	for _, draft := range g.blocks {
		first := ledger.Position{Ledger: t.ledger, Entry: next}
		next += uint64(len(draft.sends))
		last := ledger.Position{Ledger: t.ledger, Entry: next - 1}
		draft.block = ledger.Block{Txn: draft.id, InTxn: draft.inTxn, Written: written, Entries: make([]ledger.Entry, len(draft.sends))}
		for i, s := range draft.sends {
			draft.block.Entries[i] = s.entry(ledger.Position{Ledger: t.ledger, Entry: first.Entry + uint64(i)})
		}
		key := t.keys.Entries(last.Ledger, last.Entry)
		if draft.inTxn {
			key = t.keys.TxnEntries(last.Ledger, last.Entry, draft.id)
			g.marks[draft.id].wrote(first, last)
		}
		encoded := draft.block.Encode()
		g.stored += uint64(len(encoded))
		g.write(clientv3.OpPut(key, string(encoded)))
	}
	if len(g.blocks) > 0 {
		end := tail{ledger.Position{Ledger: t.ledger, Entry: next - 1}, sizes{t.sizes.before, t.sizes.through + g.stored}}
		g.write(clientv3.OpPut(t.keys.Tail(), string(end.encode())))
		if t.unnamed != nil {
			g.write(clientv3.OpPut(t.keys.Ledger(t.unnamed.id), string(t.unnamed.encode())))
		}
	}
	for id, mark := range g.marks {
		if known := t.buffer.Get(id); known != nil {
			mark.first = known.First
		}
		g.write(clientv3.OpPut(t.keys.Txn(id), string(mark.encode(g.dedup.In(id)))))
	}
	for ref, held := range g.holds {
		if s := ref.subscription; s.durable && !held.Empty() {
			g.write(clientv3.OpPut(s.keys.Pending(ref.id, s.nextPending), string(pendingack.Encode(*held))))
			s.nextPending++
		}
	}
	g.finishDedup()
	g.finishCursors()
}

// finishCursors writes what changed in the cursors that the group touches, as far as it fits.
func (g *group) finishCursors() {
	options := g.topic.options
	ops := max(0, options.MaxTxnOps-g.opCount)
	bytes := max(0, options.MaxRequestBytes-requestHeadroom/2-g.bytes+g.reserved)
	for s := range g.cursors {
		changes := s.cursor.Changes(cursorOps-1+ops, cursorBytes+bytes)
		ops -= max(0, changes.Ops()-cursorOps)
		bytes -= max(0, changes.Bytes()-cursorBytes)
		g.cursors[s] = &changes
		if changes.Reset {
			g.write(clientv3.OpDelete(s.keys.AckedPrefix(), clientv3.WithPrefix()))
			g.write(clientv3.OpDelete(s.keys.BatchPrefix(), clientv3.WithPrefix()))
		}
		if changes.Frontier != nil {
			g.write(clientv3.OpPut(s.keys.Frontier(), string(changes.Frontier)))
		}
		if changes.PassedBuckets {
			at := changes.AtBucket()
			g.write(clientv3.OpDelete(s.keys.AckedPrefix(), clientv3.WithRange(s.keys.Acked(at.Ledger, at.Index))))
		}
		if changes.PassedPartials {
			at := changes.At()
			g.write(clientv3.OpDelete(s.keys.BatchPrefix(), clientv3.WithRange(s.keys.Batch(at.Ledger, at.Entry))))
		}
		for _, b := range changes.PutBuckets {
			g.write(clientv3.OpPut(s.keys.Acked(b.Bucket.Ledger, b.Bucket.Index), string(b.Value)))
		}
		for _, p := range changes.PutPartials {
			g.write(clientv3.OpPut(s.keys.Batch(p.Position.Ledger, p.Position.Entry), string(p.Value)))
		}
		for _, p := range changes.DropPartials {
			g.write(clientv3.OpDelete(s.keys.Batch(p.Ledger, p.Entry)))
		}
		if changes.Complete {
			s.dropCommitted(g)
			s.dropSettled(g)
		}
	}
}

// written takes the store's answer to g.
func (t *Topic) written(g *group, result *clientv3.TxnResponse, err error) {
	t.writing = nil
	switch {
	case refusedForSize(err):
		t.divide(g, err)
	case err != nil:
		t.log.Warn().Err(err).Msg("unknown whether a write was applied, topic closes")
		t.queue.pushFront(g.items)
		t.shut(ErrPersistence)
	case !result.Succeeded:
		t.refused(g, result)
	default:
		t.applied(g)
	}
	if !t.closedNow() {
		t.performSettled()
	}
}

// applied performs what g stands for, now that it is durable.
func (t *Topic) applied(g *group) {
	g.release() // before anybody hears of it and asks for the next
	for _, s := range t.subscriptions {
		s.passed = nil
	}
	if g.clears {
		t.dedup.Clear()
	}
	t.dedup.Apply(&g.dedup)
	if g.dedup.Grows() && t.dedup.Names() > t.options.Dedup.Names {
		t.tendNames()
	}
	for _, draft := range g.blocks {
		entries := draft.block.Entries
		t.counts.published = int64(draft.block.Written)
		for i := range entries {
			t.cache.add(entries[i])
			t.in.add(entries[i].NumMessages, len(entries[i].Payload))
			draft.sends[i].producer.in.add(entries[i].NumMessages, len(entries[i].Payload))
		}
		t.next += uint64(len(entries))
		if draft.inTxn {
			t.buffer.Wrote(draft.id, entries[0].Position, entries[len(entries)-1].Position)
		}
	}
	if len(g.blocks) > 0 {
		t.unnamed = nil
		t.sizes.through += g.stored
	}
	for s, changes := range g.cursors {
		s.cursor.Saved(changes)
		if changes.Complete {
			delete(t.unsaved, s)
			s.folded(g)
		} else {
			t.unsaved[s] = struct{}{}
		}
	}
	for _, step := range g.steps {
		step.perform()
	}
	for s := range g.cursors {
		if _, more := t.unsaved[s]; !more {
			s.saved()
		}
	}
	for _, it := range g.items {
		it.done(g)
	}
}

// refused finds out which comparison was false, takes out what depends on it, and puts the rest back.
func (t *Topic) refused(g *group, result *clientv3.TxnResponse) {
	owner := result.Responses[0].GetResponseRange()
	if len(owner.Kvs) == 0 || owner.Kvs[0].ModRevision != t.fence {
		t.log.Warn().Err(errFenced).Msg("topic closes")
		t.queue.pushFront(g.items)
		t.shut(ErrPersistence)
		return
	}
	missing := make(map[openRef]bool)
	open := make(map[string]bool)
	for _, r := range result.Responses[1:] {
		for _, kv := range r.GetResponseRange().Kvs {
			open[string(kv.Key)] = true
		}
	}
	for ref := range g.opens {
		if !open[t.openKey(ref)] {
			missing[ref] = true
		}
	}
	g.undo()
	t.setAside(g.items, missing)
}

func encodePosition(p ledger.Position) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64([]byte{1}, p.Ledger), p.Entry)
}

func encodeNumber(n uint64) []byte { return binary.BigEndian.AppendUint64([]byte{1}, n) }

func decodeNumber(value []byte) (uint64, error) {
	if len(value) != 9 || value[0] != 1 {
		return 0, fmt.Errorf("number of %d bytes", len(value))
	}
	return binary.BigEndian.Uint64(value[1:]), nil
}
