package recorder

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// Process is a started server.
type Process struct {
	Target  Target
	command *exec.Cmd
	output  *tail
	ended   chan struct{}
}

// readyTimeout covers a start on a busy machine.
const readyTimeout = 60 * time.Second

// tail keeps the end of a process's output.
type tail struct {
	lines []string
	done  chan struct{}
}

// StartProcess starts the binary in standalone mode on free ports and dataDir, and returns when it says that it is ready.
func StartProcess(binary, dataDir string, run string, settings ...string) (*Process, error) {
	arguments := []string{"standalone", "--data-dir", dataDir, "--set", "brokerServicePort=0", "--set", "webServicePort=0"}
	for _, setting := range settings {
		arguments = append(arguments, "--set", setting)
	}
	p := &Process{command: exec.Command(binary, arguments...), output: &tail{done: make(chan struct{})}, ended: make(chan struct{})}
	stderr, err := p.command.StderrPipe()
	if err != nil {
		return nil, fmt.Errorf("start server: %w", err)
	}
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("start server: %w", err)
	}
	ready := make(chan string, 1)
	go p.output.follow(stderr, ready)
	go func() {
		defer close(p.ended)
		<-p.output.done // Wait closes the pipe: everything must have been read
		_ = p.command.Wait()
	}()
	select {
	case line := <-ready:
		p.Target, err = parseReady(line, run)
	case <-p.ended:
		err = errors.New("the server ended before it was ready")
	case <-time.After(readyTimeout):
		err = errors.New("the server is not ready")
	}
	if err != nil {
		p.Kill()
		return nil, fmt.Errorf("%w; its last lines:\n%s", err, p.Output())
	}
	return p, nil
}

// follow keeps the last lines and hands over the first one that says ready.
func (o *tail) follow(stderr io.Reader, ready chan<- string) {
	defer close(o.done)
	scanner := bufio.NewScanner(stderr)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		line := scanner.Text()
		o.lines = append(o.lines, line)
		if len(o.lines) > 50 {
			o.lines = o.lines[1:]
		}
		if strings.Contains(line, " ready in ") {
			select {
			case ready <- line:
			default:
			}
		}
	}
	_, _ = io.Copy(io.Discard, stderr) // a line too long ends the scan, not the process
}

var serviceURL, webURL = regexp.MustCompile(`pulsar://\S+`), regexp.MustCompile(`http://\S+`)

func parseReady(line, run string) (Target, error) {
	service, err := url.Parse(serviceURL.FindString(line))
	if err != nil || service.Host == "" {
		return Target{}, fmt.Errorf("no service URL in %q", line)
	}
	web := webURL.FindString(line)
	if web == "" {
		return Target{}, fmt.Errorf("no web URL in %q", line)
	}
	return Target{Address: service.Host, WebURL: strings.TrimSuffix(web, "/"), Run: run}, nil
}

// Kill sends SIGKILL and returns when the process is gone.
func (p *Process) Kill() { p.end(syscall.SIGKILL) }

// Stop asks for an orderly end and returns when the process is gone.
func (p *Process) Stop() { p.end(syscall.SIGTERM) }

func (p *Process) end(signal syscall.Signal) {
	_ = p.command.Process.Signal(signal) // an error means that it is gone already
	<-p.ended
}

// Output is the last lines of the process, once it has ended.
func (p *Process) Output() string {
	<-p.ended
	return strings.Join(p.output.lines, "\n")
}
