package coordinator_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/pulsar-tc/pulsar-tc/coordinator/fsm"
	"github.com/pulsar-tc/pulsar-tc/txn"
	"github.com/pulsar-tc/pulsar-tc/txnlog/memlog"
)

// settler lets the rig's participants settle commits behind one fence, and notes what they hear.
type settler struct {
	rig   *rig
	fence txn.Fence
	asked [][]txn.Participant
	heard []error
	// onEnd runs with each that is heard.
	onEnd func()
}

func settling(r *rig) *settler {
	s := &settler{rig: r, fence: r.store.Put("owner")}
	r.participants.settle = func(id txn.ID, all []txn.Participant) (*txn.Settlement, func(error)) {
		s.asked = append(s.asked, all)
		settlement := &txn.Settlement{Fences: []txn.Fence{s.fence}, Puts: []string{id.String()}}
		return settlement, func(err error) {
			s.heard = append(s.heard, err)
			if s.onEnd != nil {
				s.onEnd()
			}
		}
	}
	return s
}

// TestSettledCommit: the decision, what participants make durable, and the outcome are one write. They hear of it before anybody
// else does, and nothing is driven.
func TestSettledCommit(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		s := settling(r)
		id := r.open(time.Hour, "a", "b")
		r.counted()
		end := &answer{t: t}
		s.onEnd = func() {
			end.mu.Lock()
			defer end.mu.Unlock()
			if end.given != 0 {
				t.Error("END is answered before the participants hear that they have applied it (promise 3)")
			}
			if !r.store.Exists(id.String()) {
				t.Error("participants hear of what is not durable")
			}
		}
		r.group.EndTxn(t.Context(), id, fsm.Caller{}, txn.Commit, false, func(err error) { end.give(id, err) })
		end.want("END", nil)
		if appends, _ := r.counted(); appends != 1 || len(s.heard) != 1 || s.heard[0] != nil || !slices.Equal(s.asked[0], topics("a", "b")) {
			t.Errorf("%d appends, participants asked %v and told %v", appends, s.asked, s.heard)
		}
		if keys := r.store.OpenKeys(id); len(keys) > 0 || len(r.participants.calls) > 0 {
			t.Errorf("open keys %v, calls %v", keys, r.participants.calls)
		}
		r.restart()
		r.askEnd(id, txn.Commit).want("END again", nil)
		r.askEnd(id, txn.Abort).wantStatus("contrary END", txn.Committed)
		if len(s.asked) != 1 || len(r.participants.calls) > 0 {
			t.Errorf("after the end: asked %v, calls %v", s.asked, r.participants.calls)
		}
	})
}

// TestOnlyCommitsAreSettled: participants are not asked about anything else.
func TestOnlyCommitsAreSettled(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		s := settling(r)
		aborted, empty, late := r.open(time.Hour, "a"), r.open(time.Hour), r.open(time.Second, "a")
		r.askEnd(aborted, txn.Abort).want("ABORT", nil)
		r.askEnd(empty, txn.Commit).want("COMMIT without participants", nil)
		time.Sleep(time.Minute)
		r.askEnd(late, txn.Commit).wantStatus("COMMIT behind the deadline", txn.Aborted)
		r.askEnd(txn.ID{Least: 7}, txn.Commit).wantNotFound("COMMIT of nothing")
		if len(s.asked) > 0 {
			t.Errorf("participants are asked about %v", s.asked)
		}
		if calls := r.participants.of("a"); len(calls) != 2 {
			t.Errorf("calls %v, want both aborts to be driven", calls)
		}
	})
}

// TestCommitThatCannotBeSettled is driven.
func TestCommitThatCannotBeSettled(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		asked := 0
		r.participants.settle = func(txn.ID, []txn.Participant) (*txn.Settlement, func(error)) {
			asked++
			return nil, nil
		}
		id := r.open(time.Hour, "a")
		r.askEnd(id, txn.Commit).want("END", nil)
		if calls := r.participants.of("a"); asked != 1 || len(calls) != 1 {
			t.Errorf("asked %d times, calls %v", asked, calls)
		}
	})
}

// TestFateOfASettlement: participants hear, once, whether nothing was written or nothing is known. The term is over either way,
// and what the log says then holds.
func TestFateOfASettlement(t *testing.T) {
	for _, c := range []struct {
		name    string
		fail    func(r *rig)
		want    error
		applied bool
	}{
		{"the leader is another", func(r *rig) { r.election.Expire(0) }, txn.ErrFenced, false},
		{"the fence has moved", func(r *rig) { r.store.Put("owner") }, txn.ErrFenced, false},
		{"the answer is lost", func(r *rig) { r.loseNext(memlog.LoseAnswer) }, txn.ErrUnknownResult, true},
		{"the write is lost", func(r *rig) { r.loseNext(memlog.LoseWrite) }, txn.ErrUnknownResult, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(r *rig) { r.deaf = true }, func(t *testing.T, r *rig) {
				s := settling(r)
				id := r.open(time.Hour, "a")
				c.fail(r)
				r.askEnd(id, txn.Commit).want("END", txn.ErrCoordinatorNotFound)
				if len(s.heard) != 1 || !errors.Is(s.heard[0], c.want) {
					t.Errorf("participants hear %v, want %v once", s.heard, c.want)
				}
				if len(r.participants.calls) > 0 {
					t.Errorf("calls %v in a term that is over", r.participants.calls)
				}
				time.Sleep(time.Second)
				s.fence = r.store.Put("owner")
				if c.applied {
					r.askEnd(id, txn.Abort).wantStatus("ABORT", txn.Committed)
				} else {
					r.askEnd(id, txn.Abort).want("ABORT", nil)
				}
			})
		})
	}
}

// TestSettlementsOfOneBatch: each has its own participants, and a repeat in the batch joins.
func TestSettlementsOfOneBatch(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		s := settling(r)
		first, second := r.open(time.Hour, "a"), r.open(time.Hour, "b")
		release := r.holdWrites()
		r.askNew(time.Hour).waits()
		r.counted()
		ends := []*answer{r.askEnd(first, txn.Commit), r.askEnd(second, txn.Commit), r.askEnd(first, txn.Commit)}
		contrary := r.askEnd(second, txn.Abort)
		release()
		for _, end := range ends {
			end.want("END", nil)
		}
		contrary.wantStatus("contrary END", txn.Committed)
		if appends, _ := r.counted(); appends != 1 || len(s.asked) != 2 || !slices.Equal(s.heard, []error{nil, nil}) {
			t.Errorf("%d appends, asked %v, heard %v", appends, s.asked, s.heard)
		}
	})
}
