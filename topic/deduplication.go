package topic

import (
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/topic/dedup"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// deduplicate begins what g changes of the stored sequence ids. A topic that does not deduplicate any more forgets them with its
// next write: producers may use the same ids again then.
func (g *group) deduplicate() {
	t := g.topic
	t.dedup.Keep(t.options.Policies(t.name).Deduplication)
	g.dedup = t.dedup.Draft(t.options.Now())
	if !t.dedup.Keeps() && t.dedup.Names() > 0 {
		g.clears = true
		g.write(clientv3.OpDelete(t.keys.DedupPrefix(), clientv3.WithPrefix()))
		g.count(1, 0)
	}
}

// makeGood makes g store for good what open transaction id has stored, if there is room for that.
func (g *group) makeGood(id txn.ID) bool {
	pages, bytes := g.dedup.CommitCost(id)
	if !g.fits(1+pages, bytes) {
		return false
	}
	g.dedup.Commit(id)
	g.count(pages, bytes)
	return true
}

// finishDedup writes the pages that g changes.
func (g *group) finishDedup() {
	keys := g.topic.keys
	g.dedup.Pages(func(number uint64, value []byte) {
		if len(value) == 0 {
			g.write(clientv3.OpDelete(keys.Dedup(number)))
		} else {
			g.write(clientv3.OpPut(keys.Dedup(number), string(value)))
		}
	})
}

// judge tells what is known of the sequence ids of a send. Chunks share one id, which is tested with the last of them. Without
// deduplication only repeats behind a reconnect, in the same transaction, are known.
func (s *sendItem) judge(g *group) (verdict dedup.Verdict, other txn.ID) {
	if !s.lastChunk() {
		return dedup.Fresh, other
	}
	id := &s.msg.Txn
	if !s.msg.InTxn {
		id = nil
	}
	if s.producer.topic.dedup.Keeps() {
		return g.dedup.Judge(s.producer.name, s.msg.SequenceID, id)
	}
	if highest, found := s.producer.stored[s.msg.Txn]; found && s.msg.InTxn && s.msg.SequenceID <= highest {
		return dedup.Duplicate, other
	}
	return dedup.Fresh, other
}

// dedupCost returns what a send outside transactions adds to the write beside its entry.
func (s *sendItem) dedupCost(g *group) (pages, bytes int) {
	if s.msg.InTxn || !s.lastChunk() {
		return 0, 0
	}
	return g.dedup.Cost(s.producer.name)
}

// tendNames keeps the names that the topic remembers within their bounds.
func (t *Topic) tendNames() {
	if t.tending || !t.dedup.Keeps() {
		return
	}
	if forget, touch := t.staleNames(); len(forget)+len(touch) > 0 {
		t.tending = true
		t.queue.push(&forgetNames{t})
	}
}

func (t *Topic) staleNames() (forget, touch []string) {
	attached := func(name string) bool { return t.producers[name] != nil }
	return t.dedup.Stale(t.options.Now(), attached, t.options.Dedup)
}

// forgetNames forgets names that are unused for long, or too many, and stores that others are in use.
type forgetNames struct{ topic *Topic }

// prepare does what fits. It comes before all other commands of a group, so that nothing is forgotten that the same group makes
// good.
func (f *forgetNames) prepare(g *group) bool {
	if len(g.items) > 0 {
		return false
	}
	forget, touch := f.topic.staleNames()
	for i, name := range append(forget, touch...) {
		pages, bytes := g.dedup.Cost(name)
		if !g.fits(pages, bytes) {
			return i > 0
		}
		g.count(pages, bytes)
		if i < len(forget) {
			g.dedup.Forget(name)
		} else {
			g.dedup.Touch(name)
		}
	}
	return true
}

func (f *forgetNames) undo() {}

func (f *forgetNames) done(*group) {
	f.topic.tending = false
	f.topic.tendNames()
}

func (f *forgetNames) fail(error) {}
