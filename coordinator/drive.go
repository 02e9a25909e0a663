package coordinator

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/pulsar-tc/pulsar-tc/coordinator/fsm"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// drives are the participant calls of one term: a bounded number in flight, and of these a part for any one topic, so that one that does
// not answer holds up no other; the others waiting their turn, failed ones repeated with backoff until the participant has applied the
// decision or the term ends (TC-15, TC-23).
type drives struct {
	ctx          context.Context // the term's
	participants Participants
	opts         *Options
	report       func(fsm.Command)                  // back to the coordinator
	failed       func(*drive, error, int)           // after each failed attempt
	after        func(time.Duration, func()) func() // starts a timer, returns its stop

	calls *sync.WaitGroup // those in flight

	mu       sync.Mutex // guards the following
	inFlight int
	waiting  turns
	timers   map[*drive]func()
	open     map[place]bool // whose drives are not over; true: withdrawn
	closed   bool
}

// drivesPerTopic is the part of MaxDrives that one topic may take: a fourth.
const drivesPerTopic = 4

// place is one participant of one transaction.
type place struct {
	id          txn.ID
	participant txn.Participant
}

// drive is one participant of one decided transaction.
type drive struct {
	decision fsm.Decision
	attempts int
}

func (d *drive) place() place { return place{d.decision.ID(), d.decision.Participant()} }

func newDrives(ctx context.Context, calls *sync.WaitGroup, participants Participants, opts *Options, report func(fsm.Command), failed func(*drive, error, int)) *drives {
	return &drives{
		ctx: ctx, calls: calls, participants: participants, opts: opts, report: report, failed: failed,
		after:  func(d time.Duration, f func()) func() { t := time.AfterFunc(d, f); return func() { t.Stop() } },
		timers: map[*drive]func(){}, open: map[place]bool{}, waiting: turns{perTopic: max(1, opts.MaxDrives/drivesPerTopic)},
	}
}

// start queues d.
func (s *drives) start(d *drive) {
	s.mu.Lock()
	if s.closed || s.dropped(d) {
		s.mu.Unlock()
		return
	}
	s.open[d.place()] = false
	if s.inFlight >= s.opts.MaxDrives || !s.waiting.admits(d.topic()) {
		s.waiting.push(d)
		s.mu.Unlock()
		return
	}
	s.waiting.begin(d.topic())
	s.inFlight++
	s.calls.Add(1)
	s.mu.Unlock()
	s.call(d)
}

// withdraw ends the drive of a participant that needs nothing any more, whatever it answers.
func (s *drives) withdraw(id txn.ID, p txn.Participant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, open := s.open[place{id, p}]; open {
		s.open[place{id, p}] = true
	}
}

// dropped reports whether d was withdrawn, once: it is over then. The caller holds mu.
func (s *drives) dropped(d *drive) bool {
	at := d.place()
	withdrawn := s.open[at]
	if withdrawn {
		delete(s.open, at)
	}
	return withdrawn
}

func (s *drives) call(d *drive) {
	told := &d.decision
	s.participants.End(s.ctx, told.ID(), told.Participant(), told.Action(), told.LowWaterMark(), func(err error) { s.done(d, err) })
}

// done takes a participant's answer and gives the place to the next drive, in a goroutine of its own: a participant may answer
// before End returns, and so would all that wait, one inside the other.
func (s *drives) done(d *drive, err error) {
	defer s.calls.Done()
	next, dropped := s.release(d, err == nil)
	if next != nil {
		go s.call(next)
	}
	if dropped || s.ctx.Err() != nil {
		return
	}
	if err == nil {
		s.report(&fsm.Applied{Least: d.decision.ID().Least, Participant: d.decision.Participant()})
		return
	}
	d.attempts++
	s.failed(d, err, d.attempts)
	s.report(&fsm.Failed{Least: d.decision.ID().Least, Participant: d.decision.Participant(), Reason: err.Error()})
	s.retry(d, s.pause(d.attempts, err))
}

// release frees the place of a finished call, takes the next waiting drive into it, and reports whether the finished one was
// withdrawn meanwhile. One whose participant has applied the decision is over.
func (s *drives) release(finished *drive, applied bool) (next *drive, dropped bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	dropped = s.dropped(finished)
	if applied {
		delete(s.open, finished.place())
	}
	for over := finished; !s.closed; over = next {
		s.waiting.over(over.topic())
		next = s.waiting.pop()
		if next == nil {
			break
		}
		if !s.dropped(next) {
			s.calls.Add(1)
			return next, dropped
		}
	}
	s.inFlight--
	return nil, dropped
}

func (s *drives) retry(d *drive, pause time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.timers[d] = s.after(pause, func() {
		s.mu.Lock()
		delete(s.timers, d)
		s.mu.Unlock()
		s.start(d)
	})
}

// pause is exponential with jitter from RetryFirst to RetryCeiling; an answer that repeating can hardly change waits the
// ceiling at once.
func (s *drives) pause(attempts int, err error) time.Duration {
	ceiling := s.opts.RetryCeiling
	pause := ceiling
	if retryable(err) && attempts < 32 {
		pause = min(s.opts.RetryFirst<<(attempts-1), ceiling)
	}
	if s.opts.Jitter != nil {
		return pause/2 + s.opts.Jitter(pause/2)
	}
	return pause/2 + rand.N(pause/2+1)
}

func retryable(err error) bool {
	var status *txn.StatusError
	return !errors.Is(err, txn.ErrNotAllowed) && !errors.Is(err, txn.ErrInvalidTopicName) && !errors.As(err, &status)
}

// close stops everything. Calls in flight end with the term's context.
func (s *drives) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.waiting = turns{}
	for d, stop := range s.timers {
		stop()
		delete(s.timers, d)
	}
}
