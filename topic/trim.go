package topic

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
)

// trimmer deletes what nobody needs any more.
type trimmer struct {
	running bool
	// marks tell where the log ended when, oldest first: that is how old entries are known to be. There are about marksKept at most.
	marks []endMark
	// retained is the first entry that retention by time keeps, as of looked.
	retained ledger.Position
	looked   time.Time
	looking  bool
}

const (
	// marksKept bounds the marks of a topic.
	marksKept = 20
	// retentionLooks is how often retention by time is looked at while its time passes once.
	retentionLooks = 20
)

type endMark struct {
	at  time.Time
	end ledger.Position
}

// trimEntries is how many entry ids one delete covers, so that no delete keeps the store busy for long.
const trimEntries = 4096

// tick looks after what time changes.
func (t *Topic) tick() {
	for name, s := range t.subscriptions {
		if !s.takes() {
			s.setAhead(page{}) // nobody takes it
		}
		if !s.durable && len(s.consumers) == 0 && s.seeking == 0 {
			s.gone = true
			delete(t.subscriptions, name)
		}
	}
	t.tendNames()
	now, policies := t.options.Now(), t.options.Policies(t.name)
	t.measure(now)
	t.checkBacklog(now, &policies)
	t.expire(now, &policies)
	t.expireSubscriptions(now, &policies)
	t.compactWhenDue(&policies)
	t.trimTo(t.needless(t.unretained(now, &policies)))
	t.rest(now, &policies)
}

// needless returns how much of everything before p nobody needs.
func (t *Topic) needless(p ledger.Position) ledger.Position {
	if limit := t.maxRead(); limit.Before(p) {
		p = limit
	}
	p = t.compaction.hold(p)
	for _, s := range t.subscriptions {
		if f := s.cursor.Frontier(); f.Before(p) {
			p = f
		}
	}
	return p
}

func (t *Topic) trimTo(target ledger.Position) {
	if t.trim.running || !t.first.Before(target) {
		return
	}
	t.trim.running = true
	first := t.first
	var passed []uint64
	for _, l := range t.ledgers {
		if l.id < target.Ledger && (t.unnamed == nil || l.id != t.unnamed.id) {
			passed = append(passed, l.id)
		}
	}
	t.async(func() {
		err := t.deleteBefore(t.ctx, first, target, passed)
		t.post(func(alive bool) {
			if !alive {
				return
			}
			t.trim.running = false
			if err != nil {
				t.log.Warn().Err(err).Msg("acknowledged entries cannot be deleted, tried again later")
				return
			}
			t.trimmed(target, passed)
		})
	})
}

// deleteBefore deletes the blocks that end before target, and the names of the ledgers that end before it.
func (t *Topic) deleteBefore(ctx context.Context, first, target ledger.Position, passed []uint64) error {
	fence := clientv3.Compare(clientv3.ModRevision(t.keys.Owner()), "=", t.fence)
	for {
		at, found, err := t.store.blockAt(ctx, t.keys, first, target)
		if err != nil {
			return err
		}
		if !found {
			break
		}
		to := ledger.Position{Ledger: at.Ledger, Entry: at.Entry + trimEntries}
		if target.Before(to) {
			to = target
		}
		ops := []clientv3.Op{clientv3.OpDelete(t.keys.Entries(first.Ledger, first.Entry), clientv3.WithRange(t.keys.Entries(to.Ledger, to.Entry)))}
		result, err := t.store.txn(ctx, []clientv3.Cmp{fence}, ops, nil)
		if err != nil {
			return err
		}
		if !result.Succeeded {
			return errFenced
		}
		first = to
	}
	for _, id := range passed {
		result, err := t.store.txn(ctx, []clientv3.Cmp{fence}, []clientv3.Op{clientv3.OpDelete(t.keys.Ledger(id))}, nil)
		if err != nil {
			return err
		}
		if !result.Succeeded {
			return errFenced
		}
	}
	return nil
}

func (t *Topic) trimmed(target ledger.Position, passed []uint64) {
	t.first = target
	for len(passed) > 0 && len(t.ledgers) > 0 && t.ledgers[0].id == passed[0] {
		t.ledgers, passed = t.ledgers[1:], passed[1:]
	}
	t.lastVisible.known = false
}
