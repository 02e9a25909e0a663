package server

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/pulsar-tc/pulsar-tc/conn"
)

// stopGrace is how long one part of the stop waits for others: for participants, for clients that read their answers.
const stopGrace = 2 * time.Second

// handOverGrace is how long clients of one of several instances are waited for: until their connections have ended because another
// one serves them.
const handOverGrace = conn.IdleLimit + 2*time.Second

// errDeserted: nobody is left who could be given anything.
var errDeserted = errors.New("no other instance is left")

// Close stops the server and returns when nothing runs any more; ctx cuts it short. In this order, the reverse of the start:
//
//  0. What this process leads and owns goes to other instances, if there are any.
//  1. No command, connection or HTTP request is taken any more, and what can be answered soon is.
//  2. The coordinators end their terms: what waits for them, such as the end of a transaction whose participant is stuck, is
//     answered TransactionCoordinatorNotFound, and the next coordinator goes on with it.
//  3. The connections send what they have and end, then the topics and the store.
func (s *Server) Close(ctx context.Context) error {
	var errs []error
	for i := len(s.closers) - 1; i >= 0; i-- {
		errs = append(errs, s.closers[i](ctx))
	}
	s.closers = nil
	s.stop()
	s.tasks.Wait()
	return errors.Join(errs...)
}

// handOver gives everything that is served here to other instances, as long as there are any. Requests are served meanwhile,
// here or there.
func (s *Server) handOver(ctx context.Context) error {
	if len(s.cluster.Instances()) < 2 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, handOverGrace)
	defer cancel()
	s.options.Log.Info().Msg("handing over to other instances")
	ctx, deserted := context.WithCancelCause(ctx)
	defer deserted(nil)
	s.tasks.Go(func() {
		s.cluster.AwaitDesertion(ctx)
		deserted(errDeserted)
	})
	err := s.cluster.Leave(ctx)
	var parts sync.WaitGroup
	parts.Go(func() { s.topics.HandOver(ctx) })
	s.group.HandOver(ctx)
	parts.Wait()
	if errors.Is(err, errDeserted) {
		return nil
	}
	return err
}

// drain is the first part of Close: both ports at once.
func (s *Server) drain(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopGrace)
	defer cancel()
	var parts sync.WaitGroup
	var web error
	parts.Go(func() { web = s.closeWeb(ctx) })
	binary := s.connections.Drain(ctx)
	parts.Wait()
	return errors.Join(binary, web)
}

// closeWeb lets answers be read until ctx is done.
func (s *Server) closeWeb(ctx context.Context) error {
	if s.http == nil {
		return nil
	}
	err := s.http.Shutdown(ctx)
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	s.options.Log.Warn().Err(err).Msg("HTTP clients that do not read are cut off")
	return s.http.Close()
}

// closeConnections ends what drain has left.
func (s *Server) closeConnections(ctx context.Context) error {
	if s.connections == nil {
		return nil
	}
	grace, cancel := context.WithTimeout(ctx, stopGrace)
	defer cancel()
	err := s.connections.Close(grace)
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		s.options.Log.Warn().Err(err).Msg("connections that wait for a topic or do not read are cut off")
		return nil
	}
	return err
}

// closeTopics lets them finish what they write, and refuses what takes longer.
func (s *Server) closeTopics(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopGrace)
	defer cancel()
	s.topics.Close(ctx)
	return nil
}
