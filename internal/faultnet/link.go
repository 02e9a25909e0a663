package faultnet

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"
)

// Condition is how a link is. The zero value passes everything at once.
type Condition struct {
	// Refuse resets each new connection.
	Refuse bool
	// HoldRequests lets nothing pass from clients to the target, HoldAnswers nothing back: neither bytes nor the end of a
	// connection. New connections are accepted and hear nothing. What is held passes when it is not held any more.
	HoldRequests, HoldAnswers bool
	// Delay is how long bytes are on their way, at least.
	Delay time.Duration
	// Rate bounds the bytes per second of each connection in each direction; 0 does not.
	Rate int
}

// Link accepts connections and passes them on to a target. Its methods may be called from anywhere.
type Link struct {
	listener net.Listener
	target   string
	tasks    sync.WaitGroup

	mu        sync.Mutex // guards the following
	condition Condition
	changed   chan struct{} // closed when the condition is another one
	passages  map[*passage]struct{}
	closed    bool
}

// Listen makes a link from address, host:port, to target. Port 0 takes a free one.
func Listen(address, target string) (*Link, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("link to %s: %w", target, err)
	}
	l := &Link{listener: listener, target: target, changed: make(chan struct{}), passages: map[*passage]struct{}{}}
	l.tasks.Go(l.accept)
	return l, nil
}

// New is Listen on a free port of the loopback address, for the time of a test.
func New(t testing.TB, target string) *Link {
	t.Helper()
	l, err := Listen("127.0.0.1:0", target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

// Addr is where clients connect to, host:port.
func (l *Link) Addr() string { return l.listener.Addr().String() }

// Set says how the link is from now on.
func (l *Link) Set(c Condition) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.condition = c
	close(l.changed)
	l.changed = make(chan struct{})
}

// Heal lets everything pass.
func (l *Link) Heal() { l.Set(Condition{}) }

// Cut resets every connection, and new ones until the link is told otherwise.
func (l *Link) Cut() {
	l.Set(Condition{Refuse: true})
	l.Break()
}

// Break resets every connection. Clients may connect again.
func (l *Link) Break() {
	for _, p := range l.open() {
		p.end()
	}
}

// HalfOpen resets every connection towards the target alone: its client waits on.
func (l *Link) HalfOpen() {
	for _, p := range l.open() {
		p.abandon()
	}
}

// Open is how many connections there are.
func (l *Link) Open() int { return len(l.open()) }

func (l *Link) open() []*passage {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []*passage
	for p := range l.passages {
		all = append(all, p)
	}
	return all
}

// Close resets every connection and returns when nothing is passed on any more.
func (l *Link) Close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	// It is closed already, or nobody is told.
	_ = l.listener.Close()
	l.Break()
	l.tasks.Wait()
}

func (l *Link) current() (c Condition, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.condition, l.changed
}

// acceptPause is between two tries to accept when the system refuses, for want of files.
const acceptPause = 10 * time.Millisecond

func (l *Link) accept() {
	for {
		client, err := l.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(acceptPause)
			continue
		}
		p := &passage{link: l, client: client.(*net.TCPConn), done: make(chan struct{})}
		if !l.admit(p) {
			reset(p.client)
			continue
		}
		l.tasks.Go(p.run)
	}
}

func (l *Link) admit(p *passage) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.condition.Refuse {
		return false
	}
	l.passages[p] = struct{}{}
	return true
}

func (l *Link) forget(p *passage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.passages, p)
}

// reset ends a connection without waiting for what was sent. It may have ended already.
func reset(c *net.TCPConn) {
	_ = c.SetLinger(0)
	_ = c.Close()
}
