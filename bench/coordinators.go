package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/pulsar-tc/pulsar-tc/internal/wireclient"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// manyCoordinators is how many an etcd cluster is given by default.
const manyCoordinators = 16

// coordinators is NEW+END at 16 coordinators of one instance, in turns with an instance that has one, and what an idle one takes.
func coordinators(ctx context.Context, _ *suite) ([]line, error) {
	var lines []line
	for _, each := range []int{inFlight / manyCoordinators, inFlight} {
		many, one, err := againstOne(ctx, each)
		if err != nil {
			return nil, err
		}
		lines = append(lines, figure(fmt.Sprintf("NEW+END at %d coordinators of one instance, %d in flight at each", manyCoordinators, each), many.rate(), "txn/s").
			compared(ceiling{fmt.Sprintf("at one, %d in flight", inFlight), one.rate()}).ratioAtLeast(1))
	}
	idle, err := heapOfCoordinators(ctx)
	return append(lines, figure("an idle coordinator, heap", idle/1024, "KiB").atMost(200)), err
}

// againstOne lets an instance with many coordinators and one with a single one take turns of a second.
func againstOne(ctx context.Context, each int) (many, one measured, err error) {
	set := []string{fmt.Sprintf("initialNumTransactionCoordinators=%d", manyCoordinators)}
	err = withLocal(ctx, set, func(_ *local, manyConn *wireclient.Conn) error {
		return withLocal(ctx, nil, func(_ *local, oneConn *wireclient.Conn) error {
			for range int(measuredTime / time.Second) {
				if err := many.turn(ctx, manyConn, manyCoordinators, each); err != nil {
					return err
				}
				if err := one.turn(ctx, oneConn, 1, inFlight); err != nil {
					return err
				}
			}
			return nil
		})
	})
	return many, one, err
}

// turn adds a second of NEW+END at coordinators, with a number in flight at each.
func (m *measured) turn(ctx context.Context, c *wireclient.Conn, coordinators, each int) error {
	var all []*running
	for tc := range uint64(coordinators) {
		all = append(all, (&load{conn: c, inFlight: each, exchange: newEndAt(c, tc)}).start())
	}
	pause(ctx, rampTime)
	began := time.Now()
	var before, after int64
	for _, r := range all {
		before += r.done.Load()
	}
	pause(ctx, time.Second)
	for _, r := range all {
		after += r.done.Load()
	}
	m.add(measured{after - before, time.Since(began)})
	err := ctx.Err()
	for _, r := range all {
		_, stopped := r.stop()
		err = errors.Join(err, stopped)
	}
	return err
}

func newEndAt(c *wireclient.Conn, tc uint64) func(int, func(error)) {
	return func(_ int, done func(error)) {
		beginAt(c, tc, "", func(id txn.ID, err error) {
			if err != nil {
				done(err)
				return
			}
			end(c, id, "", done)
		})
	}
}

// heapOfCoordinators is what a coordinator that does nothing takes: an instance is given more of them.
func heapOfCoordinators(ctx context.Context) (bytes float64, err error) {
	const more = 160
	err = withLocal(ctx, nil, func(l *local, _ *wireclient.Conn) error {
		pause(ctx, settleTime)
		before := heap()
		if err := grow(ctx, l.WebURL(), 1+more); err != nil {
			return err
		}
		last, err := wireclient.DialTC(ctx, l.ServiceURL(), more)
		if err != nil {
			return err
		}
		pause(ctx, settleTime)
		bytes = (heap() - before) / more
		return last.Close()
	})
	return bytes, err
}

// grow makes the store have more coordinators.
func grow(ctx context.Context, webURL string, count int) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, webURL+"/admin/v3/transactions/transactionCoordinator/replicas", strings.NewReader(fmt.Sprint(count)))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	if err := answer.Body.Close(); err != nil || answer.StatusCode != http.StatusNoContent {
		return errors.Join(err, fmt.Errorf("%d coordinators: %s", count, answer.Status))
	}
	return nil
}
