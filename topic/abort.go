package topic

import (
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
	"github.com/pulsar-tc/pulsar-tc/topic/txnbuffer"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// abortion deletes the entries of a transaction, a bounded number in each group, and its mark with the last of them.
type abortion struct {
	topic   *Topic
	txn     *txnbuffer.Transaction
	left    []ledger.Position // blocks that are not deleted yet; counts only once started
	started bool
	done    bool
	waiters []func(error)
}

// abortStep is what one group does of an abortion.
type abortStep struct {
	abortion *abortion
	blocks   int
	last     bool
}

// abort begins to abort t, or joins the abortion that runs.
func (t *Topic) abort(transaction *txnbuffer.Transaction, done func(error)) *abortion {
	if a := t.aborting[transaction.ID]; a != nil {
		a.waiters = append(a.waiters, done)
		return a
	}
	a := &abortion{topic: t, txn: transaction, waiters: []func(error){done}}
	t.aborts = append(t.aborts, a)
	t.aborting[transaction.ID] = a
	t.settling.take(transaction.ID)
	if !transaction.Known() {
		t.findBlocks()
	}
	return a
}

// stepAborts adds to g what fits of the abortions, oldest first.
func (t *Topic) stepAborts(g *group) {
	t.aborts = slices.DeleteFunc(t.aborts, func(a *abortion) bool { return a.done })
	for _, a := range t.aborts {
		a.step(g)
	}
}

// step adds deletes to g. Aborts leave half of a group to everybody else.
func (a *abortion) step(g *group) {
	ref := holdRef{id: a.txn.ID}
	if !a.txn.Known() || g.adds(ref) || g.ends(ref) {
		return
	}
	if !a.started {
		a.left, a.started = a.txn.Blocks, true
	}
	spare := a.topic.options.MaxTxnOps/2 - g.opCount - 1
	if spare < 0 {
		return
	}
	g.end(ref)
	n := min(len(a.left), spare)
	for _, last := range a.left[:n] {
		g.write(clientv3.OpDelete(a.topic.keys.TxnEntries(last.Ledger, last.Entry, a.txn.ID)))
	}
	last := n == len(a.left)
	if last {
		g.write(clientv3.OpDelete(a.topic.keys.Txn(a.txn.ID)))
	}
	g.count(n+1, 0)
	g.steps = append(g.steps, &abortStep{a, n, last})
}

func (s *abortStep) perform() {
	a, t := s.abortion, s.abortion.topic
	for _, last := range a.left[:s.blocks] {
		t.cache.abort(a.txn.ID, last)
	}
	a.left = a.left[s.blocks:]
	if !s.last {
		return
	}
	t.buffer.Ended(a.txn.ID)
	t.dedup.Ended(a.txn.ID)
	delete(t.aborting, a.txn.ID)
	t.settling.drop(a.txn.ID)
	a.done = true
	t.counts.aborted++
	for _, done := range a.waiters {
		done(nil)
	}
}

func (a *abortion) fail(err error) {
	for _, done := range a.waiters {
		done(err)
	}
}

// findBlocks looks for the blocks of all restored transactions at once, from the first entry of the oldest to the end of the
// ledger before. That part of the log is unread by everybody, so the cost follows the active load.
func (t *Topic) findBlocks() {
	if t.finding {
		return
	}
	t.finding = true
	found := make(map[txn.ID][]ledger.Position)
	var from ledger.Position
	for transaction := t.buffer.Oldest(); transaction != nil; transaction = transaction.Next() {
		if transaction.Known() {
			continue
		}
		if len(found) == 0 {
			from = transaction.First
		}
		found[transaction.ID] = []ledger.Position{}
	}
	key, end := t.keys.Entries(from.Ledger, from.Entry), t.keys.Entries(t.ledger, 0)
	t.async(func() {
		err := t.store.scan(t.ctx, key, end, func(key, _ []byte) error {
			l, last, id, inTxn, ok := t.keys.ParseEntries(key)
			if !ok {
				return &txn.CorruptError{Key: string(key), Reason: "it is no key of a block"}
			}
			if blocks, wanted := found[id]; inTxn && wanted {
				found[id] = append(blocks, ledger.Position{Ledger: l, Entry: last})
			}
			return nil
		}, clientv3.WithKeysOnly())
		t.post(func(alive bool) {
			if alive {
				t.foundBlocks(found, err)
			}
		})
	})
}

func (t *Topic) foundBlocks(found map[txn.ID][]ledger.Position, err error) {
	t.finding = false
	if err != nil {
		t.log.Warn().Err(err).Msg("entries of open transactions cannot be read, topic closes")
		t.shut(ErrPersistence)
		return
	}
	for id, blocks := range found {
		if transaction := t.buffer.Get(id); transaction != nil {
			transaction.Found(blocks)
		}
	}
}
