package history

import (
	"fmt"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

// register is the state of one transaction. Every change leads to a later one.
type register uint8

const (
	absent register = iota
	open
	committed
	aborted
	committedForgotten
	abortedForgotten
)

func decided(action txn.Action) register {
	if action == txn.Commit {
		return committed
	}
	return aborted
}

// forget is the state after the outcome was forgotten.
func (r register) forget() register {
	if r == committed {
		return committedForgotten
	}
	return abortedForgotten
}

func (r register) forgotten() bool { return r == committedForgotten || r == abortedForgotten }

// went reports whether r was decided by action, known or forgotten.
func (r register) went(action txn.Action) bool {
	return r == decided(action) || r == decided(action).forget()
}

// stepKind is what a step does to, or shows of, a register.
type stepKind uint8

const (
	opening    stepKind = iota
	ending              // END with action and answer
	using               // needs an open transaction; answer
	looking             // shows status, or that nobody knows
	telling             // a participant is told of the decision for action, which may be forgotten by now
	reading             // somebody got a message, which shows that the decision is action
	passing             // somebody is told that the transaction has ended
	deadline            // the coordinator aborts what is still open
	forgetting          // retention has passed
)

// step is one operation on a register.
type step struct {
	Span
	kind   stepKind
	action txn.Action
	answer Answer
	status txn.Status
	known  bool // of looking: the transaction is known
	// for people
	name, key string
	number    int64
}

// what is s in words.
func (s *step) what() string {
	switch s.kind {
	case opening:
		return fmt.Sprintf("NEW, time to live %v", time.Duration(s.number))
	case ending:
		return fmt.Sprintf("END(%s): %s", s.action, s.answer)
	case using:
		return fmt.Sprintf("%s: %s", strings.TrimSpace(s.name+" "+s.key), s.answer)
	case looking:
		if s.known {
			return "seen as " + s.status.String()
		}
		return "seen as not known"
	case telling:
		if s.answer == Done {
			return fmt.Sprintf("%s is told %s, low water mark %d, and applies it", s.name, s.action, s.number)
		}
		return fmt.Sprintf("%s is told %s, low water mark %d", s.name, s.action, s.number)
	case reading:
		return fmt.Sprintf("message %s of %s delivered", s.key, s.name)
	case passing:
		return fmt.Sprintf("low water mark %d told", s.number)
	case deadline:
		return "deadline"
	}
	return "retention"
}

// at is what s is and when it happened, for people.
func (s *step) at() string {
	until := "no end"
	if s.Return != Never {
		until = s.Return.String()
	}
	if s.Client == "" {
		return fmt.Sprintf("%s [%v, %s]", s.what(), s.Call, until)
	}
	return fmt.Sprintf("%s by %s [%v, %s]", s.what(), s.Client, s.Call, until)
}

// apply says whether s can happen in state, and what follows.
func (s *step) apply(state register) (bool, register) {
	switch s.kind {
	case opening:
		return state == absent, open
	case ending:
		return s.end(state)
	case using:
		return s.use(state), state
	case looking:
		return s.look(state), state
	case telling, reading:
		return state.went(s.action), state
	case passing:
		return state > open, state
	case deadline:
		if state == open {
			return true, aborted
		}
	case forgetting:
		if state == committed || state == aborted {
			return true, state.forget()
		}
	}
	return true, state
}

func (s *step) end(state register) (bool, register) {
	after := state
	if state == open {
		after = decided(s.action)
	}
	switch s.answer {
	case Done:
		return after == decided(s.action), after
	case Contrary:
		return state == decided(opposite(s.action)), state
	case NotFound:
		return state == absent || state.forgotten(), state
	case Refused:
		return true, state
	}
	return true, after
}

func (s *step) use(state register) bool {
	switch s.answer {
	case Done:
		return state == open
	case Contrary:
		return state == committed || state == aborted
	case NotFound:
		return state == absent || state.forgotten()
	case Refused:
		return state != open
	}
	return true
}

func (s *step) look(state register) bool {
	if !s.known {
		return state == absent || state.forgotten()
	}
	if action, yes := s.status.Decided(); yes {
		return state == decided(action) // who decides has decided, though participants may not know yet
	}
	return state == open
}

// model is a register for porcupine.
var model = porcupine.Model{
	Init: func() any { return absent },
	Step: func(state, input, _ any) (bool, any) {
		ok, next := input.(*step).apply(state.(register))
		return ok, next
	},
	DescribeOperation: func(input, _ any) string { return input.(*step).what() },
	DescribeState:     func(state any) string { return fmt.Sprint(state) },
}

// linearizable asks porcupine whether one register can have shown steps.
func linearizable(steps []step) porcupine.CheckResult {
	operations := make([]porcupine.Operation, len(steps))
	for i := range steps {
		s := &steps[i]
		operations[i] = porcupine.Operation{Input: s, Call: int64(s.Call), Return: int64(s.Return)}
	}
	return porcupine.CheckOperationsTimeout(model, operations, searchTime)
}
