package coordinator_test

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

var errUnreachable = errors.New("unreachable")

// TestRetry holds TC-15: a participant is asked again until it has applied the decision, with pauses that double with jitter up to
// the ceiling; END is answered then, and an operator sees why it takes so long.
func TestRetry(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		const failures = 12
		r.participants.answer("a", fails(failures, errUnreachable))
		id := r.open(time.Hour, "a", "b")
		ended := r.askEnd(id, txn.Abort)
		if !ended.waits() {
			t.Fatal("END is answered before its participant has applied it")
		}
		time.Sleep(5 * time.Second)
		found, err := r.group.Describe(t.Context(), id)
		if err != nil || len(found.Participants) != 2 {
			t.Fatalf("describe: %+v, %v", found, err)
		}
		if p := found.Participants[0]; p.Done || p.Attempts < 3 || p.Failure != errUnreachable.Error() {
			t.Errorf("the participant that fails is described as %+v", p)
		}
		if p := found.Participants[1]; !p.Done || p.Attempts != 0 {
			t.Errorf("the participant that is done is described as %+v", p)
		}
		time.Sleep(3 * time.Minute)
		ended.want("END", nil)
		calls := r.participants.of("a")
		if len(calls) != failures+1 {
			t.Fatalf("%d calls, want %d", len(calls), failures+1)
		}
		for i := 1; i < len(calls); i++ {
			full := min(r.opts.RetryFirst<<(i-1), r.opts.RetryCeiling)
			if pause := calls[i].at.Sub(calls[i-1].at); pause < full/2 || pause > full {
				t.Errorf("pause %d is %s, want %s to %s", i, pause, full/2, full)
			}
		}
		if calls := r.participants.of("b"); len(calls) != 1 {
			t.Errorf("the participant that had applied the decision was called %d times", len(calls))
		}
	})
}

// TestHopelessAnswersWaitTheCeiling: what repeating can hardly change is repeated, at the ceiling (TC-15, O-4).
func TestHopelessAnswersWaitTheCeiling(t *testing.T) {
	for name, err := range map[string]error{
		"22": fmt.Errorf("broker: %w", txn.ErrNotAllowed),
		"17": txn.ErrInvalidTopicName,
		"21": &txn.StatusError{Want: txn.Open, Got: txn.Aborted},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, r *rig) {
				r.participants.answer("a", fails(2, err))
				ended := r.askEnd(r.open(time.Hour, "a"), txn.Commit)
				time.Sleep(time.Minute)
				ended.want("END", nil)
				for i, calls := 1, r.participants.of("a"); i < len(calls); i++ {
					if pause := calls[i].at.Sub(calls[i-1].at); pause < r.opts.RetryCeiling/2 || pause > r.opts.RetryCeiling {
						t.Errorf("pause %d is %s, want %s to %s", i, pause, r.opts.RetryCeiling/2, r.opts.RetryCeiling)
					}
				}
			})
		})
	}
}

// TestBoundedInFlight holds TC-23: participant calls are bounded, and commands are served meanwhile.
func TestBoundedInFlight(t *testing.T) {
	inBubble(t, func(r *rig) { r.opts.MaxDrives = 3 }, func(t *testing.T, r *rig) {
		gate := make(chan struct{})
		names := make([]string, 20)
		for i := range names {
			names[i] = fmt.Sprint("topic-", i)
			r.participants.answer(names[i], func(call) error { <-gate; return nil })
		}
		ended := r.askEnd(r.open(time.Hour, names...), txn.Commit)
		if !ended.waits() || r.participants.inFlight != 3 {
			t.Errorf("%d calls in flight, want 3", r.participants.inFlight)
		}
		r.open(time.Hour, "other")
		close(gate)
		ended.want("END", nil)
		if r.participants.most != 3 || len(r.participants.calls) != len(names) {
			t.Errorf("%d calls, %d at once, want %d and 3", len(r.participants.calls), r.participants.most, len(names))
		}
	})
}

