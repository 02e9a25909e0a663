package crash

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"
)

// forwarder passes connections on to a server until it is closed. The official client may leave a consumer behind when it is
// closed while it connects again; such a one keeps messages from whoever looks what is left, as long as it has a connection.
type forwarder struct {
	listener net.Listener
	target   string
	tasks    sync.WaitGroup

	mu          sync.Mutex // guards the rest
	connections map[net.Conn]struct{}
	closed      bool
}

func newForwarder(t *testing.T, target string) *forwarder {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &forwarder{listener: listener, target: target, connections: map[net.Conn]struct{}{}}
	f.tasks.Go(f.accept)
	return f
}

func (f *forwarder) addr() string { return f.listener.Addr().String() }

func (f *forwarder) accept() {
	for {
		in, err := f.listener.Accept()
		if err != nil {
			return
		}
		f.tasks.Go(func() { f.forward(in) })
	}
}

// forward ends when either side does. A server that is down refuses, and so does the forwarder.
func (f *forwarder) forward(in net.Conn) {
	out, err := net.Dial("tcp", f.target)
	if err != nil {
		_ = in.Close()
		return
	}
	if !f.keep(in, out) {
		return
	}
	var both sync.WaitGroup
	for from, to := range map[net.Conn]net.Conn{in: out, out: in} {
		both.Go(func() {
			// Which end closed first does not matter.
			_, _ = io.Copy(to, from)
			_ = errors.Join(to.Close(), from.Close())
		})
	}
	both.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.connections, in)
	delete(f.connections, out)
}

func (f *forwarder) keep(in, out net.Conn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		_ = errors.Join(in.Close(), out.Close())
		return false
	}
	f.connections[in], f.connections[out] = struct{}{}, struct{}{}
	return true
}

// close ends every connection and returns when nothing is forwarded any more.
func (f *forwarder) close() {
	f.mu.Lock()
	f.closed = true
	_ = f.listener.Close()
	for c := range f.connections {
		_ = c.Close()
	}
	f.mu.Unlock()
	f.tasks.Wait()
}
