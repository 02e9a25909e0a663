package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pulsar-tc/pulsar-tc/internal/etcdprocess"
	"github.com/pulsar-tc/pulsar-tc/internal/process"
	"github.com/pulsar-tc/pulsar-tc/internal/wireclient"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

const (
	// instances is how many processes share a cluster.
	instances = 3
	// lease is coordinatorLeaseSeconds, its default.
	lease = 6 * time.Second
	// failovers is how often the failover is measured.
	failovers = 3
	// patience is between two tries of a client that looks for a coordinator.
	patience = 10 * time.Millisecond
)

// shared is some processes on one etcd cluster.
type shared struct {
	options []process.Options
	servers []*process.Server
}

// withInstances runs f beside three processes on an etcd cluster of three members, which have a number of coordinators.
func withInstances(ctx context.Context, binary string, coordinators int, f func(*shared) error) error {
	return withCluster(ctx, func(etcd *etcdprocess.Cluster) error {
		s := &shared{}
		defer s.kill()
		for range instances {
			s.options = append(s.options, process.Options{Binary: binary, Set: []string{
				"metadataStoreUrl=etcd:" + strings.Join(etcd.Endpoints(), ","),
				fmt.Sprintf("initialNumTransactionCoordinators=%d", coordinators),
			}})
		}
		for i := range s.options {
			if err := s.start(ctx, i); err != nil {
				return err
			}
		}
		return f(s)
	})
}

// start starts process i, for the first time or again.
func (s *shared) start(ctx context.Context, i int) error {
	ctx, cancel := context.WithTimeout(ctx, startWait)
	defer cancel()
	server, err := process.Start(ctx, s.options[i])
	if err != nil {
		return fmt.Errorf("start instance %d: %w: %s", i, err, strings.Join(server.Lines(), "\n"))
	}
	if i == len(s.servers) {
		s.servers = append(s.servers, nil)
	}
	s.servers[i] = server
	return nil
}

func (s *shared) kill() {
	for _, server := range s.servers {
		// Only one that has ended cannot be killed.
		_ = server.Kill()
	}
}

// connect returns a connection to the leader of coordinator tc, found by asking any process that lives, and which process that
// is. It tries until there is one.
func (s *shared) connect(ctx context.Context, tc uint64) (c *wireclient.Conn, leader int, err error) {
	for {
		for _, server := range s.servers {
			if !lives(server) {
				continue
			}
			if c, err = wireclient.DialTC(ctx, server.ServiceURL, tc); err == nil {
				return c, s.at(c), nil
			}
		}
		select {
		case <-ctx.Done():
			return nil, 0, errors.Join(context.Cause(ctx), err)
		case <-time.After(patience):
		}
	}
}

func lives(server *process.Server) bool {
	select {
	case <-server.Done():
		return false
	default:
		return true
	}
}

// at is the process that c is connected to.
func (s *shared) at(c *wireclient.Conn) int {
	port := c.RemoteAddr().(*net.TCPAddr).Port
	return slices.IndexFunc(s.servers, func(server *process.Server) bool {
		return strings.HasSuffix(server.ServiceURL, fmt.Sprintf(":%d", port))
	})
}

// failover is the time from kill -9 of the leader of a coordinator, which has 10 k open transactions, to the answer of a NEW, and how
// many of these could not be committed afterwards.
func failover(ctx context.Context, suite *suite) ([]line, error) {
	const open = 10_000
	var all []time.Duration
	lost := 0
	err := withInstances(ctx, suite.binary, instances, func(s *shared) error {
		for range failovers {
			took, missing, err := s.failOver(ctx, open)
			if err != nil {
				return err
			}
			all = append(all, took)
			lost += missing
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return []line{
		figure("three instances, leader of 10 k open killed, first NEW, median", median(all).Seconds(), "s").atMost((lease + 2*time.Second).Seconds()),
		figure("the same, worst", slices.Max(all).Seconds(), "s").atMost((lease + 2*time.Second).Seconds()),
		figure("the same, open transactions lost", float64(lost), "txn").atMost(0),
	}, nil
}

func (s *shared) failOver(ctx context.Context, open int64) (took time.Duration, lost int, err error) {
	c, leader, err := s.connect(ctx, 0)
	if err != nil {
		return 0, 0, err
	}
	ids, err := openIDs(c, open)
	if err != nil {
		return 0, 0, errors.Join(err, c.Close())
	}
	began := time.Now()
	if err := errors.Join(s.servers[leader].Kill(), c.Close()); err != nil {
		return 0, 0, err
	}
	for took == 0 {
		next, _, err := s.connect(ctx, 0)
		if err != nil {
			return 0, 0, err
		}
		if _, err := next.Begin(ctx, 0, ttlMillis, ""); err != nil {
			if closed := next.Close(); closed != nil {
				return 0, 0, errors.Join(err, closed)
			}
			continue
		}
		took = time.Since(began)
		lost = endAll(next, ids)
		if err := next.Close(); err != nil {
			return 0, 0, err
		}
	}
	return took, lost, s.start(ctx, leader)
}

// openIDs opens n transactions and returns their ids.
func openIDs(c *wireclient.Conn, n int64) ([]txn.ID, error) {
	ids := make([]txn.ID, n)
	l := load{conn: c, inFlight: inFlight, limit: n, exchange: func(i int, done func(error)) {
		begin(c, "", func(id txn.ID, err error) {
			ids[i] = id
			done(err)
		})
	}}
	_, err := l.start().wait()
	return ids, err
}

// endAll commits transactions and returns how many could not be.
func endAll(c *wireclient.Conn, ids []txn.ID) int {
	var lost atomic.Int64
	l := load{conn: c, inFlight: inFlight, limit: int64(len(ids)), exchange: func(i int, done func(error)) {
		end(c, ids[i], "", func(err error) {
			if err != nil {
				lost.Add(1)
			}
			done(nil)
		})
	}}
	if _, err := l.start().wait(); err != nil {
		return len(ids)
	}
	return int(lost.Load())
}
