package etcdstore

import (
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A connection whose other side has vanished without a word is found by what was sent and not acknowledged, not by the later ping.
func TestSilenceIsLimited(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	conn, err := newConnections().dial(t.Context(), listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	raw, err := conn.(*connection).Conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var limit int
	var unread error
	if err := raw.Control(func(fd uintptr) { limit, unread = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT) }); err != nil || unread != nil {
		t.Fatal(err, unread)
	}
	if got := time.Duration(limit) * time.Millisecond; got != pingTimeout {
		t.Errorf("TCP_USER_TIMEOUT is %v, want %v", got, pingTimeout)
	}
}
