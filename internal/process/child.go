package process

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
)

// keptLines is how many of its last lines on stderr a child keeps.
const keptLines = 2000

// Child is a process that this one has started, and the last lines that it wrote to stderr. A nil Child could not be started: it
// said nothing, and Kill has nothing to do.
type Child struct {
	command *exec.Cmd
	done    chan struct{} // closed when the process has ended and was waited for

	mu    sync.Mutex // guards the following
	lines []string
}

// StartChild starts command. heard, if not nil, is given each line of stderr, without its end, by one goroutine.
func StartChild(command *exec.Cmd, heard func(line string)) (*Child, error) {
	stderr, err := command.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	c := &Child{command: command, done: make(chan struct{})}
	go c.follow(stderr, heard)
	return c, nil
}

// follow reads what the process says, and waits for its end.
func (c *Child) follow(stderr io.Reader, heard func(string)) {
	defer close(c.done)
	lines := bufio.NewReader(stderr)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			line = strings.TrimSuffix(line, "\n")
			c.keep(line)
			if heard != nil {
				heard(line)
			}
		}
		if err != nil {
			break
		}
	}
	// How it ended shows in ProcessState; the error of Wait says no more.
	_ = c.command.Wait()
}

func (c *Child) keep(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.lines) == keptLines {
		c.lines = append(c.lines[:0], c.lines[keptLines/2:]...)
	}
	c.lines = append(c.lines, line)
}

// Lines are the last lines that the process wrote to stderr.
func (c *Child) Lines() []string {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.lines...)
}

// Said reports whether one of the last lines contains text.
func (c *Child) Said(text string) bool {
	for _, line := range c.Lines() {
		if strings.Contains(line, text) {
			return true
		}
	}
	return false
}

// Done is closed when the process has ended.
func (c *Child) Done() <-chan struct{} { return c.done }

// Pid is the process id.
func (c *Child) Pid() int { return c.command.Process.Pid }

// ExitCode is how the process ended, -1 by a signal. It may be asked when Done is closed.
func (c *Child) ExitCode() int { return c.command.ProcessState.ExitCode() }

// Kill ends the process with SIGKILL, paused or not, and returns when it is gone.
func (c *Child) Kill() error {
	if c == nil {
		return nil
	}
	err := c.Signal(os.Kill)
	<-c.done
	return err
}

// Pause stops the process where it is (SIGSTOP) until Resume.
func (c *Child) Pause() error { return c.Signal(syscall.SIGSTOP) }

// Resume lets a paused process go on (SIGCONT).
func (c *Child) Resume() error { return c.Signal(syscall.SIGCONT) }

// Signal sends a signal, without effect on a process that has ended.
func (c *Child) Signal(signal os.Signal) error {
	if err := c.command.Process.Signal(signal); !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}
