package coordinator

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/pulsar-tc/pulsar-tc/coordinator/fsm"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// session is one term being served. Its goroutine is the only one that touches the machine.
type session struct {
	c       *Coordinator
	ctx     context.Context // the term's
	term    Term
	machine *fsm.Machine
	store   Log
	drives  *drives
	// settling is to be called with the fate of the batch.
	settling []func(error)
	spare    []letter // memory for the mailbox
	batch    []letter // taken, not yet stepped
	expire   time.Time
	timer    *time.Timer
	refusal  error          // of what waits when the term ends
	tasks    sync.WaitGroup // reads of a log prefix, and answers that are held back
}

// load reads the log into a machine and starts what its state asks for.
func (c *Coordinator) load(ctx context.Context, term Term) (*session, error) {
	began := c.now()
	s := &session{c: c, ctx: ctx, term: term, store: c.openLog(c.tc, term), machine: fsm.New(c.opts.Machine), refusal: txn.ErrCoordinatorNotFound}
	next, err := s.store.Load(ctx, s.replay)
	if err != nil {
		return nil, err
	}
	s.machine.Step(c.millis(), &fsm.Space{Level: c.currentSpace()})
	ready, behind, err := s.machine.Recover(c.millis(), next)
	if err != nil {
		return nil, err
	}
	if behind > clockTolerance.Milliseconds() && c.opts.Events.ClockBehind != nil {
		c.opts.Events.ClockBehind(c.tc, time.Duration(behind)*time.Millisecond)
	}
	s.drives = newDrives(ctx, &c.tasks, c.participants, &c.opts, s.report, s.driveFailed)
	if err := s.commit(ctx, ready); err != nil {
		s.close()
		return nil, err
	}
	s.expire = c.now().Add(c.opts.ExpireInterval)
	took := c.now().Sub(began)
	c.beginTerm(Status{
		TC: c.tc, Serving: true, Term: term.Number(), Live: s.machine.Live(), Outcomes: s.machine.Outcomes().Len(),
		Recovered: c.now(), LoadTook: took,
	})
	c.publish(s.machine)
	return s, nil
}

// replay takes one entry of the log.
func (s *session) replay(entry txn.LogEntry) error {
	if err := s.machine.Replay(entry); err != nil {
		return err
	}
	for i := range entry.Records {
		s.c.tellChange(&entry.Records[i])
	}
	return nil
}

// keptLetters is how many letters the mailbox keeps memory for: a burst has more.
const keptLetters = 4096

// clockTolerance is how far the clock may be behind the ids already used before an operator hears of it.
const clockTolerance = time.Minute

func (c *Coordinator) millis() int64 { return c.now().UnixMilli() }

// report brings a participant's answer back to the machine. After the term the machine of the next one ignores it: an
// answer says that the decision is applied, which stays true.
func (s *session) report(cmd fsm.Command) { s.c.mail.tell(cmd) }

func (s *session) driveFailed(d *drive, err error, attempts int) {
	id, participant := d.decision.ID(), d.decision.Participant()
	if s.c.opts.Events.DriveFailed != nil {
		s.c.opts.Events.DriveFailed(s.c.tc, id, participant, err)
	}
	if attempts == 1 || attempts == 10 {
		s.c.log.Warn().Err(err).Stringer("txn", id).Stringer("participant", participant).Int("attempts", attempts).
			Msg("participant has not applied the decision, trying again")
	}
}

// serve steps commands until the term ends.
func (s *session) serve(ctx context.Context) error {
	s.timer = time.NewTimer(math.MaxInt64)
	defer s.timer.Stop()
	for {
		if err := s.await(ctx); err != nil {
			return s.end(err)
		}
		s.step()
		if err := s.commit(ctx, s.machine.Take()); err != nil {
			return s.end(err)
		}
		s.c.publish(s.machine)
	}
}

// await blocks until there is something to step.
func (s *session) await(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case <-s.term.Elsewhere():
		return errMoved
	default:
	}
	if len(s.batch) > 0 {
		return nil
	}
	if deadline := s.next(); deadline > 0 {
		s.timer.Reset(deadline)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.term.Lost():
			return fmt.Errorf("%w: the lease or the leader key is not this term's any more", txn.ErrFenced)
		case <-s.term.Elsewhere():
			return errMoved
		case <-s.c.mail.wake:
		case <-s.timer.C:
		}
	}
	s.batch = s.c.mail.take(s.spare)
	s.spare = nil
	return nil
}

// longestNap is how long a session that waits for a deadline goes without a look at the clock: a timer does not follow a clock
// that is set.
const longestNap = time.Second

// next is the time until a deadline or an expiry pass is due, or the clock is to be looked at; 0 or less: now.
func (s *session) next() time.Duration {
	now := s.c.now()
	next := s.expire.Sub(now)
	if deadline := s.machine.NextDeadline(); deadline < math.MaxInt64 {
		millis := min(deadline-now.UnixMilli(), longestNap.Milliseconds())
		next = min(next, time.Duration(millis)*time.Millisecond)
	}
	return next
}

// step folds as many waiting commands as one batch takes, and what time asks for.
func (s *session) step() {
	now := s.c.now()
	millis := now.UnixMilli()
	n := 0
	for n < len(s.batch) && n < s.c.opts.MaxBatch && s.machine.Pending() < s.c.opts.MaxBatch {
		s.machine.Step(millis, s.address(&s.batch[n]))
		n++
	}
	clear(s.batch[:n])
	s.batch = s.batch[n:]
	if len(s.batch) == 0 {
		if cap(s.batch) <= keptLetters {
			s.spare = s.batch
		}
		s.batch = nil
	}
	expire := !now.Before(s.expire)
	if expire {
		s.expire = now.Add(s.c.opts.ExpireInterval)
	}
	if expire || s.machine.NextDeadline() <= millis {
		s.machine.Step(millis, &fsm.Tick{Expire: expire})
	}
}

// address puts a letter's answer into its command, for the machine to carry, and the newest level into what is told about space:
// the letter may have waited since another term.
func (s *session) address(l *letter) fsm.Command {
	if space, ok := l.cmd.(*fsm.Space); ok {
		space.Level = s.c.currentSpace()
	}
	if l.answer == nil {
		return l.cmd
	}
	switch cmd := l.cmd.(type) {
	case *fsm.NewTxn:
		cmd.To = l.answer
	case *fsm.AddParticipants:
		cmd.To = l.answer
	case *fsm.EndTxn:
		cmd.To = l.answer
		s.settle(cmd)
	case *fsm.Describe:
		cmd.To = l.answer
	case *fsm.List:
		cmd.To = l.answer
	case *fsm.Resolve:
		cmd.To = l.answer
	case *fsm.ListNames:
		cmd.To = l.answer
	case *fsm.ShowName:
		cmd.To = l.answer
	}
	return l.cmd
}

// settle lets the participants of the transaction that cmd commits take part in the write of the decision, if they can.
func (s *session) settle(cmd *fsm.EndTxn) {
	participants := s.machine.Settles(cmd)
	if len(participants) == 0 {
		return
	}
	settlement, settled := s.c.participants.Settle(txn.ID{Most: s.c.tc, Least: cmd.Least}, participants)
	if settlement != nil {
		cmd.Settlement = settlement
		s.settling = append(s.settling, settled)
	}
}

// settled tells participants what became of their settlements.
func (s *session) settled(err error) {
	for i, settled := range s.settling {
		settled(err)
		s.settling[i] = nil
	}
	s.settling = s.settling[:0]
}
