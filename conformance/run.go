package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// hangs is how long a test may run without a word of it before its process is ended. Two tests wait for 60 s.
const hangs = 3 * time.Minute

// result is what became of one test.
type result struct {
	passed  bool
	skipped bool
	seconds float64
	output  string
	before  string // of one that passed, but not at the first try
}

// event is a line of go tool test2json.
type event struct {
	Action  string
	Test    string
	Output  string
	Elapsed float64
}

// run runs tests of one package in one process, in the suite's order. A test that ends or hangs its process has failed, and
// the others go on in another one.
func (s suite) run(ctx context.Context, pkg string, names []string) (map[string]result, error) {
	results := make(map[string]result)
	for len(names) > 0 {
		before := len(results)
		if err := s.process(ctx, pkg, names, results); err != nil {
			return nil, err
		}
		if len(results) == before {
			return nil, fmt.Errorf("%s: none of %s exists", pkg, strings.Join(names, ", "))
		}
		var left []string
		for _, name := range names {
			if _, ran := results[name]; !ran {
				left = append(left, name)
			}
		}
		names = left
	}
	return results, nil
}

func (s suite) process(ctx context.Context, pkg string, names []string, results map[string]result) error {
	tests := exec.CommandContext(ctx, s.binary(pkg), "-test.v=test2json", "-test.timeout=40m", "-test.run=^("+strings.Join(names, "|")+")$")
	tests.Dir = filepath.Join(s.dir, pkg)
	tests.Env = append(os.Environ(), "GOTRACEBACK=all")
	convert := exec.CommandContext(ctx, "go", "tool", "test2json", "-t")
	stdout, err := tests.StdoutPipe()
	if err != nil {
		return err
	}
	tests.Stderr = tests.Stdout
	convert.Stdin = stdout
	events, err := convert.StdoutPipe()
	if err != nil {
		return err
	}
	if err := tests.Start(); err != nil {
		return fmt.Errorf("start %s: %w", s.binary(pkg), err)
	}
	if err := convert.Start(); err != nil {
		return fmt.Errorf("start go tool test2json: %w", err)
	}
	running := collect(events, results, func() { tests.Process.Signal(syscall.SIGQUIT) })
	// Failed tests make an exit code that says no more than the events.
	convertErr := convert.Wait()
	tests.Wait()
	if running != "" {
		old := results[running]
		results[running] = result{output: old.output + "the process of the tests ended or hung in this test\n"}
	}
	if convertErr != nil {
		return fmt.Errorf("go tool test2json: %w", convertErr)
	}
	return nil
}

// collect notes what became of each test, and returns the one that was still running at the end of events.
func collect(events io.Reader, results map[string]result, hung func()) (running string) {
	watchdog := time.AfterFunc(hangs, hung)
	defer watchdog.Stop()
	outputs := map[string]*bytes.Buffer{}
	lines := bufio.NewScanner(events)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue
		}
		name, _, isPart := strings.Cut(e.Test, "/")
		if name == "" {
			continue
		}
		switch {
		case e.Action == "run" && !isPart:
			watchdog.Reset(hangs)
			running, outputs[name] = name, &bytes.Buffer{}
		case e.Action == "output" && outputs[name] != nil && outputs[name].Len() < 1<<20:
			outputs[name].WriteString(e.Output)
		case !isPart && (e.Action == "pass" || e.Action == "fail" || e.Action == "skip"):
			running = ""
			results[name] = result{passed: e.Action == "pass", skipped: e.Action == "skip", seconds: e.Elapsed, output: outputs[name].String()}
			fmt.Printf("%-6s %6.1f s  %s\n", e.Action, e.Elapsed, name)
		}
	}
	if running != "" {
		results[running] = result{output: outputs[running].String()}
	}
	return running
}
