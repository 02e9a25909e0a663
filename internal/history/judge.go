package history

import (
	"fmt"
	"time"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

// verdict is how the steps of one transaction contradict what a register can show.
type verdict struct {
	kind   Kind
	reason string
}

// judge decides what porcupine decides, by a direct way: a register is opened, decided and forgotten at three moments, and
// every step bounds one of them. It returns nil if there are such moments. The first step is the opening.
func judge(steps []step) *verdict {
	var shown [2]*step // by action: the first step that shows it to be the decision
	for i := range steps {
		if action, yes := steps[i].shows(); yes && shown[action] == nil {
			shown[action] = &steps[i]
		}
	}
	commit, abort := shown[txn.Commit], shown[txn.Abort]
	switch {
	case commit != nil && abort != nil:
		return contradiction(commit, abort)
	case commit != nil:
		return fits(steps, txn.Commit)
	case abort != nil:
		return fits(steps, txn.Abort)
	}
	if fits(steps, txn.Commit) == nil {
		return nil
	}
	return fits(steps, txn.Abort)
}

// shows returns the decision that s is evidence of.
func (s *step) shows() (txn.Action, bool) {
	switch s.kind {
	case ending:
		if s.answer == Contrary {
			return opposite(s.action), true
		}
		return s.action, s.answer == Done
	case looking:
		action, yes := s.status.Decided()
		return action, yes && s.known
	case telling, reading:
		return s.action, true
	}
	return 0, false
}

func contradiction(commit, abort *step) *verdict {
	reason := fmt.Sprintf("%s shows COMMIT, %s shows ABORT", commit.at(), abort.at())
	switch {
	case commit.kind == reading:
		return &verdict{AbortedRead, reason}
	case commit.kind == telling || abort.kind == telling:
		return &verdict{ContraryDecisions, reason}
	}
	return &verdict{ChangedMind, reason}
}

// bound is a limit of a moment and the step that sets it.
type bound struct {
	at time.Duration
	by *step
}

func (b *bound) raise(at time.Duration, by *step) {
	if at > b.at {
		*b = bound{at, by}
	}
}

func (b *bound) lower(at time.Duration, by *step) {
	if at < b.at {
		*b = bound{at, by}
	}
}

// fits looks for the moments, if action is the decision.
func fits(steps []step, action txn.Action) *verdict {
	opened, v := lastOpening(steps)
	if v != nil {
		return v
	}
	undecided, decidedBy, forgottenBy := bound{at: opened}, bound{at: Never}, bound{at: Never}
	for i := range steps {
		s := &steps[i]
		switch {
		case s.showsOpen():
			undecided.raise(s.Call, s)
		case s.showsNotOpen() && (s.showsOpened() || s.Call > opened):
			decidedBy.lower(s.Return, s)
		}
		if s.showsForgotten() && s.Call > opened {
			forgottenBy.lower(s.Return, s)
		}
	}
	if undecided.at > decidedBy.at {
		return &verdict{Resurrection, fmt.Sprintf("%s shows that it is open, after %s", undecided.by.at(), decidedBy.by.at())}
	}
	decision := firstDecision(steps, action, undecided.at)
	if decision > decidedBy.at {
		kind := Unasked
		if decidedBy.by.kind == reading {
			kind = AbortedRead
		}
		return &verdict{kind, fmt.Sprintf("%s, but nothing can have decided it by then", decidedBy.by.at())}
	}
	return remembered(steps, bound{at: decision}, forgottenBy)
}

// lastOpening is the latest moment at which the transaction can have been opened.
func lastOpening(steps []step) (time.Duration, *verdict) {
	latest := bound{at: steps[0].Return}
	for i := range steps {
		if steps[i].showsOpened() {
			latest.lower(steps[i].Return, &steps[i])
		}
	}
	if latest.at < steps[0].Call {
		return 0, &verdict{Contradiction, latest.by.at() + " came before the transaction was asked for"}
	}
	return latest.at, nil
}

// firstDecision is the earliest moment, not before the one given, at which something can have decided for action.
func firstDecision(steps []step, action txn.Action, notBefore time.Duration) time.Duration {
	first := Never
	for i := range steps {
		if s := &steps[i]; s.decides(action) && s.Return >= notBefore {
			first = min(first, max(s.Call, notBefore))
		}
	}
	return first
}

// remembered checks that the outcome is known until it may be forgotten.
func remembered(steps []step, known, forgottenBy bound) *verdict {
	if forgottenBy.at == Never {
		return nil
	}
	for i := range steps {
		if s := &steps[i]; s.kind == forgetting || s.showsOutcome() {
			known.raise(s.Call, s)
		}
	}
	switch {
	case known.at <= forgottenBy.at:
		return nil
	case known.by.kind == forgetting:
		return &verdict{ForgottenEarly, fmt.Sprintf("%s, but it is kept until %v", forgottenBy.by.at(), known.at)}
	}
	return &verdict{Resurrection, fmt.Sprintf("%s, after %s", known.by.at(), forgottenBy.by.at())}
}

func (s *step) decides(action txn.Action) bool {
	return s.kind == deadline && action == txn.Abort ||
		s.kind == ending && s.action == action && (s.answer == Done || s.answer == Unknown)
}

// showsOpen reports whether s needs an undecided transaction.
func (s *step) showsOpen() bool {
	return s.kind == using && s.answer == Done || s.kind == looking && s.known && s.status == txn.Open
}

// showsOutcome reports whether s needs a decision that is still known.
func (s *step) showsOutcome() bool {
	switch s.kind {
	case ending:
		return s.answer == Done || s.answer == Contrary
	case using:
		return s.answer == Contrary
	case looking:
		return s.known && s.status != txn.Open
	}
	return false
}

// showsForgotten reports whether s needs a transaction that nobody knows, any more or yet.
func (s *step) showsForgotten() bool {
	return (s.kind == ending || s.kind == using) && s.answer == NotFound || s.kind == looking && !s.known
}

// showsOpened reports whether s needs a transaction that has been opened.
func (s *step) showsOpened() bool {
	return s.showsOpen() || s.showsOutcome() || s.kind == telling || s.kind == reading || s.kind == passing
}

// showsNotOpen reports whether s needs a transaction that is not open.
func (s *step) showsNotOpen() bool {
	return s.showsOpened() && !s.showsOpen() || s.showsForgotten() || s.kind == using && s.answer == Refused
}
