package fsm_test

import (
	"math"

	"pgregory.net/rapid"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

// truth is what the durable records say, the dropped ones included: what no answer may contradict.
type truth struct {
	opened  map[uint64]*life
	highest uint64
}

// life is one transaction.
type life struct {
	owner    txn.Owner
	status   txn.Status
	ended    int64 // 0: live
	added    map[txn.Participant]bool
	resolved map[txn.Participant]bool
}

// record takes note of a record that has become durable.
func (u *truth) record(t *rapid.T, r *txn.Record) {
	l := u.opened[r.Least]
	switch r.Op {
	case txn.OpNew:
		if r.Least <= u.highest {
			t.Fatalf("id %d was used before, the highest is %d (TC-21)", r.Least, u.highest)
		}
		u.highest = r.Least
		u.opened[r.Least] = &life{owner: r.Owner, added: map[txn.Participant]bool{}, resolved: map[txn.Participant]bool{}}
	case txn.OpAddPartition, txn.OpAddSubscription:
		if l.status != txn.Open {
			t.Fatalf("ADD to %d is durable in state %s (TC-12)", r.Least, l.status)
		}
		for _, p := range r.Participants {
			l.added[p] = true
		}
	case txn.OpResolve:
		for _, p := range r.Participants {
			l.resolved[p] = true
		}
	case txn.OpUpdate:
		u.update(t, l, r)
	case txn.OpOutcome, txn.OpSnapshot:
		if l.status != r.Status || l.owner != r.Owner {
			t.Fatalf("%d is carried as %s of %v, it is %s of %v", r.Least, r.Status, r.Owner, l.status, l.owner)
		}
	}
}

func (u *truth) update(t *rapid.T, l *life, r *txn.Record) {
	before, wasDecided := l.status.Decided()
	now, _ := r.Status.Decided()
	if l.status.Final() || wasDecided && before != now || r.Expected != l.status {
		t.Fatalf("UPDATE of %d from %s to %s is durable, it is %s (TC-9)", r.Least, r.Expected, r.Status, l.status)
	}
	l.status = r.Status
	if r.Status.Final() {
		l.ended = r.Time
	}
}

// action returns what was decided about a transaction, and false while it is open or unknown.
func (u *truth) action(least uint64) (txn.Action, bool) {
	l := u.opened[least]
	if l == nil {
		return 0, false
	}
	return l.status.Decided()
}

// lowestLive is the lowest id that has not ended, above all ids if there is none.
func (u *truth) lowestLive() uint64 {
	lowest := uint64(math.MaxInt64)
	for least, l := range u.opened {
		if l.ended == 0 {
			lowest = min(lowest, least)
		}
	}
	return lowest
}

func (u *truth) live() int {
	n := 0
	for _, l := range u.opened {
		if l.ended == 0 {
			n++
		}
	}
	return n
}
