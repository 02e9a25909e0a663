package conn

import "context"

// admit returns when the reader may read the frame of size bytes that comes next, and false when it must not read any more.
// paused is called before it has to wait. A connection that holds nothing may always read one frame. What comes from a stranger is
// not counted for publishing: who has not logged in holds no producer up.
func (o *outbox) admit(size int, stranger bool, paused func()) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.size > 2*o.options.HighWater {
		paused()
		for o.size > o.options.HighWater && o.reading() {
			o.wait()
		}
	}
	for o.reading() && !o.hasRoom(size) {
		paused()
		o.wait()
	}
	if !o.reading() {
		return false
	}
	if size > commandBuffer && !stranger { // smaller ones lie in the read buffer
		o.frameBytes = size
		o.publishing.take(size)
	}
	return true
}

// hasRoom reports whether a frame of size bytes, of whatever command, keeps within the bounds in bytes.
func (o *outbox) hasRoom(size int) bool {
	if o.requestBytes > 0 && o.requestBytes+size > o.options.MaxPendingRequestBytes {
		return false
	}
	return o.sendBytes == 0 || o.sendBytes+size <= o.options.MaxPendingSendBytes && o.publishing.hasRoom(o, size)
}

// frameDone ends what admit began.
func (o *outbox) frameDone() {
	if o.frameBytes > 0 {
		o.publishing.release(o.frameBytes)
		o.frameBytes = 0
	}
}

// waitForRoom returns when no more than HighWater bytes wait to be written.
func (o *outbox) waitForRoom() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.size > o.options.HighWater && o.state == outboxOpen {
		o.wait()
	}
}

// accept lets one request in as soon as there is room for it and its cost, and returns false when no request is let in any
// more. paused is called before it has to wait.
func (o *outbox) accept(cost int, paused func()) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.reading() && !o.hasRoomForRequest(cost) {
		paused()
		o.wait()
	}
	if !o.reading() {
		return false
	}
	o.requests++
	o.requestBytes += cost
	return true
}

func (o *outbox) hasRoomForRequest(cost int) bool {
	return o.requests < o.options.MaxPendingRequests &&
		(o.requestBytes == 0 || o.requestBytes+cost <= o.options.MaxPendingRequestBytes)
}

// acceptSend is accept for a send of p, whose frame of size bytes admit has found room for. A send of a detached p is counted
// for nobody.
func (o *outbox) acceptSend(p *producer, size int, paused func()) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.reading() && o.sends >= o.options.MaxPendingSends {
		paused()
		o.wait()
	}
	if !o.reading() {
		return false
	}
	if p.detached {
		return true
	}
	p.unanswered.push(size)
	o.sends++
	o.sendBytes += size
	o.publishing.take(size - o.frameBytes)
	o.frameBytes = 0
	return true
}

// isStopped reports whether the reader was told to take no more commands.
func (o *outbox) isStopped() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.stopped || o.state != outboxOpen
}

func (o *outbox) reading() bool { return !o.stopped && o.state == outboxOpen }

// stop ends the waits of the reader: no command is taken any more.
func (o *outbox) stop() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stopped = true
	o.relieved.Broadcast()
}

// waitUntilAnswered reports whether everything was answered, or the outbox closed, before ctx was done.
func (o *outbox) waitUntilAnswered(ctx context.Context) bool {
	stopWaking := context.AfterFunc(ctx, o.wake)
	defer stopWaking()
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.requests+o.sends > 0 && o.state == outboxOpen && ctx.Err() == nil {
		o.wait()
	}
	return o.requests+o.sends == 0 || o.state != outboxOpen
}
