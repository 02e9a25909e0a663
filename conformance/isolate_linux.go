package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// isolate runs this program again in a network namespace of its own and returns its exit code. errNotIsolated: the system
// does not allow that.
func isolate() (int, error) {
	again := exec.Command("/proc/self/exe", os.Args[1:]...)
	again.Stdout, again.Stderr = os.Stdout, os.Stderr
	again.Env = append(os.Environ(), insideKey+"=1")
	again.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGTERM}
	if err := again.Start(); err != nil {
		return 0, errors.Join(errNotIsolated, err)
	}
	var exit *exec.ExitError
	if err := again.Wait(); err != nil && !errors.As(err, &exit) {
		return 0, err
	}
	return again.ProcessState.ExitCode(), nil
}

// raiseLoopback sets the loopback interface of a new namespace up.
func raiseLoopback() (err error) {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("socket: %w", err)
	}
	defer func() { err = errors.Join(err, unix.Close(socket)) }()
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, request); err != nil {
		return fmt.Errorf("set lo up: %w", err)
	}
	return nil
}
