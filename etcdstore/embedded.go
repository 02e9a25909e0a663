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

// embedded is the care of a server in this process.
type embedded struct {
	log     zerolog.Logger
	lock    *Lock // nil: it is the caller's
	server  *embed.Etcd
	client  *clientv3.Client
	failure *failure
	schema  string // key
	history *history
	raft    *raftLog
	guard   *spaceGuard

	cancel context.CancelFunc
	tasks  sync.WaitGroup
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
	if options.Lock != nil {
		return openLocked(ctx, options, nil, log)
	}
	lock, err := LockDir(options.Dir)
	if err != nil {
		return nil, err
	}
	store, err := openLocked(ctx, options, lock, log)
	if err != nil {
		return nil, errors.Join(err, lock.Release())
	}
	return store, nil
}

func openLocked(ctx context.Context, options Options, lock *Lock, log zerolog.Logger) (*Store, error) {
	dir := directory(options.Dir)
	if err := dir.prepareEtcd(); err != nil {
		return nil, err
	}
	if err := dir.checkBackend(); err != nil {
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
	client := v3client.New(server.Server)
	client.Watcher = &ownStreams{Watcher: client.Watcher}
	e := &embedded{log: log, lock: lock, server: server, client: client, failure: failed}
	coordinators, err := e.makeReady(ctx, options, disk)
	if err != nil {
		return nil, errors.Join(err, e.stopServer())
	}
	return &Store{
		client: e.client, coordinators: coordinators, failure: failed, care: e,
		limits: limits{options.MaxTxnOps, options.MaxRequestBytes()},
	}, nil
}

// makeReady puts a served store into a state in which it can be used, and starts its care.
func (e *embedded) makeReady(ctx context.Context, options Options, disk *disk) (coordinators uint64, err error) {
	if err := e.clearNoSpace(ctx); err != nil {
		return 0, err
	}
	coordinators, err = EnsureLayout(ctx, e.client, options.Space, options.InitialCoordinators)
	if err != nil {
		return 0, err
	}
	e.schema = options.Space.Schema()
	backend := e.server.Server.Backend()
	e.guard = newSpaceGuard(options, backend, disk, e.log)
	e.history = newHistory(e.client, e.server.Server.KV().Rev, backend.SizeInUse, leastHistory(options.QuotaBytes), e.log)
	e.raft = newRaftLog(e.client, e.schema, e.log)
	if err := e.guard.check(); err != nil {
		return 0, err
	}

	care, cancel := context.WithCancel(context.Background())
	e.cancel = cancel
	e.tasks.Go(func() { e.history.run(care) })
	e.tasks.Go(func() { e.raft.run(care) })
	e.tasks.Go(func() { e.guard.run(care, e.history.hurry, e.rewriteSchema) })
	e.tasks.Go(func() { e.watchServer(care) })
	return coordinators, nil
}

// rewriteSchema writes a key without changing it.
func (e *embedded) rewriteSchema(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	_, err := e.client.Put(ctx, e.schema, "", clientv3.WithIgnoreValue())
	return err
}

// watchServer turns an unexpected stop of the server into a failure.
func (e *embedded) watchServer(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-e.server.Server.StopNotify():
		e.failure.set(errors.New("etcd: the server stopped"))
	}
}

func (e *embedded) wrote(n int) {
	e.history.wrote(n)
	e.raft.wrote(n)
	e.guard.wrote(n)
}

func (e *embedded) pin(rev int64) (release func()) { return e.history.pin(rev) }

func (e *embedded) away() string { return "" }

func (e *embedded) space() Space { return e.guard.state() }

// spaceChanged delivers several signals a second while something is refused.
func (e *embedded) spaceChanged() <-chan struct{} { return e.guard.changed }

func (e *embedded) close() error {
	e.cancel()
	e.tasks.Wait()
	return errors.Join(e.stopServer(), e.releaseLock())
}

func (e *embedded) releaseLock() error {
	if e.lock == nil || e.failure.get() != nil {
		return nil
	}
	return e.lock.Release()
}

// stopServer closes client and server.
func (e *embedded) stopServer() error {
	closeErr := e.client.Close()
	if errors.Is(closeErr, context.Canceled) {
		closeErr = nil
	}
	if err := e.failure.get(); err != nil {
		return errors.Join(closeErr, err)
	}
	stopped := make(chan struct{})
	go func() {
		e.server.Close()
		close(stopped)
	}()
	select {
	case <-stopped:
		return closeErr
	case <-e.failure.happened:
		return errors.Join(closeErr, e.failure.get())
	}
}
