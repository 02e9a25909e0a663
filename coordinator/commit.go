package coordinator

import (
	"context"
	"errors"
	"time"

	"github.com/pulsar-tc/pulsar-tc/coordinator/fsm"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

const (
	// storeTimeout bounds one append or proof. One that takes longer is of unknown fate and ends the term.
	storeTimeout = 10 * time.Second
	// cleanBytes is how much of the log one cleaning step reads.
	cleanBytes = 128 << 10
)

// commit makes ready durable and then performs its effects. On an error nothing of it was performed but the answers, with
// ErrCoordinatorNotFound.
func (s *session) commit(ctx context.Context, ready *fsm.Ready) error {
	if ready.Empty() {
		return nil
	}
	effects, err := ready.Effects(func() error { return s.secure(ctx, ready) })
	s.settled(err)
	if err != nil {
		for _, to := range ready.Waiting() {
			to.(answerFunc)(nil, txn.ErrCoordinatorNotFound)
		}
		return err
	}
	for i := range effects {
		s.perform(&effects[i])
	}
	if ready.Clean {
		s.tasks.Go(func() { s.readPrefix(ctx) })
	}
	return nil
}

// secure appends the batch, or proves the term if there is nothing to append. An append under way is not cut short by
// a shutdown: its answer is worth waiting for.
func (s *session) secure(ctx context.Context, ready *fsm.Ready) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	if !ready.Writes() {
		return s.store.Prove(ctx)
	}
	began := s.c.now()
	at, err := s.store.Append(ctx, ready.Batch)
	if err != nil {
		return err
	}
	s.machine.Appended(at)
	for i := range ready.Batch.Changes {
		r := &ready.Batch.Changes[i].Record
		s.c.tellChange(r)
		if r.Op == txn.OpNew && s.c.opts.Events.Created != nil {
			s.c.opts.Events.Created(s.c.tc)
		}
	}
	if s.c.opts.Events.Appended != nil {
		s.c.opts.Events.Appended(s.c.tc, len(ready.Batch.Changes), at.Bytes, s.c.now().Sub(began))
	}
	return nil
}

// perform does one effect, whose ground is durable now.
func (s *session) perform(e *fsm.Effect) {
	events, tc := &s.c.opts.Events, s.c.tc
	switch e.Kind {
	case fsm.Reply:
		s.reply(e)
	case fsm.Drive:
		s.drives.start(&drive{decision: e.Decision})
	case fsm.Ended:
		if events.Ended != nil {
			events.Ended(tc, e.Action, e.TimedOut, time.Duration(e.Millis)*time.Millisecond)
		}
	case fsm.Expired:
		if events.Expired != nil {
			events.Expired(tc, e.ID)
		}
	case fsm.Contrary:
		if events.Contrary != nil {
			events.Contrary(tc, e.ID, e.Action)
		}
	case fsm.Resolved:
		s.drives.withdraw(e.ID, e.Participant)
		if events.Resolved != nil {
			events.Resolved(tc, e.ID, e.Participant, e.Who)
		}
	}
}

func (s *session) reply(e *fsm.Effect) {
	answer := e.To.(answerFunc)
	if e.Err == nil {
		answer(e, nil)
		return
	}
	if s.c.opts.Events.RequestRejected != nil {
		s.c.opts.Events.RequestRejected(s.c.tc, e.Err)
	}
	if pause := s.c.opts.TooManyPause; pause > 0 && errors.Is(e.Err, txn.ErrTooManyRequests) {
		err := e.Err
		s.tasks.Go(func() {
			wait(s.ctx, pause)
			answer(nil, err)
		})
		return
	}
	answer(nil, e.Err)
}

// readPrefix reads the oldest entries of the log for the machine to clean.
func (s *session) readPrefix(ctx context.Context) {
	entries, err := s.store.ReadPrefix(ctx, cleanBytes)
	if err != nil {
		if ctx.Err() == nil {
			s.c.log.Warn().Err(err).Msg("could not read the oldest log entries for cleaning, trying again")
		}
		wait(ctx, s.c.opts.RetryCeiling)
	}
	if ctx.Err() == nil {
		s.c.mail.tell(&fsm.Cleaned{Prefix: entries})
	}
}

// end gives up the term: nothing that waits in it gets a definite answer. If another process is to lead, it is asked instead.
func (s *session) end(cause error) error {
	if errors.Is(cause, errMoved) {
		s.refusal = errMoved
		s.c.move()
	}
	for _, to := range s.machine.Abandon() {
		to.(answerFunc)(nil, s.refusal)
	}
	refuse(s.batch, s.refusal)
	s.batch = nil
	return cause
}

// close waits for what the term started, and empties the mailbox of what belonged to it. The term's context is done.
func (s *session) close() {
	s.drives.close()
	s.tasks.Wait()
	refuse(s.c.mail.take(nil), s.refusal)
}