// TestStuckTopicHoldsUpNoOther holds TC-23 and promise 6: a topic that does not answer takes a part of the calls in flight, whoever asks
// for how many ends on it, and when it answers all of them are told.
func TestStuckTopicHoldsUpNoOther(t *testing.T) {
	inBubble(t, func(r *rig) { r.opts.MaxDrives = 8 }, func(t *testing.T, r *rig) {
		gate := make(chan struct{})
		r.participants.answer("stuck", func(call) error { <-gate; return nil })
		var stuck []*answer
		for range 20 {
			stuck = append(stuck, r.askEnd(r.open(time.Hour, "stuck"), txn.Commit))
		}
		if !stuck[0].waits() || r.participants.inFlight != 2 {
			t.Errorf("%d calls in flight on one topic, want a fourth of 8", r.participants.inFlight)
		}
		r.askEnd(r.open(time.Hour, "a", "b"), txn.Commit).want("END on other topics", nil)
		close(gate)
		for _, ended := range stuck {
			ended.want("END on the topic that was stuck", nil)
		}
		if calls := r.participants.of("stuck"); len(calls) != len(stuck) {
			t.Errorf("%d calls, want %d", len(calls), len(stuck))
		}
	})
}

// TestWaitingDrivesWhoseParticipantsAnswerAtOnce: a long queue of calls that are answered before End returns neither grows a stack nor
// holds anything up.
func TestWaitingDrivesWhoseParticipantsAnswerAtOnce(t *testing.T) {
	inBubble(t, func(r *rig) { r.opts.MaxDrives = 1 }, func(t *testing.T, r *rig) {
		const many = 3000
		gate := make(chan struct{})
		r.participants.answer("first", func(call) error { <-gate; return nil })
		names := make([]string, many)
		for i := range names {
			names[i] = fmt.Sprint("topic-", i)
		}
		defer debug.SetMaxStack(debug.SetMaxStack(256 << 10))
		first := r.askEnd(r.open(time.Hour, "first"), txn.Commit)
		first.waits()
		r.participants.mu.Lock()
		r.participants.inline = true
		r.participants.mu.Unlock()
		rest := r.askEnd(r.open(time.Hour, names...), txn.Commit)
		rest.waits()
		close(gate)
		first.want("END of the first", nil)
		rest.want("END of the rest", nil)
		if got := len(r.participants.calls); got != many+1 {
			t.Errorf("%d calls, want %d", got, many+1)
		}
	})
}

// TestOverlappingEnds holds TC-14 and FC-02 in the driver: both get success when it is done, and no participant is called twice.
func TestOverlappingEnds(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		gate := make(chan struct{})
		r.participants.answer("a", func(call) error { <-gate; return nil })
		id := r.open(time.Hour, "a")
		first := r.askEnd(id, txn.Commit)
		first.waits()
		second, contrary := r.askEnd(id, txn.Commit), r.askEnd(id, txn.Abort)
		contrary.wantStatus("contrary END", txn.Committing)
		if !second.waits() {
			t.Error("the second END is answered before the first is done")
		}
		close(gate)
		first.want("first END", nil)
		second.want("second END", nil)
		if calls := r.participants.of("a"); len(calls) != 1 {
			t.Errorf("the participant is called %d times", len(calls))
		}
	})
}

// TestEndWait holds TC-16: with a bound on the wait END is answered early with 6, the drive goes on, and a repeat joins it.
func TestEndWait(t *testing.T) {
	inBubble(t, func(r *rig) { r.opts.EndWait = 5 * time.Second }, func(t *testing.T, r *rig) {
		gate := make(chan struct{})
		r.participants.answer("a", func(call) error { <-gate; return nil })
		id := r.open(time.Hour, "a")
		began := time.Now()
		first := r.askEnd(id, txn.Commit)
		time.Sleep(5 * time.Second)
		first.want("END after the bound", txn.ErrNotReady)
		if waited := first.at.Sub(began); waited != 5*time.Second {
			t.Errorf("END waited %s, want 5s", waited)
		}
		second := r.askEnd(id, txn.Commit)
		if !second.waits() {
			t.Fatal("the repeat does not join")
		}
		close(gate)
		second.want("repeat", nil)
		time.Sleep(time.Minute)
		r.askEnd(id, txn.Commit).want("END of an outcome", nil)
	})
}

