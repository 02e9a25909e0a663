package etcdstore

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// lockPatience lets a process that is just ending go; a directory in use is still refused within a second.
	lockPatience = 500 * time.Millisecond
	lockRetry    = 20 * time.Millisecond
)

// InUseError says that another process runs on the data directory.
type InUseError struct {
	Dir string
	PID int // of the holder; 0 if its lock file does not say
}

func (e *InUseError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("data directory %s is in use by another process", e.Dir)
	}
	return fmt.Sprintf("data directory %s is in use by the process with pid %d", e.Dir, e.PID)
}

// Lock is the hold of this process on a data directory. The kernel gives it up when the process ends, however it ends.
type Lock struct{ file *os.File }

// LockDir takes the lock of a data directory, which it makes if need be. The error is an *InUseError if another process has it.
func LockDir(dir string) (*Lock, error) {
	if err := directory(dir).prepare(); err != nil {
		return nil, err
	}
	path := directory(dir).lock()
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock data directory: %w", err)
	}
	if err := flock(file); err != nil {
		held := heldBy(file, dir, err)
		return nil, errors.Join(held, file.Close())
	}
	lock := &Lock{file: file}
	if err := lock.sign(); err != nil {
		return nil, errors.Join(fmt.Errorf("write lock file %s: %w", path, err), lock.Release())
	}
	return lock, nil
}

// flock waits for the lock for no longer than lockPatience.
func flock(file *os.File) error {
	deadline := time.Now().Add(lockPatience)
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return err
		}
		if time.Now().After(deadline) {
			return err
		}
		time.Sleep(lockRetry)
	}
}

func heldBy(file *os.File, dir string, cause error) error {
	if !errors.Is(cause, unix.EWOULDBLOCK) {
		return fmt.Errorf("lock data directory %s: %w", dir, cause)
	}
	text, err := io.ReadAll(io.LimitReader(file, 32))
	if err != nil {
		return &InUseError{Dir: dir}
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return &InUseError{Dir: dir}
	}
	return &InUseError{Dir: dir, PID: pid}
}

func (l *Lock) sign() error {
	if err := l.file.Truncate(0); err != nil {
		return err
	}
	_, err := l.file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

// Release gives the directory up. The file stays: removing it would let two processes lock two files of one name.
func (l *Lock) Release() error {
	if err := l.file.Close(); err != nil {
		return fmt.Errorf("unlock data directory: %w", err)
	}
	return nil
}
