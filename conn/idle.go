package conn

import (
	"context"
	"time"
)

const (
	// idleInterval is how often it is looked whether a connection that is to end is idle.
	idleInterval = 200 * time.Millisecond
	// idleAfter is how long nothing was asked on an idle connection, and no answer is owed.
	idleAfter = time.Second
	// busyLimit is how long a connection that is never idle is waited for. Then it ends behind the next answer after which none is
	// owed: whoever asked one thing after the other has nothing on its way then.
	busyLimit = 5 * time.Second
	// idleLimit is how long it is waited for at most. Then it takes no more commands, and ends when those that it has are answered.
	idleLimit = 10 * time.Second
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
	owed, frames := e.out.owes(), e.keepAlive.frames.Load()
	if owed || frames != e.frames {
		e.quiet, e.frames = now, frames
	}
	waited := now.Sub(e.began)
	if waited >= idleLimit {
		ctx, cancel := context.WithTimeout(e.ctx, lastAnswers)
		defer cancel()
		e.stop(ctx, ClosedHandedOver)
		return
	}
	if now.Sub(e.quiet) >= idleAfter {
		e.finish(ClosedHandedOver)
		return
	}
	if waited >= busyLimit {
		e.out.whenSettled(func() { e.finish(ClosedHandedOver) })
	}
	time.AfterFunc(idleInterval, e.look)
}
