package server

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pulsar-tc/pulsar-tc/cluster"
	"github.com/pulsar-tc/pulsar-tc/lookup"
	"github.com/pulsar-tc/pulsar-tc/pulsaradmin"
	"github.com/pulsar-tc/pulsar-tc/terminatedtopic"
	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// joinCluster makes this process known to those that share its store, and them to it. An embedded store is shared by nobody.
func (s *Server) joinCluster(ctx, _ context.Context) error {
	self := cluster.Instance{
		ServiceURL: s.ServiceURL(), ServiceURLTLS: s.ServiceURLTLS(), WebURL: s.WebURL(), WebURLTLS: s.WebURLTLS(),
		Version: s.options.Version,
	}
	if !s.options.External() {
		s.cluster = cluster.Alone(self)
		return nil
	}
	joined, err := cluster.Join(ctx, cluster.Options{
		Client: storeClient{s.store.Client(), s.kv}, Keys: s.options.space(), Self: self, Lease: s.options.Config.CoordinatorLease,
		Log: s.options.Log,
	})
	if err != nil {
		return err
	}
	s.cluster = joined
	s.onClose(joined.Close)
	return nil
}

// placement tells who is to lead coordinators.
type placement struct{ *cluster.Cluster }

func (p placement) Place(tc uint64) string { return p.PlaceCoordinator(tc).ID }

// owner is the address of the instance that serves a topic. Errors: txn.ErrNotReady.
func (s *Server) owner(ctx context.Context, name topicname.Name) (lookup.Address, error) {
	served, err := s.ownerOf(ctx, name)
	return lookup.Address{ServiceURL: served.ServiceURL, ServiceURLTLS: served.ServiceURLTLS}, err
}

// ownerOf is the instance that serves a topic, or is to serve it. Errors: txn.ErrNotReady.
func (s *Server) ownerOf(ctx context.Context, name topicname.Name) (cluster.Instance, error) {
	if tc, is := coordinatorOf(name); is && tc < s.coordinatorCount() {
		return s.leaderOf(ctx, tc)
	}
	return s.serving(ctx, name)
}

// coordinatorOf is the coordinator whose leader serves a topic: a partition of the assignment topic, or a topic of outcomes.
func coordinatorOf(name topicname.Name) (tc uint64, is bool) {
	if name.Base() == topicname.AssignTopic && name.Partition() >= 0 {
		return uint64(name.Partition()), true
	}
	if !terminatedtopic.Serves(name) {
		return 0, false
	}
	tc, err := strconv.ParseUint(name.Local[strings.LastIndexByte(name.Local, '_')+1:], 10, 64)
	return tc, err == nil
}

const (
	// leaderMargin is how much longer than a lease it takes at most until a dead leader is followed.
	leaderMargin = 2 * time.Second
	// leaderInterval is the time between two looks who leads, while nobody does.
	leaderInterval = 100 * time.Millisecond
)

// followed is how long after its death a leader is followed by another one, at most.
func (o *Options) followed() time.Duration { return o.Config.CoordinatorLease + leaderMargin }

// leaderWait is how long who asks for a leader waits for one. Clients, and the port for HTTP, give up after half a minute.
func (o *Options) leaderWait() time.Duration { return min(o.followed(), loadWait) }

// leaderOf returns the instance that leads a coordinator, as of a linearizable read. While nobody leads it waits, for leaderWait.
// Errors: txn.ErrNotReady.
func (s *Server) leaderOf(ctx context.Context, tc uint64) (cluster.Instance, error) {
	ctx, cancel := context.WithTimeout(ctx, s.options.leaderWait())
	defer cancel()
	for {
		id, _, err := s.leader.Holder(ctx, tc)
		if leader, known := s.cluster.Find(id); err == nil && known {
			return leader, nil
		}
		select {
		case <-ctx.Done():
			return cluster.Instance{}, noLeader(tc, id, err)
		case <-time.After(leaderInterval):
		}
	}
}

func noLeader(tc uint64, id string, err error) error {
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", txn.ErrNotReady, err)
	case id != "":
		return fmt.Errorf("%w: coordinator %d is led by %s, of which nothing is known", txn.ErrNotReady, tc, id)
	}
	return fmt.Errorf("%w: nobody leads coordinator %d yet", txn.ErrNotReady, tc)
}

// ledHere returns nil if this process leads a coordinator or is to. Errors: *pulsaradmin.LedElsewhereError, txn.ErrNotReady.
func (s *Server) ledHere(ctx context.Context, tc uint64) error {
	if s.peers == nil || tc >= s.coordinatorCount() || s.group.Expected(tc) {
		return nil
	}
	leader, err := s.leaderOf(ctx, tc)
	if err != nil || leader.ID == s.cluster.Self().ID {
		return err
	}
	return &pulsaradmin.LedElsewhereError{TC: tc, Leader: leader}
}
