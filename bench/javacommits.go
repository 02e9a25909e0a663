package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// javaCommits is a process of load.Commits: stock Java clients that open and commit transactions.
type javaCommits struct {
	command *exec.Cmd
	stdin   io.Closer
	answers *bufio.Reader
}

// startJavaCommits returns when its clients are at work, one at each process.
func startJavaCommits(ctx context.Context, classpath string, s *shared) (*javaCommits, error) {
	arguments := []string{"-Xmx256m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off", "-cp", classpath, "load.Commits"}
	for _, server := range s.servers {
		arguments = append(arguments, server.ServiceURL)
	}
	command := exec.CommandContext(ctx, "java", arguments...)
	command.Stderr = os.Stderr
	stdin, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	j := &javaCommits{command, stdin, bufio.NewReader(stdout)}
	if _, err := j.answers.ReadString('\n'); err != nil {
		return nil, errors.Join(fmt.Errorf("the Java clients did not start: %w", err), j.end())
	}
	return j, nil
}

func (j *javaCommits) end() error { return errors.Join(j.stdin.Close(), j.command.Wait()) }

// stop ends the clients and returns how many transactions they committed, and how many failed.
func (j *javaCommits) stop() (commits, failures int, err error) {
	if err := j.stdin.Close(); err != nil {
		return 0, 0, err
	}
	answer, err := j.answers.ReadString('\n')
	if err != nil {
		return 0, 0, errors.Join(fmt.Errorf("the Java clients ended: %w", err), j.command.Wait())
	}
	if _, err := fmt.Sscan(answer, &commits, &failures); err != nil {
		return 0, 0, errors.Join(fmt.Errorf("the Java clients answered %q", strings.TrimSpace(answer)), j.command.Wait())
	}
	if parts := strings.SplitN(strings.TrimSpace(answer), " ", 3); len(parts) == 3 {
		fmt.Fprintln(os.Stderr, "first failure of the Java clients:", parts[2])
	}
	return commits, failures, j.command.Wait()
}
