package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
)

// javaCommits is a process of load.Commits: stock Java clients that open and commit transactions.
type javaCommits struct{ *javaProgram }

// startJavaCommits returns when its clients are at work, one at each process.
func startJavaCommits(ctx context.Context, classpath string, s *shared) (*javaCommits, error) {
	var serviceURLs []string
	for _, server := range s.servers {
		serviceURLs = append(serviceURLs, server.ServiceURL)
	}
	program, err := startJava(ctx, classpath, "load.Commits", serviceURLs...)
	if err != nil {
		return nil, err
	}
	if _, err := program.answers.ReadString('\n'); err != nil {
		return nil, errors.Join(fmt.Errorf("the Java clients did not start: %w", err), program.end())
	}
	return &javaCommits{program}, nil
}

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
