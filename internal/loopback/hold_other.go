//go:build !linux

package loopback

import (
	"fmt"
	"net"
)

// hold keeps nothing: these systems let nobody listen beside a bound socket, so the port is free until its server starts.
type hold struct{}

// take asks the system for a port that nobody uses now.
func take() (int, hold, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, hold{}, fmt.Errorf("find a port: %w", err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	return port, hold{}, listener.Close()
}

func (hold) release() error { return nil }