// An END that is answered early may not have been looked at yet: the answer says nothing of a decision.
func TestEndWaitWhileLoading(t *testing.T) {
	inBubble(t, func(r *rig) { r.opts.EndWait = 5 * time.Second }, func(t *testing.T, r *rig) {
		id := r.open(time.Hour, "a")
		loaded := loading(r)
		r.restart()
		early := r.askEnd(id, txn.Commit)
		time.Sleep(6 * time.Second)
		early.want("END after the bound", txn.ErrNotReady)
		if strings.Contains(early.err.Error(), "decision is made") {
			t.Errorf("nothing is decided, the answer is: %v", early.err)
		}
		close(loaded)
		r.askEnd(id, txn.Commit).want("repeat", nil)
	})
}

// TestResolveEndsTheDrive holds O-4: a participant that an operator declares done is not called any more, the transaction ends.
func TestResolveEndsTheDrive(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		r.participants.answer("a", fails(1_000_000, errUnreachable))
		id := r.open(time.Hour, "a")
		ended := r.askEnd(id, txn.Commit)
		time.Sleep(time.Minute)
		synctest.Wait()
		if err := r.group.Resolve(t.Context(), id, topics("a")[0], "root"); err != nil {
			t.Fatalf("resolve: %v", err)
		}
		ended.want("END", nil)
		calls := len(r.participants.of("a"))
		time.Sleep(time.Hour)
		if more := len(r.participants.of("a")) - calls; more != 0 {
			t.Errorf("the participant is called %d times after it was declared done", more)
		}
		var notAllowed *txn.StatusError
		if err := r.group.Resolve(t.Context(), id, topics("a")[0], "root"); !errors.As(err, &notAllowed) {
			t.Errorf("resolve of an ended transaction: %v, want 21", err)
		}
	})
}

// TestDeadline: an open transaction is aborted when its time has come, not before, without a client.
func TestDeadline(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		began := time.Now()
		id := r.open(1500*time.Millisecond, "a")
		later := r.open(3*time.Second, "a")
		time.Sleep(1499 * time.Millisecond)
		synctest.Wait()
		if calls := r.participants.of("a"); len(calls) != 0 {
			t.Fatalf("aborted before the deadline: %v", calls)
		}
		time.Sleep(time.Hour)
		calls := r.participants.of("a")
		if len(calls) != 2 || calls[0].id != id || calls[1].id != later || calls[0].action != txn.Abort {
			t.Fatalf("calls: %v", calls)
		}
		for i, want := range []time.Duration{1500 * time.Millisecond, 3 * time.Second} {
			if after := calls[i].at.Sub(began); after < want || after > want+2*time.Millisecond {
				t.Errorf("call %d came after %s, want %s", i, after, want)
			}
		}
		r.askEnd(id, txn.Commit).wantStatus("END COMMIT", txn.Aborted)
		r.askEnd(id, txn.Abort).want("END ABORT", nil)
	})
}

// TestDeadlineFollowsTheClock: a clock that was slow is set right, and the deadline that passed meanwhile does not wait for a timer
// that was started before.
func TestDeadlineFollowsTheClock(t *testing.T) {
	var slow atomic.Bool
	slow.Store(true)
	configure := func(r *rig) {
		r.opts.Now = func() time.Time {
			if slow.Load() {
				return time.Now().Add(-time.Hour)
			}
			return time.Now()
		}
	}
	inBubble(t, configure, func(t *testing.T, r *rig) {
		r.open(30*time.Minute, "a")
		time.Sleep(time.Minute)
		slow.Store(false)
		time.Sleep(1100 * time.Millisecond)
		synctest.Wait()
		if calls := r.participants.of("a"); len(calls) != 1 || calls[0].action != txn.Abort {
			t.Errorf("calls: %v", calls)
		}
	})
}
