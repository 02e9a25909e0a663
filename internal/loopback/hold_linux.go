package loopback

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// hold is a socket that is bound to its port and never listens. Linux lets another socket listen beside it if both have
// SO_REUSEADDR, which Go sets for listeners, and gives the port to nobody who asks for any. Source: socket(7), ip(7).
type hold int

// take binds a socket to a port of the system's choice.
func take() (int, hold, error) {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, 0, fmt.Errorf("reserve a port: %w", os.NewSyscallError("socket", err))
	}
	port, err := bind(socket)
	if err != nil {
		return 0, 0, fmt.Errorf("reserve a port: %w", errors.Join(err, unix.Close(socket)))
	}
	return port, hold(socket), nil
}

func bind(socket int) (int, error) {
	if err := unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return 0, os.NewSyscallError("setsockopt", err)
	}
	if err := unix.Bind(socket, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, os.NewSyscallError("bind", err)
	}
	address, err := unix.Getsockname(socket)
	if err != nil {
		return 0, os.NewSyscallError("getsockname", err)
	}
	inet, ok := address.(*unix.SockaddrInet4)
	if !ok {
		return 0, fmt.Errorf("the socket has an address of type %T", address)
	}
	return inet.Port, nil
}

func (h hold) release() error { return os.NewSyscallError("close", unix.Close(int(h))) }
