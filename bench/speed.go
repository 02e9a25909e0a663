package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/pulsar-tc/pulsar-tc/internal/wireclient"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

const (
	inFlight = 256
	// measuredTime is how long a rate is measured, longTime how long that of NEW+END in the long mode, in which a log is
	// cleaned, outcomes are evicted and history is compacted.
	measuredTime = 10 * time.Second
	longTime     = time.Minute
	warmUp       = 2 * time.Second
)

// newEndAtOnce is NEW+END COMMIT with 256 in flight on one connection, in turns with the store's ceilings.
func newEndAtOnce(ctx context.Context, s *suite) ([]line, error) {
	seconds := int(measuredTime / time.Second)
	if s.long {
		seconds = int(longTime / time.Second)
	}
	var t turns
	err := withLocal(ctx, nil, func(l *local, c *wireclient.Conn) error {
		return onBare(ctx, func(a *bare) error {
			return onBare(ctx, func(b *bare) error { return t.take(ctx, l, c, a, b, seconds) })
		})
	})
	if err != nil {
		return nil, err
	}
	a, b := t.ceilings()
	return []line{
		figure("NEW+END, 256 in flight", t.rate(), "txn/s").compared(ceiling{"A: its etcd transactions replayed", a}).ratioAtLeast(0.5),
		figure("A", a, "txn/s").compared(ceiling{"B: one put per etcd transaction", b}).ratioAtLeast(0.6),
		figure("records in one etcd transaction", 2*float64(t.count)/float64(t.transactions), "records"),
	}, nil
}

// turns is what a load did, and the times that A and B took for its etcd transactions. One second of each is measured
// before it is the next one's turn, so that all meet the same machine.
type turns struct {
	measured
	transactions int // of etcd
	replay, puts time.Duration
}

func (t *turns) take(ctx context.Context, l *local, c *wireclient.Conn, a, b *bare, seconds int) error {
	exchange := newEnd(c, nil)
	if _, err := (&load{conn: c, inFlight: inFlight, exchange: exchange}).runFor(ctx, 0, warmUp); err != nil {
		return err
	}
	for range seconds {
		r := (&load{conn: c, inFlight: inFlight, exchange: exchange}).start()
		_, rampErr := r.during(ctx, rampTime)
		l.start()
		m, err := r.during(ctx, time.Second)
		recorded := l.recording.stop()
		if _, stopErr := r.stop(); rampErr != nil || err != nil || stopErr != nil {
			return errors.Join(rampErr, err, stopErr)
		}
		t.add(m)
		if err := t.bare(ctx, a, b, recorded); err != nil {
			return err
		}
	}
	return nil
}

// ceilings are the rates at which the transactions would have been complete at the speed of A and of B.
func (t *turns) ceilings() (a, b float64) {
	return float64(t.count) / t.replay.Seconds(), float64(t.count) / t.puts.Seconds()
}

// rampTime is what a load needs to fill all its slots.
const rampTime = 100 * time.Millisecond

// bare replays a recording on a, and puts its bytes on b.
func (t *turns) bare(ctx context.Context, a, b *bare, recorded []transaction) error {
	if err := a.fit(ctx, recorded); err != nil {
		return err
	}
	replay, err := a.replay(ctx, recorded)
	if err != nil {
		return err
	}
	puts, err := b.puts(ctx, recorded)
	t.transactions += len(recorded)
	t.replay += sum(replay)
	t.puts += sum(puts)
	return err
}

// newEndAlone is NEW+END COMMIT with one in flight, in turns with the same etcd transactions on a bare store.
func newEndAlone(ctx context.Context, _ *suite) ([]line, error) {
	const rounds, each = 20, 100
	var ours, theirs []time.Duration
	err := withLocal(ctx, nil, func(l *local, c *wireclient.Conn) error {
		return onBare(ctx, func(b *bare) error {
			for range rounds {
				took, pairs, err := alternate(ctx, l, c, b, each)
				if err != nil {
					return err
				}
				ours, theirs = append(ours, took...), append(theirs, pairs...)
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	return []line{figure("NEW+END, 1 in flight, p50", milliseconds(median(ours)), "ms").
		compared(ceiling{"two dependent etcd transactions, p50", milliseconds(median(theirs))}).ratioAtMost(3)}, nil
}

// alternate measures n NEW+END and then the pairs of etcd transactions that they were.
func alternate(ctx context.Context, l *local, c *wireclient.Conn, b *bare, n int) (ours, pairs []time.Duration, err error) {
	l.start()
	for range n {
		began := time.Now()
		id, err := c.Begin(ctx, 0, ttlMillis, "")
		if err == nil {
			err = c.End(ctx, id, txn.Commit, "")
		}
		if err != nil {
			return nil, nil, err
		}
		ours = append(ours, time.Since(began))
	}
	recorded := slices.DeleteFunc(l.recording.stop(), func(t transaction) bool { return !t.writes() })
	if err := b.fit(ctx, recorded); err != nil {
		return nil, nil, err
	}
	took, err := b.replay(ctx, recorded)
	if err != nil {
		return nil, nil, err
	}
	for pair := range slices.Chunk(took, 2) {
		pairs = append(pairs, sum(pair))
	}
	return ours, pairs, nil
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// sendByClients is NEW+SEND+END with 64 official Go clients on one topic.
func sendByClients(ctx context.Context, _ *suite) ([]line, error) {
	var m measured
	err := withLocal(ctx, nil, func(l *local, _ *wireclient.Conn) (err error) {
		m, err = onOneTopic(l.ServiceURL()).runFor(ctx, warmUp, measuredTime)
		return err
	})
	if err != nil {
		return nil, err
	}
	return []line{figure("NEW+SEND+END, 64 Go clients, 1 topic", m.rate(), "txn/s")}, nil
}

// endRepeated is END_TXN COMMIT on transactions that were committed before.
func endRepeated(ctx context.Context, _ *suite) ([]line, error) {
	const outcomes = 10_000
	var m measured
	err := withLocal(ctx, nil, func(_ *local, c *wireclient.Conn) error {
		ids, err := commit(c, outcomes)
		if err != nil {
			return err
		}
		repeat := load{conn: c, inFlight: inFlight, exchange: func(i int, done func(error)) {
			end(c, ids[i%len(ids)], "", done)
		}}
		m, err = repeat.runFor(ctx, warmUp/2, measuredTime/2)
		return err
	})
	if err != nil {
		return nil, err
	}
	return []line{figure("END repeated on outcomes, 256 in flight", m.rate(), "END/s").atLeast(20_000)}, nil
}

// commit commits n transactions and returns their ids.
func commit(c *wireclient.Conn, n int) ([]txn.ID, error) {
	ids := make([]txn.ID, n)
	l := load{conn: c, inFlight: inFlight, limit: int64(n), exchange: func(i int, done func(error)) {
		begin(c, "", func(id txn.ID, err error) {
			if err != nil {
				done(err)
				return
			}
			ids[i] = id
			end(c, id, "", done)
		})
	}}
	_, err := l.start().wait()
	return ids, err
}
