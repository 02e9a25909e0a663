package conn

import (
	"context"
	"sync"
)

// copyLimit is the payload size from which a frame refers to the stored bytes instead of copying them.
const copyLimit = 8 << 10

// bufferLimit is the largest encoding buffer that is used again.
const bufferLimit = 64 << 10

// buffer is an encoding buffer. It goes back to buffers when its bytes are written.
type buffer struct{ b []byte }

var buffers = sync.Pool{New: func() any { return &buffer{b: make([]byte, 0, 1<<10)} }}

// batch is a run of encoded frames on its way to the network.
type batch struct {
	segments [][]byte  // in order; of buffers, or payloads that others own
	buffers  []*buffer // that segments lie in
}

// recycle empties b and gives its buffers back.
func (b *batch) recycle() {
	for i, buf := range b.buffers {
		if cap(buf.b) <= bufferLimit {
			buf.b = buf.b[:0]
			buffers.Put(buf)
		}
		b.buffers[i] = nil
	}
	clear(b.segments)
	b.segments, b.buffers = b.segments[:0], b.buffers[:0]
}

// outboxState is how far an outbox is on its way to its end.
type outboxState uint8

const (
	outboxOpen     outboxState = iota
	outboxFlushing             // takes no more frames, the writer ends when all are written
	outboxClosed               // what is left is dropped
)

// outbox holds the frames that wait to be written and counts the requests that wait for an answer. Its methods do not
// block, except accept, acceptSend, waitForRoom and waitUntilAnswered (for the reader) and take (for the writer).
type outbox struct {
	options *Options
	// overflow is called once, with mu held, when more than options.MaxOutgoing bytes wait.
	overflow func()

	mu       sync.Mutex // guards everything below
	filled   sync.Cond  // for the writer: there is a frame, or state changed
	relieved sync.Cond  // for the reader: a bound is not reached any more, or stopped or state changed
	state    outboxState
	stopped  bool // the reader takes no more commands
	tail     *buffer
	next     batch
	size     int // bytes taken in and not yet written
	requests int // accepted and not yet answered, without sends
	sends    int // the same for sends
	full     []*consumer
}

func newOutbox(options *Options, overflow func()) *outbox {
	o := &outbox{options: options, overflow: overflow}
	o.filled.L, o.relieved.L = &o.mu, &o.mu
	return o
}

// queue adds the frame that encode appends. encode must not keep its argument.
func (o *outbox) queue(encode func([]byte) []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.encode(encode)
}

// answer is queue for the answer of a request that accept let in.
func (o *outbox) answer(encode func([]byte) []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.encode(encode)
	o.requestDone()
}

// done ends a request that accept let in and that has no answer.
func (o *outbox) done() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.requestDone()
}

func (o *outbox) requestDone() {
	o.requests--
	if o.stopped || o.requests == o.options.MaxPendingRequests-1 {
		o.relieved.Broadcast()
	}
}

// receipt is queue for the answer of a send of p; it is dropped if p is detached.
func (o *outbox) receipt(p *producer, encode func([]byte) []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if p.detached {
		return
	}
	p.unanswered--
	o.encode(encode)
	o.sendsDone(1)
}

// detachProducer ends p: its answers that are still to come are dropped.
func (o *outbox) detachProducer(p *producer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if p.detached {
		return
	}
	p.detached = true
	o.sendsDone(p.unanswered)
	p.unanswered = 0
}

// detachConsumer ends c: its messages that are still to come are dropped.
func (o *outbox) detachConsumer(c *consumer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c.detached = true
}

func (o *outbox) sendsDone(n int) {
	before := o.sends
	o.sends -= n
	if o.stopped || before >= o.options.MaxPendingSends && o.sends < o.options.MaxPendingSends {
		o.relieved.Broadcast()
	}
}

// message adds a frame for c whose last bytes are payload, which encode knows of but does not append. It is dropped if c is
// detached.
func (o *outbox) message(c *consumer, encode func([]byte) []byte, payload []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if c.detached || !o.encode(encode) {
		return
	}
	if len(payload) < copyLimit {
		o.tail.b = append(o.tail.b, payload...)
	} else {
		o.seal()
		o.next.segments = append(o.next.segments, payload)
	}
	o.grow(len(payload))
}

