package coordinator

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pulsar-tc/pulsar-tc/coordinator/fsm"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// answering is a participant that answers at once, always the same.
type answering struct{ err error }

func (a answering) End(_ context.Context, _ txn.ID, _ txn.Participant, _ txn.Action, _ uint64, done func(error)) {
	done(a.err)
}

func (answering) Settle(txn.ID, []txn.Participant) (*txn.Settlement, func(error)) { return nil, nil }

// Of a drive that is withdrawn nothing is left, be it before its participant has answered, between two attempts, or when its
// success is on its way to the machine already.
func TestNothingIsLeftOfAWithdrawnDrive(t *testing.T) {
	decision := decisions(t, 1)[0]
	for name, answer := range map[string]error{"applied": nil, "fails": errors.New("unreachable")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opts := Options{MaxDrives: 1, RetryFirst: time.Second, RetryCeiling: time.Minute}
				attempts := 0
				var calls sync.WaitGroup
				s := newDrives(t.Context(), &calls, answering{answer}, &opts, func(fsm.Command) {}, func(*drive, error, int) { attempts++ })
				s.start(&drive{decision: decision})
				s.withdraw(decision.ID(), decision.Participant())
				time.Sleep(time.Hour)
				synctest.Wait()
				calls.Wait()
				if attempts > 1 || s.inFlight != 0 || len(s.timers) != 0 || len(s.open) != 0 {
					t.Errorf("%d attempts; left: %d in flight, %d timers, %v", attempts, s.inFlight, len(s.timers), s.open)
				}
			})
		})
	}
}
