package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
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
	// Copy, if not nil, is given each line that the process writes to stderr, by one goroutine.
	Copy func(line string)
}

// Server is a running process.
type Server struct {
	*Child
	ServiceURL, WebURL string
	// Started is the time from the start of the process to its ready line.
	Started time.Duration
}

var readyLine = regexp.MustCompile(`ready in \d+ ms: (pulsar://\S+) (http://\S+) `)

// ErrEnded is the error of a start during which the process ended by itself.
var ErrEnded = errors.New("the process ended")

// Start runs a server and waits until it is ready. If ctx is done first, or the process ends, nothing is left running; the
// server that is returned beside the error tells what it said.
func Start(ctx context.Context, options Options) (*Server, error) {
	command := exec.Command(options.Binary, options.arguments()...)
	command.Env = append(os.Environ(), options.Environ...)
	ready := make(chan []string, 1)
	began := time.Now()
	child, err := StartChild(command, func(line string) {
		if options.Copy != nil {
			options.Copy(line)
		}
		if urls := readyLine.FindStringSubmatch(line); urls != nil {
			ready <- urls
		}
	})
	if err != nil {
		return &Server{}, err
	}
	s := &Server{Child: child}
	select {
	case urls := <-ready:
		s.ServiceURL, s.WebURL, s.Started = urls[1], urls[2], time.Since(began)
		return s, nil
	case <-s.Done():
		return s, ErrEnded
	case <-ctx.Done():
		return s, errors.Join(fmt.Errorf("not ready: %w", context.Cause(ctx)), s.Kill())
	}
}

func (o *Options) arguments() []string {
	arguments := []string{
		"standalone", "--data-dir", o.DataDir,
		"--set", fmt.Sprintf("brokerServicePort=%d", o.Port), "--set", fmt.Sprintf("webServicePort=%d", o.WebPort),
	}
	if o.ConfigFile != "" {
		arguments = append(arguments, "--config", o.ConfigFile)
	}
	for _, setting := range o.Set {
		arguments = append(arguments, "--set", setting)
	}
	return arguments
}

// Stop asks the process to stop and returns when it is gone; one that does not stop before ctx is done is killed.
func (s *Server) Stop(ctx context.Context) error {
	if err := s.Signal(os.Interrupt); err != nil {
		return errors.Join(err, s.Kill())
	}
	select {
	case <-s.Done():
		return nil
	case <-ctx.Done():
		return errors.Join(fmt.Errorf("not stopped: %w", context.Cause(ctx)), s.Kill())
	}
}
