// Package loopback reserves ports of the loopback address for servers under test that start, end and start again on the same one.
package loopback

import (
	"errors"
	"net"
	"strconv"
	"testing"
)

// Reservation keeps ports from everybody who asks the system for some port. Servers that name one of them get it.
type Reservation struct {
	Ports []int

	holds []hold
}

// Reserve asks the system for n ports. They are reserved until Release, or until the process ends.
func Reserve(n int) (*Reservation, error) {
	r := &Reservation{}
	for range n {
		port, h, err := take()
		if err != nil {
			return nil, errors.Join(err, r.Release())
		}
		r.Ports, r.holds = append(r.Ports, port), append(r.holds, h)
	}
	return r, nil
}

// Release gives the ports back. What listens on one goes on.
func (r *Reservation) Release() error {
	var errs []error
	for _, h := range r.holds {
		errs = append(errs, h.release())
	}
	r.holds = nil
	return errors.Join(errs...)
}

// Port reserves a port for the time of a test.
func Port(t testing.TB) int {
	t.Helper()
	r, err := Reserve(1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Release(); err != nil {
			t.Error(err)
		}
	})
	return r.Ports[0]
}

// Address reserves a port for the time of a test and returns host:port.
func Address(t testing.TB) string {
	t.Helper()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(Port(t)))
}
