package topic

import (
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

const (
	// foldAfter is how long a commit that was settled may wait for a group that stores it with the cursor.
	foldAfter = 200 * time.Millisecond
	// foldAt is how many commits of a topic do not wait.
	foldAt = 256
)

// folding is the subscriptions of a topic that have settled commits. What these acknowledge is in the cursors in memory; the
// next groups store the cursors, and delete what made the commits durable meanwhile.
type folding struct {
	subscriptions map[*subscription]struct{}
	due           bool        // it waits for no other command
	alarm         *time.Timer // makes it due; nil: none runs
}

// committed acknowledges what transaction id holds: it is committed, durably.
func (s *subscription) committed(id txn.ID) {
	held := s.pending.Release(id)
	s.ackHeld(held)
	s.freePending(held)
	s.settled = append(s.settled, id)
	s.topic.folding.subscriptions[s] = struct{}{}
	s.topic.settling.fold(1)
}

// foldSoon sees to it that settled commits do not pile up.
func (t *Topic) foldSoon(s *subscription) {
	switch f := &t.folding; {
	case len(s.settled) >= foldAt:
		f.due = true
	case f.alarm == nil:
		f.alarm = time.AfterFunc(foldAfter, func() { t.post(func(bool) { f.due, f.alarm = len(f.subscriptions) > 0, nil }) })
	}
}

// fold makes g store the cursors of settled commits. It leaves half of the group to everybody else.
func (t *Topic) fold(g *group) {
	half := t.options.MaxTxnOps / 2
	for s := range t.folding.subscriptions {
		if _, touched := g.cursors[s]; !touched && !g.empty() && g.opCount+cursorOps >= half {
			continue
		}
		g.touch(s)
		n := min(len(s.settled), foldAt, max(1, half-g.opCount))
		g.folds[s] = n
		g.count(n, 0)
		for _, id := range s.settled[:n] {
			g.end(holdRef{s, id})
		}
	}
}

// dropSettled deletes what made commits durable, in the group that completes the cursor.
func (s *subscription) dropSettled(g *group) {
	for _, id := range s.settled[:g.folds[s]] {
		g.write(clientv3.OpDelete(s.keys.PendingPrefix(id), clientv3.WithPrefix()))
	}
}

// folded notes that a group has stored the cursor of s.
func (s *subscription) folded(g *group) {
	f, n := &s.topic.folding, g.folds[s]
	s.settled = slices.Delete(s.settled, 0, n)
	s.topic.settling.fold(-n)
	if len(s.settled) == 0 {
		delete(f.subscriptions, s)
	}
	f.due = f.due && len(f.subscriptions) > 0
}

// unfolded reports whether settled commits of s are not stored with its cursor yet, and sees to it that they are soon: a cursor
// must not go back before.
func (s *subscription) unfolded() bool {
	if len(s.settled) == 0 {
		return false
	}
	s.topic.folding.due = true
	return true
}
