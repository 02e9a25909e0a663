package faultnet

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	// soon is until when what is not held has come.
	soon = 10 * time.Second
	// quiet is how long nothing must come while it is held.
	quiet = 50 * time.Millisecond
)

// echo answers with what it hears, and tells of each connection that it accepts and of each that ends.
type echo struct {
	listener net.Listener
	accepted chan struct{}
	ended    chan error
	tasks    sync.WaitGroup
}

func newEcho(t *testing.T) *echo {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := &echo{listener: listener, accepted: make(chan struct{}, 16), ended: make(chan error, 16)}
	e.tasks.Go(e.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		e.tasks.Wait()
	})
	return e
}

func (e *echo) accept() {
	for {
		c, err := e.listener.Accept()
		if err != nil {
			return
		}
		e.accepted <- struct{}{}
		e.tasks.Go(func() {
			_, err := io.Copy(c, c)
			e.ended <- errors.Join(err, c.Close())
		})
	}
}

// through connects to an echo through a link.
func through(t *testing.T) (*Link, *echo, net.Conn) {
	t.Helper()
	e := newEcho(t)
	l := New(t, e.listener.Addr().String())
	return l, e, connect(t, l)
}

func connect(t *testing.T, l *Link) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", l.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func send(t *testing.T, c net.Conn, text string) {
	t.Helper()
	if _, err := c.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
}

// receive returns what comes within a time, up to a number of bytes.
func receive(c net.Conn, n int, within time.Duration) (string, error) {
	if err := c.SetReadDeadline(time.Now().Add(within)); err != nil {
		return "", err
	}
	got := make([]byte, n)
	n, err := io.ReadFull(c, got)
	return string(got[:n]), err
}

func requireEcho(t *testing.T, c net.Conn, text string) {
	t.Helper()
	if got, err := receive(c, len(text), soon); got != text {
		t.Fatalf("%q, %v; want %q", got, err, text)
	}
}

func requireSilence(t *testing.T, c net.Conn) {
	t.Helper()
	if got, err := receive(c, 1, quiet); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("%q, %v; want silence", got, err)
	}
}

func requireEnd(t *testing.T, c net.Conn) {
	t.Helper()
	if got, err := receive(c, 1, soon); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("%q, %v; want the end of the connection", got, err)
	}
}

// requireRefusal wants a connection to end as soon as it is there, or sooner.
func requireRefusal(t *testing.T, l *Link) {
	t.Helper()
	c, err := net.Dial("tcp", l.Addr())
	if err != nil {
		return
	}
	defer func() { _ = c.Close() }()
	requireEnd(t, c)
}

func TestPasses(t *testing.T) {
	_, e, c := through(t)
	text := strings.Repeat("0123456789", 100_000)
	go func() { _, _ = c.Write([]byte(text)) }()
	requireEcho(t, c, text)
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if err := <-e.ended; err != nil {
		t.Errorf("the target was told %v, want an orderly end", err)
	}
	requireEnd(t, c)
}

func TestCutAndHeal(t *testing.T) {
	l, _, c := through(t)
	send(t, c, "a")
	requireEcho(t, c, "a")
	l.Cut()
	requireEnd(t, c)
	requireRefusal(t, l)
	l.Heal()
	c = connect(t, l)
	send(t, c, "b")
	requireEcho(t, c, "b")
	l.Break()
	requireEnd(t, c)
	c = connect(t, l)
	send(t, c, "c")
	requireEcho(t, c, "c")
}

func TestHold(t *testing.T) {
	for name, condition := range map[string]Condition{
		"requests": {HoldRequests: true}, "answers": {HoldAnswers: true}, "both": {HoldRequests: true, HoldAnswers: true},
	} {
		t.Run(name, func(t *testing.T) {
			l, e, c := through(t)
			send(t, c, "a")
			requireEcho(t, c, "a")
			<-e.accepted
			l.Set(condition)
			send(t, c, "b")
			requireSilence(t, c)
			late := connect(t, l)
			send(t, late, "c")
			requireSilence(t, late)
			if condition.HoldRequests {
				select {
				case <-e.accepted:
					t.Error("a new connection reached the target")
				default:
				}
			} else {
				select {
				case <-e.accepted:
				case <-time.After(soon):
					t.Error("a new connection did not reach the target")
				}
			}
			l.Heal()
			requireEcho(t, c, "b")
			requireEcho(t, late, "c")
		})
	}
}

// The end of a held connection is held, too.
func TestHoldKeepsEnds(t *testing.T) {
	l, e, c := through(t)
	send(t, c, "a")
	requireEcho(t, c, "a")
	l.Set(Condition{HoldRequests: true})
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-e.ended:
		t.Fatalf("the target was told of the end: %v", err)
	case <-time.After(quiet):
	}
	l.Heal()
	<-e.ended
}

func TestHalfOpen(t *testing.T) {
	l, e, c := through(t)
	send(t, c, "a")
	requireEcho(t, c, "a")
	l.HalfOpen()
	<-e.ended
	requireSilence(t, c)
	send(t, c, "b")
	requireSilence(t, c)
	l.Break()
	requireEnd(t, c)
}

func TestDelay(t *testing.T) {
	l, _, c := through(t)
	l.Set(Condition{Delay: quiet})
	began := time.Now()
	send(t, c, "a")
	requireEcho(t, c, "a")
	if took := time.Since(began); took < 2*quiet {
		t.Errorf("there and back took %v", took)
	}
	l.Set(Condition{Delay: time.Hour})
	send(t, c, "b")
	requireSilence(t, c)
	l.Heal()
	requireEcho(t, c, "b")
}

func TestRate(t *testing.T) {
	l, _, c := through(t)
	l.Set(Condition{Rate: 4 * chunk})
	text := strings.Repeat("x", 2*chunk)
	began := time.Now()
	go func() { _, _ = c.Write([]byte(text)) }()
	requireEcho(t, c, text)
	// All but the last piece had to wait for the one before it.
	if took := time.Since(began); took < 250*time.Millisecond {
		t.Errorf("%d bytes took %v", len(text), took)
	}
}

func TestNoTarget(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	target := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	requireRefusal(t, New(t, target))
}
