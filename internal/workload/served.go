package workload

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pulsar-tc/pulsar-tc/internal/history"
	"github.com/pulsar-tc/pulsar-tc/internal/wiretopic"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// served notes that a coordinator or a topic did what it was asked for at some time.
func (l *Load) served(what string, call time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lastServed[what] = max(l.lastServed[what], call)
}

// sent records a message that was sent at some time.
func (l *Load) sent(call time.Duration, m history.Message) {
	l.history.Sent(m)
	if m.Answer == history.Done {
		l.served(m.Topic, call)
	}
}

func coordinator(tc uint64) string { return fmt.Sprintf("coordinator %d", tc) }

// Now is the time of the load, for AwaitServed.
func (l *Load) Now() time.Duration { return l.history.Now() }

// unserved returns the coordinators, and if they matter the topics that clients work on, that have not served anybody who asked
// after a time.
func (l *Load) unserved(since time.Duration, topics bool) []string {
	var all []string
	for tc := range l.options.Coordinators {
		all = append(all, coordinator(tc))
	}
	if topics && l.resender != nil {
		all = append(all, l.topics()...)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(all, func(what string) bool { return l.lastServed[what] > since })
}

// ErrNotServed is the error of coordinators and topics that do not serve in time.
var ErrNotServed = errors.New("not served")

// AwaitCoordinators waits until every coordinator has served somebody who asked after a time. It needs StartProbes.
func (l *Load) AwaitCoordinators(ctx context.Context, since time.Duration) error {
	return l.await(ctx, since, false)
}

// AwaitServed is AwaitCoordinators for topics as well, if Start and StartBesides were called.
func (l *Load) AwaitServed(ctx context.Context, since time.Duration) error {
	return l.await(ctx, since, true)
}

func (l *Load) await(ctx context.Context, since time.Duration, topics bool) error {
	for {
		missing := l.unserved(since, topics)
		if len(missing) == 0 {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%w: %q", ErrNotServed, missing)
		}
		Pause(ctx, retryPause)
	}
}

const (
	// probeTime bounds one probe.
	probeTime = time.Second
	// probePause is between two probes of one coordinator.
	probePause = 100 * time.Millisecond
)

// StartProbes puts a client to work for each coordinator that opens and commits empty transactions.
func (l *Load) StartProbes() {
	for tc := range l.options.Coordinators {
		l.repeat(func(ctx context.Context) error { return l.probe(ctx, tc) })
	}
}

func (l *Load) probe(ctx context.Context, tc uint64) error {
	router, closeQuietly := l.route()
	defer closeQuietly()
	for ctx.Err() == nil {
		if err := l.probeOnce(ctx, router, tc); err != nil {
			return err
		}
		Pause(ctx, probePause)
	}
	return nil
}

func (l *Load) probeOnce(ctx context.Context, router *wiretopic.Router, tc uint64) error {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	call := l.history.Now()
	id, err := l.beginAt(ctx, router, tc, l.options.LongestTTL, "")
	if err != nil {
		return err
	}
	if err := l.end(ctx, router, id, txn.Commit, ""); err != nil {
		return err
	}
	l.served(coordinator(tc), call)
	return nil
}
