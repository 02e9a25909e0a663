package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/rs/zerolog"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
)

// Store is a running embedded etcd server.
type Store struct {
	log          zerolog.Logger
	lock         *dirLock
	server       *embed.Etcd
	client       *clientv3.Client
	failure      *failure
	coordinators uint64
	schema       string // key
	history      *history
	raft         *raftLog
	space        *spaceGuard

	cancel    context.CancelFunc
	tasks     sync.WaitGroup
	closeOnce sync.Once
	closeErr  error
}

// Open starts the server on a data directory and returns when it serves. ctx bounds the start only.
//
// Errors: *InUseError if another process has the directory; a directory that is missing, not writable or full; a layout
// newer than this build; *txn.CorruptError if the layout's own keys cannot be read.
func Open(ctx context.Context, options Options, log zerolog.Logger) (*Store, error) {
	options, err := options.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("store options: %w", err)
	}
	dir := directory(options.Dir)
	if err := dir.prepare(); err != nil {
		return nil, err
	}
	lock, err := lockDir(options.Dir, dir.lock())
	if err != nil {
		return nil, err
	}
	store, err := openLocked(ctx, dir, options, lock, log)
	if err != nil {
		return nil, errors.Join(err, lock.release())
	}
	return store, nil
}

func openLocked(ctx context.Context, dir directory, options Options, lock *dirLock, log zerolog.Logger) (*Store, error) {
	if err := dir.prepareEtcd(); err != nil {
		return nil, err
	}
	disk := newDisk(dir, options.QuotaBytes, freeBytes)
	if err := disk.enoughToStart(); err != nil {
		return nil, err
	}
	failed := newFailure()
	server, err := startMember(ctx, memberConfig(dir.etcd(), options, log, failed), failed)
	if err != nil {
		return nil, err
	}
	s := &Store{log: log, lock: lock, server: server, client: v3client.New(server.Server), failure: failed}
	if err := s.makeReady(ctx, options, disk); err != nil {
		return nil, errors.Join(err, s.stopServer())
	}
	return s, nil
}

// makeReady puts a served store into a state in which it can be used, and starts its care.
func (s *Store) makeReady(ctx context.Context, options Options, disk *disk) error {
	if err := s.clearNoSpace(ctx); err != nil {
		return err
	}
	coordinators, err := EnsureLayout(ctx, s.client, options.Space, options.InitialCoordinators)
	if err != nil {
		return err
	}
	s.coordinators = coordinators
	s.schema = options.Space.Schema()
	backend := s.server.Server.Backend()
	s.space = newSpaceGuard(options, backend, disk, s.log)
	s.history = newHistory(s.client, s.server.Server.KV().Rev, backend.SizeInUse, leastHistory(options.QuotaBytes), s.log)
	s.raft = newRaftLog(s.client, s.schema, s.log)
	if err := s.space.check(); err != nil {
		return err
	}

	care, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	s.tasks.Go(func() { s.history.run(care) })
	s.tasks.Go(func() { s.raft.run(care) })
	s.tasks.Go(func() { s.space.run(care, s.history.hurry, s.rewriteSchema) })
	s.tasks.Go(func() { s.watchServer(care) })
	return nil
}

// rewriteSchema writes a key without changing it.
func (s *Store) rewriteSchema(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	_, err := s.client.Put(ctx, s.schema, "", clientv3.WithIgnoreValue())
	return err
}

// watchServer turns an unexpected stop of the server into a failure.
func (s *Store) watchServer(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-s.server.Server.StopNotify():
		s.failure.set(errors.New("etcd: the server stopped"))
	}
}

// Client is the in-process client. It is closed by Close.
func (s *Store) Client() *clientv3.Client { return s.client }

// Coordinators is the number of transaction coordinators, as stored when the store was opened.
func (s *Store) Coordinators() uint64 { return s.coordinators }

// Wrote counts one request that wrote n bytes of keys and values, so that history and raft's log are cut, and Space
// changes, in time. Whoever writes calls it for each request. It does not block.
func (s *Store) Wrote(n int) {
	s.history.wrote(n)
	s.raft.wrote(n)
	s.space.wrote(n)
}

// Pin keeps revision rev readable until release is called. A revision that is compacted already stays so.
func (s *Store) Pin(rev int64) (release func()) { return s.history.pin(rev) }

// Space says what the store has room for. It does not block. What Wrote was told counts at once; room that is new does
// within a second.
func (s *Store) Space() Space { return s.space.state() }

// SpaceChanged delivers a signal when Space may have changed: several times a second, and at once when more is refused than
// before. It has one receiver.
func (s *Store) SpaceChanged() <-chan struct{} { return s.space.changed }

// Failed delivers the reason, once, if the server cannot go on. Nothing is acknowledged then; the process must end.
func (s *Store) Failed() <-chan error { return s.failure.reason }

// Close stops the server and gives up the data directory. Requests under way end with an error. After a failure the server
// cannot be stopped: Close returns the reason, and the directory stays locked until the process ends.
func (s *Store) Close() error {
	s.closeOnce.Do(func() {
		s.cancel()
		s.tasks.Wait()
		s.closeErr = errors.Join(s.stopServer(), s.releaseLock())
	})
	return s.closeErr
}

func (s *Store) releaseLock() error {
	if s.failure.get() != nil {
		return nil
	}
	return s.lock.release()
}

// stopServer closes client and server.
func (s *Store) stopServer() error {
	closeErr := s.client.Close()
	if errors.Is(closeErr, context.Canceled) {
		closeErr = nil
	}
	if err := s.failure.get(); err != nil {
		return errors.Join(closeErr, err)
	}
	stopped := make(chan struct{})
	go func() {
		s.server.Close()
		close(stopped)
	}()
	select {
	case <-stopped:
		return closeErr
	case <-s.failure.happened:
		return errors.Join(closeErr, s.failure.get())
	}
}
