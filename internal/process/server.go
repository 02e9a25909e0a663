package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"time"
)

// Options say what to run.
type Options struct {
	Binary  string
	DataDir string
	// Port and WebPort are those of the binary protocol and of HTTP; 0 takes a free one.
	Port, WebPort int
	// ConfigFile, if not empty, is a broker.conf.
	ConfigFile string
	// Set are settings, key=value.
	Set []string
	// Environ is added to this process's environment.
	Environ []string
}

// Server is a running process.
type Server struct {
	ServiceURL, WebURL string
	// Started is the time from the start of the process to its ready line.
	Started time.Duration

	command *exec.Cmd
	done    chan struct{} // closed when the process has ended and was waited for

	mu    sync.Mutex // guards the following
	lines []string
}

// keptLines is how many of its last lines on stderr a server keeps.
const keptLines = 2000

var readyLine = regexp.MustCompile(`ready in \d+ ms: (pulsar://\S+) (http://\S+) `)

// ErrEnded is the error of a start during which the process ended by itself.
var ErrEnded = errors.New("the process ended")

// Start runs a server and waits until it is ready. If ctx is done first, or the process ends, nothing is left running; the
// server that is returned beside the error tells what it said.
func Start(ctx context.Context, options Options) (*Server, error) {
	arguments := []string{
		"standalone", "--data-dir", options.DataDir,
		"--set", fmt.Sprintf("brokerServicePort=%d", options.Port), "--set", fmt.Sprintf("webServicePort=%d", options.WebPort),
	}
	if options.ConfigFile != "" {
		arguments = append(arguments, "--config", options.ConfigFile)
	}
	for _, setting := range options.Set {
		arguments = append(arguments, "--set", setting)
	}
	s := &Server{command: exec.Command(options.Binary, arguments...), done: make(chan struct{})}
	s.command.Env = append(os.Environ(), options.Environ...)
	stderr, err := s.command.StderrPipe()
	if err != nil {
		return s, err
	}
	began := time.Now()
	if err := s.command.Start(); err != nil {
		return s, err
	}
	ready := make(chan []string, 1)
	go s.follow(stderr, ready)
	select {
	case urls := <-ready:
		s.ServiceURL, s.WebURL, s.Started = urls[1], urls[2], time.Since(began)
		return s, nil
	case <-s.done:
		return s, ErrEnded
	case <-ctx.Done():
		return s, errors.Join(fmt.Errorf("not ready: %w", context.Cause(ctx)), s.Kill())
	}
}

// follow reads what the process says, and waits for its end.
func (s *Server) follow(stderr io.Reader, ready chan<- []string) {
	defer close(s.done)
	lines := bufio.NewReader(stderr)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			s.keep(strings.TrimSuffix(line, "\n"))
		}
		if urls := readyLine.FindStringSubmatch(line); urls != nil {
			ready <- urls
		}
		if err != nil {
			break
		}
	}
	// How it ended shows in ProcessState; the error of Wait says no more.
	_ = s.command.Wait()
}

func (s *Server) keep(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.lines) == keptLines {
		s.lines = append(s.lines[:0], s.lines[keptLines/2:]...)
	}
	s.lines = append(s.lines, line)
}

// Lines are the last lines that the process wrote to stderr.
func (s *Server) Lines() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.lines...)
}

// Said reports whether one of the last lines contains text.
func (s *Server) Said(text string) bool {
	for _, line := range s.Lines() {
		if strings.Contains(line, text) {
			return true
		}
	}
	return false
}

// Done is closed when the process has ended.
func (s *Server) Done() <-chan struct{} { return s.done }

// Pid is the process id.
func (s *Server) Pid() int { return s.command.Process.Pid }

// ExitCode is how the process ended, -1 by a signal. It may be asked when Done is closed.
func (s *Server) ExitCode() int { return s.command.ProcessState.ExitCode() }

// Kill ends the process with SIGKILL and returns when it is gone.
func (s *Server) Kill() error {
	err := s.command.Process.Kill()
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	<-s.done
	return err
}

// Stop asks the process to stop and returns when it is gone; one that does not stop before ctx is done is killed.
func (s *Server) Stop(ctx context.Context) error {
	if err := s.command.Process.Signal(os.Interrupt); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return errors.Join(err, s.Kill())
	}
	select {
	case <-s.done:
		return nil
	case <-ctx.Done():
		return errors.Join(fmt.Errorf("not stopped: %w", context.Cause(ctx)), s.Kill())
	}
}