// encode appends a frame to the tail and reports whether the outbox took it.
func (o *outbox) encode(encode func([]byte) []byte) bool {
	if o.state != outboxOpen {
		return false
	}
	if o.tail == nil {
		o.tail = buffers.Get().(*buffer)
	}
	before := len(o.tail.b)
	o.tail.b = encode(o.tail.b)
	o.grow(len(o.tail.b) - before)
	return true
}

// grow counts n more bytes and wakes the writer.
func (o *outbox) grow(n int) {
	o.size += n
	if o.size > o.options.MaxOutgoing && o.state == outboxOpen {
		o.shut(outboxClosed)
		o.overflow()
		return
	}
	o.filled.Signal()
}

// seal moves the tail into the next batch.
func (o *outbox) seal() {
	if o.tail == nil {
		return
	}
	o.next.segments = append(o.next.segments, o.tail.b)
	o.next.buffers = append(o.next.buffers, o.tail)
	o.tail = nil
}

// take waits for frames and moves all of them into b, which must be empty. It returns false when there will be none.
func (o *outbox) take(b *batch) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.state == outboxOpen && o.tail == nil && len(o.next.segments) == 0 {
		o.filled.Wait()
	}
	if o.state == outboxClosed {
		return false
	}
	o.seal()
	if len(o.next.segments) == 0 {
		return false
	}
	*b, o.next = o.next, *b
	return true
}

// written takes n bytes off the size and lets those go on who waited for that.
func (o *outbox) written(n int) {
	o.mu.Lock()
	before := o.size
	o.size -= n
	var full []*consumer
	if o.size <= o.options.HighWater/2 {
		full, o.full = o.full, nil
	}
	if before > o.options.HighWater && o.size <= o.options.HighWater {
		o.relieved.Broadcast()
	}
	for _, c := range full {
		c.full = false
	}
	o.mu.Unlock()
	for _, c := range full {
		c.resume()
	}
}

// isFull reports whether more than HighWater bytes wait; if so, c.resume is called when half of it is left.
func (o *outbox) isFull(c *consumer) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.size <= o.options.HighWater || o.state != outboxOpen {
		return false
	}
	if !c.full {
		c.full = true
		o.full = append(o.full, c)
	}
	return true
}

// waitForRoom returns when the reader may read on, and false when it must not read any more. paused is called before it
// has to wait.
func (o *outbox) waitForRoom(paused func()) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.size > 2*o.options.HighWater {
		paused()
		for o.size > o.options.HighWater && o.reading() {
			o.relieved.Wait()
		}
	}
	return o.reading()
}

// accept lets one request in as soon as fewer than MaxPendingRequests are unanswered, and returns false when no request is
// let in any more. paused is called before it has to wait.
func (o *outbox) accept(paused func()) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.requests >= o.options.MaxPendingRequests {
		paused()
		for o.requests >= o.options.MaxPendingRequests && o.reading() {
			o.relieved.Wait()
		}
	}
	if !o.reading() {
		return false
	}
	o.requests++
	return true
}

// acceptSend is accept for a send of p. A send of a detached p is counted for nobody.
func (o *outbox) acceptSend(p *producer, paused func()) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.sends >= o.options.MaxPendingSends {
		paused()
		for o.sends >= o.options.MaxPendingSends && o.reading() {
			o.relieved.Wait()
		}
	}
	if !o.reading() {
		return false
	}
	if !p.detached {
		p.unanswered++
		o.sends++
	}
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

// waitUntilAnswered returns when nothing is unanswered, the outbox is closed, or ctx is done.
func (o *outbox) waitUntilAnswered(ctx context.Context) {
	wake := context.AfterFunc(ctx, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.relieved.Broadcast()
	})
	defer wake()
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.requests+o.sends > 0 && o.state == outboxOpen && ctx.Err() == nil {
		o.relieved.Wait()
	}
}

// flush lets the writer end once everything queued so far is written; later frames are dropped.
func (o *outbox) flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.shut(outboxFlushing)
}

// close drops what waits and ends all waits.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.shut(outboxClosed)
}

func (o *outbox) shut(state outboxState) {
	if state <= o.state {
		return
	}
	o.state = state
	o.full = nil
	o.filled.Broadcast()
	o.relieved.Broadcast()
}
