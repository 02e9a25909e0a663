package conn

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

// keepAlive finds peers that are gone.
//
// Source: PulsarHandler.handleKeepAliveTimeout; ServerCnx.checkConnectionLiveness.
type keepAlive struct {
	frames atomic.Uint64 // read so far
	probe  atomic.Pointer[probe]

	mu     sync.Mutex // guards everything below
	timer  *time.Timer
	ended  bool
	pinged bool   // the PING of the last interval waits for a frame
	seen   uint64 // frames at that PING
}

// startKeepAlive begins the interval in which the handshake must be done.
func (s *session) startKeepAlive() {
	interval := s.options.KeepAlive
	if interval < 0 {
		interval = handshakeTimeout
	}
	k := &s.keepAlive
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.ended {
		k.timer = time.AfterFunc(interval, s.keepAliveDue)
	}
}

// keepAliveDue ends an interval: the connection is closed if the handshake is not done or the last PING brought nothing,
// else pinged.
func (s *session) keepAliveDue() {
	k := &s.keepAlive
	k.mu.Lock()
	if k.ended {
		k.mu.Unlock()
		return
	}
	if !s.connected.Load() {
		k.mu.Unlock()
		s.close(ClosedHandshake)
		return
	}
	if s.options.KeepAlive < 0 {
		k.mu.Unlock()
		return
	}
	frames := s.keepAlive.frames.Load()
	if k.pinged && frames == k.seen && !s.paused.Load() {
		k.mu.Unlock()
		s.close(ClosedSilent)
		return
	}
	k.pinged, k.seen = s.protocol >= 1, frames
	k.timer.Reset(s.options.KeepAlive)
	pinged := k.pinged
	k.mu.Unlock()
	if pinged {
		s.out.queue(pulsarproto.AppendPing)
	}
}

func (s *session) stopKeepAlive() {
	k := &s.keepAlive
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ended = true
	if k.timer != nil {
		k.timer.Stop()
	}
}

// probe waits for the next frame.
type probe struct{ answered chan struct{} }

// noteFrame tells that the peer lives. The reader calls it for each frame.
func (k *keepAlive) noteFrame() {
	k.frames.Add(1)
	if p := k.probe.Load(); p != nil && k.probe.CompareAndSwap(p, nil) {
		close(p.answered)
	}
}

// nextFrame returns a channel that is closed when the next frame has come.
func (k *keepAlive) nextFrame() <-chan struct{} {
	fresh := &probe{answered: make(chan struct{})}
	for {
		if k.probe.CompareAndSwap(nil, fresh) {
			return fresh.answered
		}
		if waiting := k.probe.Load(); waiting != nil {
			return waiting.answered
		}
	}
}

// alive probes the peer with a PING: true as soon as any frame comes, false if none does within the liveness timeout or
// the connection has ended. A connection that this end does not read at the moment counts as alive, and so does one that ctx gives
// no time to answer. One that is not alive is
// closed: whoever asks takes away what it has attached, and a peer that comes back must attach again.
func (s *session) alive(ctx context.Context) bool {
	if s.ctx.Err() != nil {
		return false
	}
	if s.options.LivenessTimeout < 0 {
		return true
	}
	answered := s.keepAlive.nextFrame()
	s.out.queue(pulsarproto.AppendPing)
	timeout := time.NewTimer(s.options.LivenessTimeout)
	defer timeout.Stop()
	select {
	case <-answered:
		return true
	case <-timeout.C:
		if s.paused.Load() {
			return true
		}
		s.close(ClosedSilent)
		return false
	case <-s.ctx.Done():
		return false
	case <-ctx.Done(): // whoever asks has given up and knows nothing against it
		return true
	}
}
