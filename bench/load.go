package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pulsar-tc/pulsar-tc/internal/wireclient"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// ttlMillis is the timeout of transactions that must not time out while they are measured.
const ttlMillis = 24 * 60 * 60 * 1000

// load runs the same exchange again and again on one connection, a number of them in flight: each starts when the answer to
// the one before has come.
type load struct {
	conn     *wireclient.Conn
	inFlight int
	// exchange sends requests and calls done once, from the connection's reader, when the last is answered. i counts the
	// exchanges from 0.
	exchange func(i int, done func(error))
	limit    int64 // exchanges; 0: until stopped
}

// measured is what a load did.
type measured struct {
	count int64
	took  time.Duration
}

func (m measured) rate() float64 { return float64(m.count) / m.took.Seconds() }

func (m *measured) add(more measured) {
	m.count += more.count
	m.took += more.took
}

// running is a load under way.
type running struct {
	load    *load
	began   time.Time
	started atomic.Int64
	done    atomic.Int64
	stopped atomic.Bool
	slots   sync.WaitGroup

	mu  sync.Mutex
	err error // guarded by mu: the first one
}

func (l *load) start() *running {
	r := &running{load: l, began: time.Now()}
	r.slots.Add(l.inFlight)
	for range l.inFlight {
		r.next()
	}
	return r
}

// next starts an exchange in a slot, or gives the slot up.
func (r *running) next() {
	i := r.started.Add(1) - 1
	if r.stopped.Load() || r.load.limit > 0 && i >= r.load.limit {
		r.slots.Done()
		return
	}
	r.load.exchange(int(i), func(err error) {
		if err != nil {
			r.fail(err)
		} else {
			r.done.Add(1)
		}
		r.next()
	})
}

func (r *running) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = err
	}
	r.stopped.Store(true)
}

// wait returns when all exchanges have ended.
func (r *running) wait() (measured, error) {
	r.slots.Wait()
	m := measured{count: r.done.Load(), took: time.Since(r.began)}
	r.mu.Lock()
	defer r.mu.Unlock()
	return m, r.err
}

// stop lets what is in flight end.
func (r *running) stop() (measured, error) {
	r.stopped.Store(true)
	return r.wait()
}

// during measures a time of a load that goes on.
func (r *running) during(ctx context.Context, d time.Duration) (measured, error) {
	before, began := r.done.Load(), time.Now()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return measured{}, context.Cause(ctx)
	case <-timer.C:
	}
	return measured{count: r.done.Load() - before, took: time.Since(began)}, nil
}

// runFor measures a load for d after warmUp.
func (l *load) runFor(ctx context.Context, warmUp, d time.Duration) (measured, error) {
	r := l.start()
	_, warmErr := r.during(ctx, warmUp)
	m, err := r.during(ctx, d)
	_, stopErr := r.stop()
	return m, errors.Join(warmErr, err, stopErr)
}

// newEnd is NEW_TXN and, when it is answered, END_TXN COMMIT. name, if not nil, gives the client name of each.
func newEnd(c *wireclient.Conn, name func(i int) string) func(int, func(error)) {
	return func(i int, done func(error)) {
		clientName := ""
		if name != nil {
			clientName = name(i)
		}
		begin(c, clientName, func(id txn.ID, err error) {
			if err != nil {
				done(err)
				return
			}
			end(c, id, clientName, done)
		})
	}
}

// begin sends NEW_TXN for coordinator 0.
func begin(c *wireclient.Conn, clientName string, done func(txn.ID, error)) {
	beginAt(c, 0, clientName, done)
}

func beginAt(c *wireclient.Conn, tc uint64, clientName string, done func(txn.ID, error)) {
	c.StartNewTxn(tc, ttlMillis, clientName, func(answer *pulsarproto.BaseCommand, err error) {
		if err != nil {
			done(txn.ID{}, err)
			return
		}
		r := answer.GetNewTxnResponse()
		if r == nil || r.Error != nil {
			done(txn.ID{}, fmt.Errorf("NEW_TXN: %w", refusal(answer)))
			return
		}
		done(txn.ID{Most: r.GetTxnidMostBits(), Least: r.GetTxnidLeastBits()}, nil)
	})
}

// end sends END_TXN COMMIT.
func end(c *wireclient.Conn, id txn.ID, clientName string, done func(error)) {
	c.StartEndTxn(id, txn.Commit, clientName, func(answer *pulsarproto.BaseCommand, err error) {
		if err != nil {
			done(err)
			return
		}
		if r := answer.GetEndTxnResponse(); r == nil || r.Error != nil {
			done(fmt.Errorf("END_TXN %s: %w", id, refusal(answer)))
			return
		}
		done(nil)
	})
}

// refusal is the error in an answer, also where the answer is of an unexpected kind.
func refusal(answer *pulsarproto.BaseCommand) error {
	if err := wireclient.ErrorOf(answer); err != nil {
		return err
	}
	return fmt.Errorf("answered with %s", answer.GetType())
}
