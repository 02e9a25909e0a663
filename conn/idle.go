package conn

import (
	"context"
	"time"
)

const (
	// idleInterval is how often it is looked whether a connection that is to end is idle, and idleAfter how long nothing was asked
	// on an idle one, and no answer is owed.
	idleInterval = 200 * time.Millisecond
	idleAfter    = time.Second
	// busyLimit is how long a connection is waited for until less is enough, as it has clients that always ask on: a pause in which
	// each of them has its answer and does something else. A client that has NEW_TXN answered sends the next command at once.
	busyLimit    = 8 * time.Second
	busyInterval = 2 * time.Millisecond
	busyAfter    = 5 * time.Millisecond
	// idleLimit is how long it is waited for at most. Then it takes no more commands, and ends when those that it has are answered.
	idleLimit = 12 * time.Second
	// lastAnswers is how long that may take.
	lastAnswers = time.Second
)

// IdleLimit is how long a connection may stay whose coordinator was handed over.
const IdleLimit = idleLimit + lastAnswers

// idleEnd ends a connection when it is idle, so that its client notices nothing but that it has to look up again.
type idleEnd struct {
	*session
	began  time.Time
	quiet  time.Time // since when nothing is asked and no answer is owed
	frames uint64    // read until then
}

// endWhenIdle begins to wait for that, if nobody does.
func (s *session) endWhenIdle() {
	s.mu.Lock()
	already := s.idling
	s.idling = true
	s.mu.Unlock()
	if already {
		return
	}
	now := time.Now()
	e := &idleEnd{session: s, began: now, quiet: now, frames: s.keepAlive.frames.Load()}
	time.AfterFunc(idleInterval, e.look)
}

func (e *idleEnd) look() {
	if e.ctx.Err() != nil {
		return
	}
	now := time.Now()
	if frames := e.keepAlive.frames.Load(); frames != e.frames || e.out.owes() {
		e.quiet, e.frames = now, frames
	}
	waited := now.Sub(e.began)
	interval, after := idleInterval, idleAfter
	if waited >= busyLimit {
		interval, after = busyInterval, busyAfter
	}
	switch {
	case now.Sub(e.quiet) >= after:
		e.finish(ClosedHandedOver)
	case waited >= idleLimit:
		ctx, cancel := context.WithTimeout(e.ctx, lastAnswers)
		defer cancel()
		e.stop(ctx, ClosedHandedOver)
	default:
		time.AfterFunc(interval, e.look)
	}
}
