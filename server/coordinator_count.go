package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/coordinator"
	"github.com/pulsar-tc/pulsar-tc/etcdstore"
	"github.com/pulsar-tc/pulsar-tc/outage"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// countInterval is how often the number of coordinators is read although no watch says that it has changed.
const countInterval = 30 * time.Second

// coordinatorCount is the number of coordinators, or 0 where transactions are off.
func (s *Server) coordinatorCount() uint64 { return s.count.Load() }

// growTo makes this process know so many coordinators.
func (s *Server) growTo(count uint64) {
	s.growing.Lock()
	defer s.growing.Unlock()
	known := s.coordinatorCount()
	if count <= known {
		return
	}
	s.metrics.grow(count)
	s.terminated.Grow(count)
	s.cluster.SetCoordinators(count)
	s.count.Store(count)
	var more []*coordinator.Coordinator
	for tc := known; tc < count; tc++ {
		more = append(more, s.newCoordinator(tc))
	}
	s.group.Grow(more)
	s.group.SetSpace(levelOf(s.store.Space()))
	s.options.Log.Info().Uint64("before", known).Uint64("coordinators", count).Msg("the number of coordinators is known")
}

// followCount keeps the number of coordinators that this process knows true until run is done.
func (s *Server) followCount(run context.Context) {
	var out outage.Outage
	for run.Err() == nil {
		err := s.readCount(run, out.Over)
		if err == nil {
			continue
		}
		if begins := out.Failed(); begins && run.Err() == nil {
			s.options.Log.Warn().Err(err).Msg("the number of coordinators is not followed, trying again until it is")
		}
		out.Pause(run)
	}
}

// readCount reads the number, calls read when that has succeeded, and returns when it may have changed.
func (s *Server) readCount(run context.Context, read func()) error {
	ctx, cancel := context.WithTimeout(clientv3.WithRequireLeader(run), countInterval)
	defer cancel()
	key := s.options.space().Coordinators()
	changes := s.store.Client().Watch(ctx, key, clientv3.WithCreatedNotify())
	if created := <-changes; created.Err() != nil {
		return fmt.Errorf("watch the number of coordinators: %w", created.Err())
	}
	count, err := etcdstore.CountCoordinators(ctx, s.kv, s.options.space())
	var missing *txn.CorruptError
	if err == nil || errors.As(err, &missing) {
		s.missing.Store(missing)
	}
	if err != nil {
		return err
	}
	read()
	s.growTo(count)
	changed := <-changes
	if err := changed.Err(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("watch the number of coordinators: %w", err)
	}
	return nil
}

// Grow makes the store have more coordinators. It returns when this process knows them; others follow.
func (a administered) Grow(ctx context.Context, count uint64) error {
	err := etcdstore.GrowCoordinators(ctx, a.server.kv, a.server.options.space(), count)
	var enough *etcdstore.NotMoreError
	if errors.As(err, &enough) {
		a.server.growTo(enough.Stored)
		return fmt.Errorf("%w: %w", txn.ErrNotAllowed, err)
	}
	if err != nil {
		return fmt.Errorf("%w: the number of coordinators may have grown or not: %w", txn.ErrNotReady, err)
	}
	a.server.growTo(count)
	return nil
}
