package conn

import "sync"

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
// block, except admit, accept and acceptSend (for the reader), waitForRoom, waitForReceipts, waitUntilAnswered and take (for the
// writer).
type outbox struct {
	options    *Options
	publishing *publishBuffer
	// overflow is called once, with mu held, when more than options.MaxOutgoing bytes wait.
	overflow func()

	mu       sync.Mutex // guards everything below
	filled   sync.Cond  // for the writer: there is a frame, or state changed
	relieved sync.Cond  // for those that wait at a bound: it may not be reached any more, or stopped or state changed
	waiting  int        // for relieved
	state    outboxState
	stopped  bool // the reader takes no more commands
	tail     *buffer
	next     batch
	size     int // bytes taken in and not yet written
	requests int // accepted and not yet answered, without sends
	sends    int // the same for sends
	full     []*consumer

	requestBytes int // cost of requests
	sendBytes    int // of the frames of sends

	frameBytes int // of the frame being read, as far as publishing counts them; the reader's, without mu
}

func newOutbox(options *Options, publishing *publishBuffer, overflow func()) *outbox {
	o := &outbox{options: options, publishing: publishing, overflow: overflow}
	o.filled.L, o.relieved.L = &o.mu, &o.mu
	return o
}

// queue adds the frame that encode appends. encode must not keep its argument.
func (o *outbox) queue(encode func([]byte) []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.encode(encode)
}

// answer is queue for the answer of a request that accept let in with this cost.
func (o *outbox) answer(cost int, encode func([]byte) []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.encode(encode)
	o.requestDone(cost)
}

// done ends a request that accept let in with this cost and that has no answer.
func (o *outbox) done(cost int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.requestDone(cost)
}

// owes reports whether a command that was taken has no answer yet.
func (o *outbox) owes() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.requests > 0 || o.sends > 0
}

func (o *outbox) requestDone(cost int) {
	o.requests--
	o.requestBytes -= cost
	o.relieve()
}

// receipt is queue for the answer of a send of p; it is dropped if p is detached.
func (o *outbox) receipt(p *producer, encode func([]byte) []byte) {
	o.publishing.release(o.queueReceipt(p, encode))
}

// queueReceipt returns the size of a send that is answered by it. Answers out of order take each other's sizes: the sum is
// right when all are answered.
func (o *outbox) queueReceipt(p *producer, encode func([]byte) []byte) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	if p.detached {
		return 0
	}
	o.encode(encode)
	size := p.unanswered.pop()
	o.sendsDone(1, size)
	return size
}

// waitForReceipts returns when every send of p is answered, or will not be.
func (o *outbox) waitForReceipts(p *producer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for p.unanswered.len() > 0 && o.state == outboxOpen {
		o.wait()
	}
}

// detachProducer ends p: its answers that are still to come are dropped.
func (o *outbox) detachProducer(p *producer) {
	o.publishing.release(o.forgetSends(p))
}

// forgetSends returns the size of all sends that no answer is awaited for any more.
func (o *outbox) forgetSends(p *producer) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	if p.detached {
		return 0
	}
	p.detached = true
	size := p.unanswered.sum
	o.sendsDone(p.unanswered.len(), size)
	p.unanswered = sizes{}
	return size
}

// detachConsumer ends c: its messages that are still to come are dropped.
func (o *outbox) detachConsumer(c *consumer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c.detached = true
}

func (o *outbox) sendsDone(n, size int) {
	o.sends -= n
	o.sendBytes -= size
	o.relieve()
}

// relieve wakes those that wait at a bound, to look again.
func (o *outbox) relieve() {
	if o.waiting > 0 {
		o.relieved.Broadcast()
	}
}

// wake is relieve for those who do not hold mu.
func (o *outbox) wake() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.relieve()
}

// wait returns at the next relief; mu is free meanwhile.
func (o *outbox) wait() {
	o.waiting++
	o.relieved.Wait()
	o.waiting--
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
	o.size -= n
	var full []*consumer
	if o.size <= o.options.HighWater/2 {
		full, o.full = o.full, nil
	}
	o.relieve()
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
