package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/pulsar-tc/pulsar-tc/internal/process"
)

const (
	javaSends         = "NEW+SEND+END, Java client, 1 producer without batching, 64 in flight"
	javaSendsInFlight = 64
)

// javaSendsBesidePulsar is transactions of one message from one producer of the official Java client: on our server, and
// beside a real Pulsar if there is one.
func javaSendsBesidePulsar(ctx context.Context, s *suite) ([]line, error) {
	if _, err := exec.LookPath("mvn"); err != nil {
		return []line{leftOut(javaSends, "it needs a JDK and Maven")}, nil
	}
	var lines []line
	err := inDirectory(func(dir string) error {
		classpath, err := buildJava(ctx, dir)
		if err != nil {
			return err
		}
		if os.Getenv(pulsarStart) == "" {
			lines, err = s.javaSendsAlone(ctx, classpath)
			return err
		}
		var c contest
		err = s.contest(ctx, nil, func(ctx context.Context, ours *process.Server, theirs *broker) error {
			return c.javaSends(ctx, classpath, ours, theirs)
		})
		lines = []line{c.line(javaSends, "Pulsar, defaults").ratioAtLeast(10)}
		return err
	})
	return lines, err
}

func (s *suite) javaSendsAlone(ctx context.Context, classpath string) ([]line, error) {
	var m measured
	err := inDirectory(func(dir string) error {
		return withProcess(ctx, s.binary, dir, func(ours *process.Server, _ time.Time) error {
			return withJavaClient(ctx, classpath, ours.ServiceURL, func(client *javaClient) (err error) {
				m, err = client.measure(pulsarWarmUp, measuredTime)
				return err
			})
		})
	})
	return []line{figure(javaSends, m.rate(), "txn/s")}, err
}

func (c *contest) javaSends(ctx context.Context, classpath string, ours *process.Server, theirs *broker) error {
	return withJavaClient(ctx, classpath, ours.ServiceURL, func(toOurs *javaClient) error {
		return withJavaClient(ctx, classpath, theirs.url, func(toTheirs *javaClient) error {
			// Both have compiled themselves when they are compared.
			if _, err := toOurs.measure(pulsarWarmUp, contestTurn); err != nil {
				return err
			}
			of := func(client *javaClient) func(time.Duration) (measured, error) {
				return func(warmUp time.Duration) (measured, error) { return client.measure(warmUp, contestTurn) }
			}
			return c.run(contender{ours.Pid(), of(toOurs)}, contender{theirs.pid(), of(toTheirs)})
		})
	})
}

// buildJava compiles java/ into dir and returns a class path with the client. The working directory must be the module's.
func buildJava(ctx context.Context, dir string) (string, error) {
	list := filepath.Join(dir, "classpath")
	build := exec.CommandContext(ctx, "mvn", "-q", "-B", "-f", "java/pom.xml", "-DbuildDirectory="+dir,
		"compile", "dependency:build-classpath", "-Dmdep.outputFile="+list)
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build java/: %w\n%s", err, output)
	}
	jars, err := os.ReadFile(list)
	return filepath.Join(dir, "classes") + ":" + strings.TrimSpace(string(jars)), err
}

// javaProgram is a process that runs a class of java/. It ends with its standard input.
type javaProgram struct {
	command *exec.Cmd
	stdin   io.WriteCloser
	answers *bufio.Reader
}

func startJava(ctx context.Context, classpath, class string, arguments ...string) (*javaProgram, error) {
	options := []string{"-Xmx512m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off", "-cp", classpath, class}
	command := exec.CommandContext(ctx, "java", append(options, arguments...)...)
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
	return &javaProgram{command, stdin, bufio.NewReader(stdout)}, nil
}

func (j *javaProgram) end() error { return errors.Join(j.stdin.Close(), j.command.Wait()) }

// javaClient is a process of load.TransactionalSends.
type javaClient struct{ *javaProgram }

// withJavaClient runs f beside a client process, which ends with it.
func withJavaClient(ctx context.Context, classpath, serviceURL string, f func(*javaClient) error) error {
	program, err := startJava(ctx, classpath, "load.TransactionalSends", serviceURL, strconv.Itoa(javaSendsInFlight))
	if err != nil {
		return err
	}
	return errors.Join(f(&javaClient{program}), program.end())
}

// measure lets the client run for warmUp and then measures it for d.
func (j *javaClient) measure(warmUp, d time.Duration) (measured, error) {
	if _, err := fmt.Fprintln(j.stdin, warmUp.Milliseconds(), d.Milliseconds()); err != nil {
		return measured{}, err
	}
	answer, err := j.answers.ReadString('\n')
	if err != nil {
		return measured{}, fmt.Errorf("the Java client ended: %w", err)
	}
	var count, micros int64
	if _, err := fmt.Sscan(answer, &count, &micros); err != nil {
		return measured{}, fmt.Errorf("the Java client answered %q", strings.TrimSpace(answer))
	}
	return measured{count: count, took: time.Duration(micros) * time.Microsecond}, nil
}
