package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"github.com/pulsar-tc/pulsar-tc/internal/wireclient"
)

// pulsarStart names a program that runs a Pulsar standalone in the foreground:
// PROGRAM VERSION DIRECTORY BINARY_PORT HTTP_PORT [key=value ...]. It may use the three ports behind the binary one.
const pulsarStart = "PULSAR_BROKER_START"

const pulsarVersion = "4.0.7"

// broker is a real Pulsar standalone.
type broker struct {
	command *exec.Cmd
	ended   chan struct{} // closed when the process is gone
	url     string
}

// withBroker runs f beside a Pulsar that has an empty directory and opens transactions.
func withBroker(ctx context.Context, set []string, f func(*broker) error) error {
	return inDirectory(func(dir string) error {
		b, err := startBroker(dir, set)
		if err != nil {
			return err
		}
		err = b.await(ctx)
		if err == nil {
			err = f(b)
		}
		return errors.Join(err, b.stop())
	})
}

func startBroker(dir string, set []string) (*broker, error) {
	port, err := freePorts(5)
	if err != nil {
		return nil, err
	}
	arguments := append([]string{pulsarVersion, dir, strconv.Itoa(port), strconv.Itoa(port + 4)}, set...)
	b := &broker{
		command: exec.Command(os.Getenv(pulsarStart), arguments...),
		ended:   make(chan struct{}),
		url:     fmt.Sprintf("pulsar://127.0.0.1:%d", port),
	}
	if err := b.command.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(b.ended)
		// Whether it was able to serve shows elsewhere.
		_ = b.command.Wait()
	}()
	return b, nil
}

// pulsarWait is enough for a first start, which may have to fetch Pulsar.
const pulsarWait = 5 * time.Minute

// await asks for a transaction until there is one.
func (b *broker) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, pulsarWait)
	defer cancel()
	again := time.NewTicker(500 * time.Millisecond)
	defer again.Stop()
	for {
		err := b.begin(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-again.C:
		case <-b.ended:
			return errors.New("the Pulsar process ended")
		case <-ctx.Done():
			return fmt.Errorf("the Pulsar process opens no transaction: %w", err)
		}
	}
}

func (b *broker) begin(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return connected(ctx, b.url, func(c *wireclient.Conn) error {
		id, err := c.Begin(ctx, 0, ttlMillis, "")
		if err != nil {
			return err
		}
		return c.End(ctx, id, 0, "")
	})
}

func (b *broker) pid() int { return b.command.Process.Pid }

func (b *broker) stop() error {
	if err := b.command.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	killer := time.AfterFunc(30*time.Second, func() { _ = b.command.Process.Kill() })
	defer killer.Stop()
	<-b.ended
	return nil
}

// freePorts returns the first of n ports in a row that nobody listens on.
func freePorts(n int) (int, error) {
	for first := 21650; first < 31650; first += 10 {
		if allFree(first, n) {
			return first, nil
		}
	}
	return 0, fmt.Errorf("no %d free ports in a row", n)
}

func allFree(first, n int) bool {
	for port := first; port < first+n; port++ {
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			return false
		}
		if err := l.Close(); err != nil {
			return false
		}
	}
	return true
}
