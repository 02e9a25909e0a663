package faultnet

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// passage is one connection through a link.
type passage struct {
	link   *Link
	client *net.TCPConn
	done   chan struct{} // closed when the passage was ended

	mu        sync.Mutex // guards the following
	target    *net.TCPConn
	ended     bool
	abandoned bool // the target's side was ended alone
}

// run passes bytes on until both sides have ended.
func (p *passage) run() {
	defer p.link.forget(p)
	defer p.end()
	if !p.await(func(c Condition) bool { return c.HoldRequests }, time.Time{}) || !p.connect() {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { p.pump(p.target, p.client, func(c Condition) bool { return c.HoldRequests }) })
	both.Go(func() { p.pump(p.client, p.target, func(c Condition) bool { return c.HoldAnswers }) })
	both.Wait()
	p.mu.Lock()
	abandoned := p.abandoned
	p.mu.Unlock()
	if abandoned {
		<-p.done
	}
}

func (p *passage) connect() bool {
	target, err := net.Dial("tcp", p.link.target)
	if err != nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target.(*net.TCPConn)
	if p.ended || p.abandoned {
		reset(p.target)
		return false
	}
	return true
}

// end resets both sides.
func (p *passage) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return
	}
	p.ended = true
	close(p.done)
	reset(p.client)
	if p.target != nil {
		reset(p.target)
	}
}

// abandon resets the target's side and leaves the client's open.
func (p *passage) abandon() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.abandoned = true
	if p.target != nil {
		reset(p.target)
	}
}

// chunk is how many bytes are on their way in one piece.
const chunk = 32 << 10

// pump passes on what comes from one side until it ends, and then that it has ended.
func (p *passage) pump(to, from *net.TCPConn, held func(Condition) bool) {
	buffer := make([]byte, chunk)
	for {
		n, err := from.Read(buffer)
		if !p.await(held, time.Now()) {
			return
		}
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				p.broken()
				return
			}
			p.slow(n)
		}
		switch {
		case errors.Is(err, io.EOF):
			if to.CloseWrite() != nil {
				p.broken()
			}
			return
		case err != nil:
			p.broken()
			return
		}
	}
}

// broken passes a reset on to the other side, unless that is what was asked for.
func (p *passage) broken() {
	p.mu.Lock()
	abandoned := p.abandoned
	p.mu.Unlock()
	if !abandoned {
		p.end()
	}
}

// await returns when what came at some time may pass, and false when the passage has ended.
func (p *passage) await(held func(Condition) bool, came time.Time) bool {
	for {
		condition, changed := p.link.current()
		if held(condition) {
			select {
			case <-changed:
				continue
			case <-p.done:
				return false
			}
		}
		if passed := p.pause(time.Until(came.Add(condition.Delay)), changed); passed {
			break
		}
		if p.isDone() {
			return false
		}
	}
	return !p.isDone()
}

// slow waits as long as n bytes take.
func (p *passage) slow(n int) {
	condition, changed := p.link.current()
	if condition.Rate > 0 {
		p.pause(time.Duration(n)*time.Second/time.Duration(condition.Rate), changed)
	}
}

// pause waits, and tells whether the time has passed: it ends early when the condition changes or the passage ends.
func (p *passage) pause(d time.Duration, changed <-chan struct{}) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-changed:
	case <-p.done:
	}
	return false
}

func (p *passage) isDone() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}
