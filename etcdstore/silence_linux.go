package etcdstore

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// limitSilence ends a connection when what was sent is not acknowledged for pingTimeout. gRPC sets that only on connections that it has
// dialled itself. Source: gRPC's proposal A18.
func limitSilence(_, _ string, conn syscall.RawConn) error {
	var err error
	control := conn.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(pingTimeout.Milliseconds()))
	})
	if control != nil {
		return control
	}
	return err
}
