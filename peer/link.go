package peer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// link is one connection. It has two goroutines: run opens it, writes and keeps it alive, read hands out answers.
type link struct {
	target
	pool   *Pool
	ctx    context.Context // ends with the link
	cancel context.CancelFunc
	wake   chan struct{} // something waits in outgoing
	frames atomic.Uint64 // read so far

	mu      sync.Mutex // guards the rest
	socket  net.Conn   // nil: not connected yet
	next    uint64
	pending map[uint64]*call
	// abandoned are requests whose calls have ended, by topic: the other instance holds them until it answers.
	abandoned map[uint64]string
	topics    map[string]int // unanswered requests
	outgoing  []byte
	used      time.Time // when the last request began or ended
	ended     bool
}

func newLink(p *Pool, at target) *link {
	ctx, cancel := context.WithCancel(context.Background())
	return &link{
		target: at, pool: p, ctx: ctx, cancel: cancel, wake: make(chan struct{}, 1), pending: make(map[uint64]*call),
		abandoned: make(map[uint64]string), topics: make(map[string]int), used: time.Now(),
	}
}

// start queues a request.
// Errors: errEnded, txn.ErrTooManyRequests; nothing was sent.
func (l *link) start(c *call) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	options := &l.pool.options
	switch {
	case l.ended:
		return errEnded
	case len(l.pending) >= options.MaxPending || len(l.pending)+len(l.abandoned) >= 2*options.MaxPending || len(l.outgoing) >= options.MaxOutgoing:
		return fmt.Errorf("%w: %d requests, %d that nobody waits for any more, %d bytes wait for instance %s",
			txn.ErrTooManyRequests, len(l.pending), len(l.abandoned), len(l.outgoing), l.instance)
	case c.topic != "" && l.topics[c.topic] >= options.MaxPerTopic:
		return fmt.Errorf("%w: instance %s has not answered %d ends on the topic", txn.ErrTooManyRequests, l.instance, l.topics[c.topic])
	}
	id := l.next
	frames, err := c.encode(l.outgoing, id)
	if err != nil {
		return err
	}
	l.next++
	if c.topic != "" {
		l.topics[c.topic]++
	}
	l.outgoing, l.used = frames, time.Now()
	c.id = id
	c.link.Store(l)
	if c.ended.Load() { // its context ended before it could find its way back here
		l.abandoned[id] = c.topic
	} else {
		l.pending[id] = c
	}
	l.awake()
	return nil
}

// errEnded: the link takes no more requests; another one does.
var errEnded = errors.New("the connection has just ended")

// queue sends frames that nobody waits for an answer to.
func (l *link) queue(frames []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.outgoing = append(l.outgoing, frames...)
	l.awake()
}

func (l *link) awake() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// run opens the connection and writes until the link ends.
func (l *link) run() {
	socket, reader, err := l.connect()
	if err != nil {
		l.end(err)
		return
	}
	if !l.connected(socket) {
		return
	}
	l.pool.tasks.Go(func() { l.read(reader) })
	keepAlive := time.NewTicker(l.pool.options.KeepAlive)
	defer keepAlive.Stop()
	var spare []byte
	var pinged bool
	var seen uint64
	for {
		select {
		case <-l.ctx.Done():
			return
		case <-l.wake:
			frames := l.take(spare)
			if err := l.write(socket, frames); err != nil {
				l.end(err)
				return
			}
			spare = frames
		case <-keepAlive.C:
			frames := l.frames.Load()
			if pinged && frames == seen {
				l.end(errSilent)
				return
			}
			if l.idle() {
				return
			}
			pinged, seen = true, frames
			l.queue(pulsarproto.AppendPing(nil))
		}
	}
}

var errSilent = errors.New("it answers no PING")

// connected takes the socket, unless the link has ended meanwhile.
func (l *link) connected(socket net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		_ = socket.Close() // nothing was sent that could be lost
		return false
	}
	l.socket = socket
	return true
}

// keptOutgoing is the largest buffer that is kept for the next frames.
const keptOutgoing = 256 << 10

