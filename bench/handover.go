package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"sync"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"

	"github.com/pulsar-tc/pulsar-tc/internal/wireclient"
	"github.com/pulsar-tc/pulsar-tc/internal/workload"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

const (
	// sharedCoordinators is how many coordinators three instances share.
	sharedCoordinators = 6
	// handOverInFlight is how many requests each coordinator has in flight while it is handed over: a load, not a flood.
	handOverInFlight = 16
	// handOverTime is how long requests are measured, with a hand-over that begins at a third of it and without.
	handOverTime = 9 * time.Second
	// officialClients is how many Go clients commit transactions while coordinators are handed over.
	officialClients = 8
)

// requests is how requests were answered.
type requests struct {
	mu     sync.Mutex // guards the following
	took   []time.Duration
	failed int
}

func (r *requests) add(took time.Duration, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.failed++
	}
	r.took = append(r.took, took)
}

// slow is the time that one of a thousand requests took at least.
func (r *requests) slow() time.Duration {
	slices.Sort(r.took)
	return r.took[len(r.took)*999/1000]
}

const handOverJava = "a hand-over under load, transactions of Java clients"

// handOver stops the instance that leads coordinator 0 in an orderly way while requests to all that it leads are under way on open
// connections, and while stock clients commit transactions: first of Go, then of Java.
func handOver(ctx context.Context, suite *suite) ([]line, error) {
	lines, err := handOverOfGo(ctx, suite)
	if err != nil {
		return nil, err
	}
	more, err := handOverOfJava(ctx, suite)
	return append(lines, more...), err
}

func handOverOfGo(ctx context.Context, suite *suite) ([]line, error) {
	var calm, moved requests
	var commits, failures int
	err := withInstances(ctx, suite.binary, sharedCoordinators, func(s *shared) error {
		if err := s.load(ctx, &calm, func(int) error { return nil }); err != nil {
			return err
		}
		official := startOfficials(ctx, s)
		err := s.load(ctx, &moved, s.leave)
		commits, failures = official.stop()
		return err
	})
	if err != nil {
		return nil, err
	}
	more := milliseconds(moved.slow()) - milliseconds(calm.slow())
	return []line{
		figure("hand-over under load, p99.9 above that without", more, "ms").
			compared(ceiling{"p99.9 without", milliseconds(calm.slow())}).atMost(250),
		figure("the same, requests", float64(len(moved.took)), "requests"),
		figure("the same, failed requests of the raw client", float64(moved.failed), "requests").atMost(0),
		figure("the same, transactions of 8 Go clients", float64(commits), "txn"),
		figure("the same, failed transactions of Go clients", float64(failures), "txn").atMost(0),
	}, nil
}

// handOverOfJava has the raw client at work, too, so that both clients meet the same.
func handOverOfJava(ctx context.Context, suite *suite) ([]line, error) {
	if _, err := exec.LookPath("mvn"); err != nil {
		return []line{leftOut(handOverJava, "it needs a JDK and Maven")}, nil
	}
	var moved requests
	var commits, failures int
	err := inDirectory(func(dir string) error {
		classpath, err := buildJava(ctx, dir)
		if err != nil {
			return err
		}
		return withInstances(ctx, suite.binary, sharedCoordinators, func(s *shared) error {
			official, err := startJavaCommits(ctx, classpath, s)
			if err != nil {
				return err
			}
			err = s.load(ctx, &moved, s.leave)
			var stopped error
			commits, failures, stopped = official.stop()
			return errors.Join(err, stopped)
		})
	})
	return []line{
		figure(handOverJava, float64(commits), "txn"),
		figure("the same, failed transactions of Java clients", float64(failures), "txn").atMost(0),
	}, err
}

// leave ends instance i in an orderly way.
func (s *shared) leave(i int) error { return s.servers[i].Signal(os.Interrupt) }

// load sends requests to every coordinator that the leader of coordinator 0 leads, and calls event in the middle of it.
func (s *shared) load(ctx context.Context, r *requests, event func(leader int) error) error {
	var running []*running
	first := -1
	for tc := range uint64(sharedCoordinators) {
		c, leader, err := s.connect(ctx, tc)
		if err != nil {
			return err
		}
		defer func() { _ = c.Close() }()
		if first < 0 {
			first = leader
		}
		if leader != first {
			continue
		}
		l := &load{conn: c, inFlight: handOverInFlight, exchange: timed(c, tc, r)}
		running = append(running, l.start())
	}
	pause(ctx, handOverTime/3)
	err := event(first)
	pause(ctx, handOverTime*2/3)
	for _, each := range running {
		_, stopped := each.stop()
		err = errors.Join(err, stopped)
	}
	return errors.Join(err, ctx.Err())
}

// timed is NEW and END, each noted in r. What fails is not the end of the load.
func timed(c *wireclient.Conn, tc uint64, r *requests) func(int, func(error)) {
	return func(_ int, done func(error)) {
		began := time.Now()
		beginAt(c, tc, "", func(id txn.ID, err error) {
			r.add(time.Since(began), err)
			if err != nil {
				done(closedOnly(err))
				return
			}
			began := time.Now()
			end(c, id, "", func(err error) {
				r.add(time.Since(began), err)
				done(closedOnly(err))
			})
		})
	}
}

// closedOnly is the error after which nothing more can be asked on a connection.
func closedOnly(err error) error {
	if errors.Is(err, wireclient.ErrClosed) {
		return err
	}
	return nil
}

// officials are stock Go clients that open and commit transactions.
type officials struct {
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	mu               sync.Mutex // guards the following
	commits, failure int
}

func startOfficials(ctx context.Context, s *shared) *officials {
	ctx, cancel := context.WithCancel(ctx)
	o := &officials{cancel: cancel}
	for i := range officialClients {
		serviceURL := s.servers[i%len(s.servers)].ServiceURL
		o.tasks.Go(func() { o.commit(ctx, serviceURL) })
	}
	return o
}

func (o *officials) commit(ctx context.Context, serviceURL string) {
	client, err := newOfficial(serviceURL)
	if err != nil {
		o.note(err)
		return
	}
	defer client.Close()
	for ctx.Err() == nil {
		t, err := client.NewTransaction(time.Minute)
		if err == nil {
			err = t.Commit(context.WithoutCancel(ctx))
		}
		o.note(err)
	}
}

func (o *officials) note(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err != nil {
		o.failure++
		return
	}
	o.commits++
}

func (o *officials) stop() (commits, failures int) {
	o.cancel()
	o.tasks.Wait()
	return o.commits, o.failure
}

func newOfficial(serviceURL string) (pulsar.Client, error) {
	addr, err := wireclient.Address(serviceURL)
	if err != nil {
		return nil, err
	}
	return workload.NewOfficialClient(addr)
}
