package loopback

import (
	"errors"
	"fmt"
	"net"
	"syscall"
	"testing"
)

func listen(t *testing.T, port int) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// A server that names a reserved port listens on it, and again after it ended. Nobody is there in between.
func TestServerOnReservedPort(t *testing.T) {
	port := Port(t)
	for range 2 {
		l := listen(t, port)
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		accepted, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []net.Conn{accepted, conn} {
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := net.Dial("tcp", l.Addr().String()); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Fatalf("dialled a reserved port without a server: %v, want connection refused", err)
		}
	}
}

// Two servers on one reserved port are refused as on any other.
func TestOneServerAtATime(t *testing.T) {
	port := Port(t)
	l := listen(t, port)
	if second, err := net.Listen("tcp", l.Addr().String()); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("a second server listens: %v, %v", second, err)
	}
}
