package loopback

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// onlyFrom makes the system choose port when it is asked for any. Source: ip(7), IP_LOCAL_PORT_RANGE, since Linux 6.3.
func onlyFrom(t *testing.T, port int) func(_, _ string, c syscall.RawConn) error {
	return func(_, _ string, c syscall.RawConn) error {
		var err error
		controlErr := c.Control(func(socket uintptr) {
			err = unix.SetsockoptInt(int(socket), unix.IPPROTO_IP, unix.IP_LOCAL_PORT_RANGE, port<<16|port)
		})
		if errors.Is(err, unix.ENOPROTOOPT) {
			t.Skip("this Linux cannot be told from which ports to choose")
		}
		return errors.Join(controlErr, err)
	}
}

// The system gives a reserved port neither to a server nor to a client that asks for any, also after a server of its own has
// listened on it; it does once the port is released.
func TestReservedPortIsNotGiven(t *testing.T) {
	r, err := Reserve(1)
	if err != nil {
		t.Fatal(err)
	}
	port := r.Ports[0]
	server := listen(t, Port(t))
	anyServer := net.ListenConfig{Control: onlyFrom(t, port)}
	anyClient := net.Dialer{Control: onlyFrom(t, port)}
	for range 2 {
		if l, err := anyServer.Listen(context.Background(), "tcp", "127.0.0.1:0"); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("a server got %v, %v", l, err)
		}
		if c, err := anyClient.Dial("tcp", server.Addr().String()); !errors.Is(err, syscall.EADDRNOTAVAIL) {
			t.Errorf("a client got %v, %v", c, err)
		}
		if err := listen(t, port).Close(); err != nil {
			t.Fatal(err)
		}
	}

	if err := r.Release(); err != nil {
		t.Fatal(err)
	}
	l, err := anyServer.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("the port is not given after its release: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}
