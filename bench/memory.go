package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pulsar-tc/pulsar-tc/internal/process"
	"github.com/pulsar-tc/pulsar-tc/internal/wireclient"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

const (
	mebibyte = 1 << 20
	// settleTime is what a server needs until it does nothing more.
	settleTime = 5 * time.Second
)

// openTransactions opens 100 k transactions: how fast, what heap they take, and how soon a killed server with them serves.
func openTransactions(ctx context.Context, s *suite) ([]line, error) {
	const count = 100_000
	var rate, bytes float64
	err := withLocal(ctx, nil, func(_ *local, c *wireclient.Conn) error {
		if _, err := commit(c, count/10); err != nil { // what a server in use has allocated anyway
			return err
		}
		before := heap()
		m, err := openMany(c, count)
		rate, bytes = m.rate(), (heap()-before)/count
		return err
	})
	if err != nil {
		return nil, err
	}
	took, err := s.afterKill(ctx, func(c *wireclient.Conn) error {
		_, err := openMany(c, count)
		return err
	})
	if err != nil {
		return nil, err
	}
	return []line{
		figure("100 k open, heap each", bytes, "B").atMost(1024),
		figure("100 k open, first NEW after kill -9", took.Seconds(), "s").atMost(3),
		figure("100 k open, opened", rate, "txn/s").atLeast(20_000),
	}, nil
}

func openMany(c *wireclient.Conn, n int64) (measured, error) {
	l := load{conn: c, inFlight: inFlight, limit: n, exchange: func(_ int, done func(error)) {
		begin(c, "", func(_ txn.ID, err error) { done(err) })
	}}
	return l.start().wait()
}

// afterKill fills a server, kills it, and returns the time from the next start to the first answer to a NEW.
func (s *suite) afterKill(ctx context.Context, fill func(*wireclient.Conn) error) (took time.Duration, err error) {
	err = inDirectory(func(dir string) error {
		err := withProcess(ctx, s.binary, dir, func(p *process.Server, _ time.Time) error {
			return connected(ctx, p.ServiceURL, fill)
		})
		if err != nil {
			return err
		}
		took, err = timeToFirstNew(ctx, s.binary, dir)
		return err
	})
	return took, err
}

// preservedOutcomes keeps 1 M outcomes of named clients: what heap they take, and how soon a server with them serves.
func preservedOutcomes(ctx context.Context, s *suite) ([]line, error) {
	var lines []line
	for _, names := range []int{1_000, 10_000} {
		of, err := s.preserve(ctx, names)
		if err != nil {
			return nil, err
		}
		lines = append(lines, of...)
	}
	return lines, nil
}

func (s *suite) preserve(ctx context.Context, names int) ([]line, error) {
	const count = 1_000_000
	all := make([]string, names)
	for i := range all {
		all[i] = fmt.Sprintf("client-%d", i)
	}
	var (
		bytes float64
		m     measured
		took  time.Duration
	)
	err := inDirectory(func(dir string) error {
		err := runLocal(ctx, dir, nil, func(_ *local, c *wireclient.Conn) (err error) {
			before := heap()
			ends := load{conn: c, inFlight: inFlight, limit: count, exchange: newEnd(c, func(i int) string { return all[i%names] })}
			m, err = ends.start().wait()
			bytes = (heap() - before) / count
			return err
		})
		if err != nil {
			return err
		}
		took, err = timeToFirstNew(ctx, s.binary, dir)
		return err
	})
	if err != nil {
		return nil, err
	}
	what := fmt.Sprintf("1 M outcomes, %d names x %d", names, count/names)
	return []line{
		figure(what+", heap each", bytes, "B").atMost(100),
		figure(what+", first NEW after start", took.Seconds(), "s").atMost(5),
		figure(what+", NEW+END meanwhile", m.rate(), "txn/s"),
	}, nil
}

// idle is an empty server that nobody uses.
func idle(ctx context.Context, s *suite) ([]line, error) {
	const starts = 3
	var ready []time.Duration
	var resident float64
	for range starts {
		err := inDirectory(func(dir string) error {
			return withProcess(ctx, s.binary, dir, func(p *process.Server, _ time.Time) error {
				pause(ctx, settleTime)
				bytes, err := residentBytes(p.Pid())
				ready, resident = append(ready, p.Started), max(resident, bytes)
				return err
			})
		})
		if err != nil {
			return nil, err
		}
	}
	return []line{
		figure("idle, RSS", resident/mebibyte, "MiB").atMost(80),
		figure("idle, ready after", median(ready).Seconds(), "s").atMost(1.5),
	}, nil
}

// forgotten runs transactions of which nothing may stay.
func forgotten(ctx context.Context, s *suite) ([]line, error) {
	cases := []growth{
		{
			what:  "1 M forgotten, feature off",
			set:   []string{"transactionMetaPersistCount=0", "transactionMetaPersistUnnamedCount=0"},
			count: 1_000_000, from: 100_000,
		},
		{
			what:  "1 M forgotten, no least time",
			set:   []string{"transactionMetaPersistMinTimeInSecond=0"},
			count: 1_000_000, from: 100_000,
		},
	}
	if s.long {
		cases = append(cases, growth{what: "3 M with defaults, beyond the cap", count: 3_000_000, from: 1_200_000})
	}
	var lines []line
	for _, g := range cases {
		of, err := g.measure(ctx)
		if err != nil {
			return nil, err
		}
		lines = append(lines, of...)
	}
	return lines, nil
}

// growth watches heap and live keys while count transactions are run. From the transaction number from on they must be
// flat: the most of the second half is about that of the first.
type growth struct {
	what        string
	set         []string
	count, from int
}

const (
	// samples are many, because heap and keys are saws: the store keeps what it wrote since its last snapshot and
	// compaction, the log is cleaned when half of it is dead.
	samples = 100
	// slackBytes and slackKeys are what the saws of the two halves may differ by. A million outcomes take 70 MiB, the
	// log of a million transactions some 10,000 keys.
	slackBytes = 16 * mebibyte
	slackKeys  = 1000
)

func (g *growth) measure(ctx context.Context) ([]line, error) {
	var heaps, keys []float64
	err := withLocal(ctx, g.set, func(l *local, c *wireclient.Conn) error {
		every := g.count / samples
		for done := every; done <= g.count; done += every {
			ends := load{conn: c, inFlight: inFlight, limit: int64(every), exchange: newEnd(c, nil)}
			if _, err := ends.start().wait(); err != nil {
				return err
			}
			if done < g.from {
				continue
			}
			live, err := l.liveKeys(ctx)
			if err != nil {
				return err
			}
			heaps, keys = append(heaps, heap()), append(keys, live)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return []line{
		flat(g.what+", heap", heaps, mebibyte, "MiB", slackBytes),
		flat(g.what+", live etcd keys", keys, 1, "keys", slackKeys),
	}, nil
}

// flat compares the most of the second half with that of the first.
func flat(what string, all []float64, unit float64, unitName string, slack float64) line {
	half := len(all) / 2
	first, second := slices.Max(all[:half]), slices.Max(all[half:])
	l := figure(what, second/unit, unitName).compared(ceiling{"first half", first / unit})
	l.Target, l.Verdict = fmt.Sprintf("<= %s more", number(slack/unit)), verdict(second-first <= slack)
	return l
}
