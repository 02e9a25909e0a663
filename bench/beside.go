package main

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	"github.com/pulsar-tc/pulsar-tc/internal/process"
	"github.com/pulsar-tc/pulsar-tc/internal/wireclient"
)

const (
	contestRounds = 5
	contestTurn   = 3 * time.Second
	// pulsarWarmUp is what a Java process needs to compile itself.
	pulsarWarmUp = 10 * time.Second
)

// contest is what two servers do in turns.
type contest struct{ ours, theirs measured }

// contender is a server in a process of its own.
type contender struct {
	pid int
	// measure warms up for the time given and measures for contestTurn.
	measure func(warmUp time.Duration) (measured, error)
}

// turn wakes the contender for a measurement.
func (c *contender) turn(warmUp time.Duration) (measured, error) {
	if err := syscall.Kill(c.pid, syscall.SIGCONT); err != nil {
		return measured{}, err
	}
	m, err := c.measure(warmUp)
	return m, errors.Join(err, c.freeze())
}

// freeze stops the contender, so that its housekeeping does not cost the other one.
func (c *contender) freeze() error { return syscall.Kill(c.pid, syscall.SIGSTOP) }

// run lets both have their turns.
func (c *contest) run(ours, theirs contender) (err error) {
	defer func() {
		err = errors.Join(err, syscall.Kill(ours.pid, syscall.SIGCONT), syscall.Kill(theirs.pid, syscall.SIGCONT))
	}()
	if err := ours.freeze(); err != nil {
		return err
	}
	if _, err := theirs.turn(pulsarWarmUp); err != nil {
		return err
	}
	for range contestRounds {
		o, ourErr := ours.turn(warmUp / 2)
		t, theirErr := theirs.turn(warmUp / 2)
		if err := errors.Join(ourErr, theirErr); err != nil {
			return err
		}
		c.ours.add(o)
		c.theirs.add(t)
	}
	return nil
}

func (c *contest) line(what, with string) line {
	return figure(what, c.ours.rate(), "txn/s").compared(ceiling{with, c.theirs.rate()})
}

// messages is line for what is counted in messages.
func (c *contest) messages(what, with string) line {
	return figure(what, c.ours.rate(), "msg/s").compared(ceiling{with, c.theirs.rate()})
}

// besidePulsar compares with a real Pulsar: its defaults, and its batched transaction log. Each server is a process of its
// own, and the clients are in this one.
func besidePulsar(ctx context.Context, s *suite) ([]line, error) {
	if os.Getenv(pulsarStart) == "" {
		return []line{leftOut("beside a real Pulsar "+pulsarVersion, pulsarStart+" names no program that starts one")}, nil
	}
	var plain, batched, send, publish, consume, transform contest
	for _, c := range []struct {
		set []string // of Pulsar
		run func(context.Context, *process.Server, *broker) error
	}{
		{nil, plain.newEnds},
		{[]string{"transactionLogBatchedWriteEnabled=true"}, batched.newEnds},
		{nil, send.sends},
		{nil, publish.publishes},
		{nil, consume.consumes},
		{nil, transform.transforms},
	} {
		if err := s.contest(ctx, c.set, c.run); err != nil {
			return nil, err
		}
	}
	const newEnds = "NEW+END, 256 in flight"
	return []line{
		plain.line(newEnds, "Pulsar, defaults").ratioAtLeast(3),
		batched.line(newEnds, "Pulsar, batched log").ratioAtLeast(2),
		send.line("NEW+SEND+END, 64 Go clients, 1 topic", "Pulsar, defaults, 64 topics").ratioAtLeast(1.5),
		publish.messages(plainSends, "Pulsar").ratioAtLeast(1),
		consume.messages("backlog of 1 M messages of 100 B, 1 Go consumer", "Pulsar").ratioAtLeast(1),
		transform.line(consumeTransformProduce, "Pulsar, 16 topics each way").ratioAtLeast(3),
	}, nil
}

// contest starts both servers with empty directories.
func (s *suite) contest(ctx context.Context, set []string, run func(context.Context, *process.Server, *broker) error) error {
	return inDirectory(func(dir string) error {
		return withProcess(ctx, s.binary, dir, func(ours *process.Server, _ time.Time) error {
			return withBroker(ctx, set, func(theirs *broker) error { return run(ctx, ours, theirs) })
		})
	})
}

func (c *contest) newEnds(ctx context.Context, ours *process.Server, theirs *broker) error {
	return connected(ctx, ours.ServiceURL, func(toOurs *wireclient.Conn) error {
		return connected(ctx, theirs.url, func(toTheirs *wireclient.Conn) error {
			on := func(conn *wireclient.Conn) func(time.Duration) (measured, error) {
				l := load{conn: conn, inFlight: inFlight, exchange: newEnd(conn, nil)}
				return func(warmUp time.Duration) (measured, error) { return l.runFor(ctx, warmUp, contestTurn) }
			}
			return c.run(contender{ours.Pid(), on(toOurs)}, contender{theirs.pid(), on(toTheirs)})
		})
	})
}

func (c *contest) sends(ctx context.Context, ours *process.Server, theirs *broker) error {
	with := func(p *producers) func(time.Duration) (measured, error) {
		return func(warmUp time.Duration) (measured, error) { return p.runFor(ctx, warmUp, contestTurn) }
	}
	return c.run(contender{ours.Pid(), with(onOneTopic(ours.ServiceURL))}, contender{theirs.pid(), with(onManyTopics(theirs.url))})
}