func (l *link) take(spare []byte) []byte {
	if cap(spare) > keptOutgoing {
		spare = nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	frames := l.outgoing
	l.outgoing = spare[:0]
	return frames
}

func (l *link) write(socket net.Conn, frames []byte) error {
	if len(frames) == 0 {
		return nil
	}
	if err := socket.SetWriteDeadline(time.Now().Add(l.pool.options.WriteTimeout)); err != nil {
		return err
	}
	_, err := socket.Write(frames)
	return err
}

// idle ends a link that nobody uses.
func (l *link) idle() bool {
	l.mu.Lock()
	unused := len(l.pending) == 0 && time.Since(l.used) >= l.pool.options.IdleTimeout
	if unused {
		l.ended = true // no request can come any more
	}
	l.mu.Unlock()
	if unused {
		l.close()
	}
	return unused
}

// read hands out answers until the connection ends.
func (l *link) read(reader *pulsarproto.FrameReader) {
	var command pulsarproto.BaseCommand
	for {
		frame, err := reader.ReadFrame()
		if err == nil {
			err = pulsarproto.DecodeCommand(&command, frame.Command)
		}
		if err == nil {
			l.frames.Add(1)
			err = l.dispatch(&command)
		}
		if err != nil {
			l.end(err)
			return
		}
	}
}

func (l *link) dispatch(command *pulsarproto.BaseCommand) error {
	switch command.GetType() {
	case pulsarproto.BaseCommand_PING:
		l.queue(pulsarproto.AppendPong(nil))
		return nil
	case pulsarproto.BaseCommand_AUTH_CHALLENGE:
		response, err := l.pool.authResponse()
		if err == nil {
			l.queue(response)
		}
		return err
	}
	if id, ok := answered(command); ok {
		if c := l.answeredCall(id); c != nil {
			c.finish(command, nil)
		}
	}
	return nil
}

func (l *link) answeredCall(id uint64) *call {
	l.mu.Lock()
	defer l.mu.Unlock()
	c, topic := l.pending[id], l.abandoned[id]
	if c != nil {
		topic = c.topic
	}
	if topic != "" {
		if l.topics[topic]--; l.topics[topic] == 0 {
			delete(l.topics, topic)
		}
	}
	delete(l.pending, id)
	delete(l.abandoned, id)
	l.used = time.Now()
	return c
}

// drop forgets a call that has ended without its answer.
func (l *link) drop(c *call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pending[c.id] == c {
		delete(l.pending, c.id)
		l.abandoned[c.id] = c.topic
	}
}

// end ends the link. What was sent has an unknown result; before there was a connection nothing was.
func (l *link) end(cause error) {
	pending, sent := l.stop()
	if len(pending) > 0 {
		l.pool.options.Log.Warn().Err(cause).Str("instance", l.instance).Str("address", l.address).Int("requests", len(pending)).
			Msg("another instance cannot be asked")
	}
	cause = fmt.Errorf("instance %s at %s: %w", l.instance, l.address, cause)
	for _, c := range pending {
		if sent {
			c.lost(cause)
		} else {
			c.finish(nil, fmt.Errorf("%w: %w", txn.ErrNotReady, cause))
		}
	}
}

// stop ends the link and returns the calls that it leaves, and whether they can have been sent.
func (l *link) stop() (pending []*call, sent bool) {
	l.mu.Lock()
	l.ended, sent = true, l.socket != nil
	for _, c := range l.pending {
		pending = append(pending, c)
	}
	clear(l.pending)
	l.mu.Unlock()
	l.close()
	return pending, sent
}

// close frees what an ended link holds. It may run more than once.
func (l *link) close() {
	l.pool.forget(l)
	l.cancel()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.socket != nil {
		_ = l.socket.Close() // who waits is told by whoever ended the link
	}
}

// largestAnswer bounds a frame that another instance sends: an error's text is the longest.
const largestAnswer = 1 << 20

func newReader(socket net.Conn) *pulsarproto.FrameReader {
	return pulsarproto.NewFrameReader(bufio.NewReaderSize(socket, 32<<10), largestAnswer)
}
