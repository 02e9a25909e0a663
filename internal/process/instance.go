package process

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pulsar-tc/pulsar-tc/internal/loopback"
)

// startTime bounds one start or stop of a server.
const startTime = 60 * time.Second

// Instance is a data directory and two ports of a test, on which one server runs after the other.
type Instance struct {
	Options Options
	// Server is the newest one; nil before the first start.
	Server *Server

	t testing.TB
}

// NewInstance makes an instance with a data directory and ports of its own. Nothing of it is left when t has ended; if t
// failed, the last lines of the server are logged.
func NewInstance(t testing.TB, binary string, set ...string) *Instance {
	t.Helper()
	i := &Instance{t: t, Options: Options{Binary: binary, DataDir: t.TempDir(), Port: loopback.Port(t), WebPort: loopback.Port(t), Set: set}}
	t.Cleanup(i.end)
	return i
}

// failureLines is how many lines of the server are logged when a test failed.
const failureLines = 40

func (i *Instance) end() {
	i.Kill()
	if i.Server == nil || !i.t.Failed() {
		return
	}
	lines := i.Server.Lines()
	for _, line := range lines[max(0, len(lines)-failureLines):] {
		i.t.Log("server: ", line)
	}
}

// Start starts a server and waits until it is ready. environ is added to the environment.
func (i *Instance) Start(environ ...string) {
	i.t.Helper()
	if err := i.TryStart(environ...); err != nil {
		i.t.Fatalf("start: %v", err)
	}
}

// TryStart is Start that leaves it to the caller what an error means.
func (i *Instance) TryStart(environ ...string) error {
	i.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	options := i.Options
	options.Environ = environ
	server, err := Start(ctx, options)
	i.Server = server
	return err
}

// StartToDie starts a server with a failpoint, which may be met before the server is ready.
func (i *Instance) StartToDie(rule string) {
	i.t.Helper()
	if err := i.TryStart(rule); err != nil && !errors.Is(err, ErrEnded) {
		i.t.Fatalf("start: %v", err)
	}
}

// AwaitDeath waits until a failpoint has ended the server.
func (i *Instance) AwaitDeath(limit time.Duration) {
	i.t.Helper()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-i.Server.Done():
	case <-timer.C:
		i.t.Fatal("the failpoint was not met")
	}
	if !i.Server.Said("failpoint: ") || i.Server.ExitCode() != -1 {
		i.t.Fatalf("the server ended with code %d, and not by the failpoint", i.Server.ExitCode())
	}
}

// Kill ends the server with SIGKILL, if one runs.
func (i *Instance) Kill() {
	i.t.Helper()
	if i.Server == nil {
		return
	}
	if err := i.Server.Kill(); err != nil {
		i.t.Errorf("kill: %v", err)
	}
}

// Stop stops the server in an orderly way.
func (i *Instance) Stop() {
	i.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	if err := i.Server.Stop(ctx); err != nil {
		i.t.Errorf("stop: %v", err)
	}
}
