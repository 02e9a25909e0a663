package etcdleader

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/keyspace"
)

const (
	defaultLease = 6 * time.Second
	// firstRetry doubles up to lastRetry while the store does not answer.
	firstRetry = 50 * time.Millisecond
	lastRetry  = time.Second
	// winPatience is for how long Win repeats what fails each time, before it says so.
	winPatience = 12 * time.Second
	// requestTimeout bounds each request, so that one that is lost does not hold up a later one.
	requestTimeout = 5 * time.Second
	// watchLimit is how long one watch is trusted to tell of what happens.
	watchLimit = 30 * time.Second
)

// Client is what a leader needs of an etcd client.
type Client interface {
	Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error)
	Txn(ctx context.Context) clientv3.Txn
	Grant(ctx context.Context, ttl int64) (*clientv3.LeaseGrantResponse, error)
	KeepAlive(ctx context.Context, id clientv3.LeaseID) (<-chan *clientv3.LeaseKeepAliveResponse, error)
	Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan
}

// Placement says which process is to lead a coordinator. It is a hint: etcd decides who does.
type Placement interface {
	// Place is the id of the instance; empty: there is nobody.
	Place(tc uint64) string
	// Changed is closed when places may be others.
	Changed() <-chan struct{}
	// Leaving reports whether this process is to lead nothing any more.
	Leaving() bool
}

// Options are the zero value or:
type Options struct {
	// Lease is for how long a dead leader keeps its coordinators, in whole seconds. Default 6 s.
	Lease time.Duration
	// Exclusive says that no other process can be alive on this store, so that any leader key found may be deleted at once.
	Exclusive bool
	// Instance is the id of this process, without blanks. Default: random.
	Instance string
	// Placement makes processes lead what is theirs to lead. Nil: whoever comes first leads.
	Placement Placement
}

// Leader is one contender. It leads each coordinator at most once: to win again gives its own term up first.
type Leader struct {
	client   Client
	space    keyspace.Space
	options  Options
	identity string
	log      zerolog.Logger

	ctx    context.Context
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	mu    sync.Mutex
	terms map[uint64]*Term // guarded by mu: the newest term of each coordinator
	kept  map[uint64]*kept // guarded by mu: the coordinators that other processes lead
}

// New returns a contender. Close it before the client.
func New(client Client, space keyspace.Space, options Options, log zerolog.Logger) (*Leader, error) {
	if options.Lease == 0 {
		options.Lease = defaultLease
	}
	if options.Lease < time.Second {
		return nil, fmt.Errorf("lease of %v: want a second or more", options.Lease)
	}
	if options.Instance == "" {
		options.Instance = newInstance()
	}
	if strings.Contains(options.Instance, " ") {
		return nil, fmt.Errorf("instance %q: want no blanks", options.Instance)
	}
	identity, err := newIdentity(options.Instance)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &Leader{
		client: client, space: space, options: options, identity: identity, log: log,
		ctx: ctx, cancel: cancel, terms: make(map[uint64]*Term), kept: make(map[uint64]*kept),
	}, nil
}

func newInstance() string {
	var random [16]byte
	rand.Read(random[:])
	return hex.EncodeToString(random[:])
}

func newIdentity(instance string) (string, error) {
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("name of this host: %w", err)
	}
	return fmt.Sprintf("%s %s %d", instance, host, os.Getpid()), nil
}

// Close stops renewing the leases of all terms. Their keys go with the leases, unless they were resigned. No Win may be under
// way.
func (l *Leader) Close() {
	l.cancel()
	l.tasks.Wait()
}

// Win waits until this process leads tc in a new term; see coordinator.Leader. It repeats what etcd does not answer, for a
// while. While
// another process is the place of tc, it leaves a free seat alone for as long as a dead leader would keep it, and a second.
func (l *Leader) Win(ctx context.Context, tc uint64) (*Term, error) {
	l.abandon(tc)
	defer l.ledElsewhere(tc, 0)
	pause := firstRetry
	var failing time.Time // since when
	var vacancy vacancy
	for {
		term, err := l.try(ctx, tc, &vacancy)
		if term != nil {
			return term, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if refusedForGood(err) {
			return nil, fmt.Errorf("win coordinator %d: %w", tc, err)
		}
		if err == nil {
			pause, failing = firstRetry, time.Time{}
			continue
		}
		if failing.IsZero() {
			failing = time.Now()
			l.log.Warn().Uint64("tc", tc).Err(err).Msg("leadership not decided, trying again")
		}
		if time.Since(failing) > winPatience {
			return nil, fmt.Errorf("win coordinator %d: %w", tc, err)
		}
		if err := sleep(ctx, pause); err != nil {
			return nil, err
		}
		pause = min(2*pause, lastRetry)
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// refusedForGood tells errors that no repetition heals.
func refusedForGood(err error) bool {
	for _, refusal := range []error{
		rpctypes.ErrPermissionDenied, rpctypes.ErrAuthFailed, rpctypes.ErrUserEmpty, rpctypes.ErrAuthNotEnabled,
	} {
		if errors.Is(err, refusal) {
			return true
		}
	}
	return false
}

// abandon stops renewing the lease of this process's own term, if it has one.
func (l *Leader) abandon(tc uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if term := l.terms[tc]; term != nil {
		term.stop()
		delete(l.terms, tc)
	}
}

// try clears the seat if it may, or waits until it is free, and then takes it. Neither a term nor an error: look again.
func (l *Leader) try(ctx context.Context, tc uint64, vacancy *vacancy) (*Term, error) {
	key := l.space.Leader(tc)
	found, err := l.look(ctx, key)
	if err != nil {
		return nil, err
	}
	if len(found.Kvs) == 0 {
		l.ledElsewhere(tc, 0)
		return l.claim(ctx, tc, vacancy)
	}
	vacancy.ended()
	holder := found.Kvs[0]
	if holder.Lease == 0 {
		l.log.Warn().Uint64("tc", tc).Int64("term", holder.CreateRevision).Bytes("found", holder.Value).
			Msg("a leader key that hangs on no lease, it is deleted")
	} else if !l.options.Exclusive && string(holder.Value) != l.identity {
		_, name, _ := strings.Cut(string(holder.Value), " ")
		l.log.Debug().Uint64("tc", tc).Int64("term", holder.CreateRevision).Str("leader", name).Msg("led elsewhere")
		l.ledElsewhere(tc, holder.CreateRevision)
		deleted, err := l.await(ctx, key, found.Header.Revision+1, clientv3.WithFilterPut())
		if err != nil || !deleted {
			return nil, err
		}
		l.ledElsewhere(tc, 0)
		return l.claim(ctx, tc, vacancy) // the creation tells whether the seat is still free
	}
	if err := remove(ctx, l.client, key, holder.CreateRevision); err != nil {
		return nil, err
	}
	return l.claim(ctx, tc, vacancy)
}

func (l *Leader) look(ctx context.Context, key string) (*clientv3.GetResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	found, err := l.client.Get(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("read leader key: %w", err)
	}
	return found, nil
}

// remove deletes the leader key of one term and no other. Without an error the key of that term is gone.
func remove(ctx context.Context, client Client, key string, term int64) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, err := client.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(key), "=", term)).
		Then(clientv3.OpDelete(key)).
		Else(clientv3.OpGet(key, clientv3.WithKeysOnly())).
		Commit()
	if err != nil {
		return fmt.Errorf("delete leader key of term %d: %w", term, err)
	}
	return nil
}

// await returns when the key has changed since from, or when it is not known whether it has, so that it must be looked at again:
// after watchLimit at the latest.
func (l *Leader) await(ctx context.Context, key string, from int64, filter ...clientv3.OpOption) (changed bool, err error) {
	watched, cancel := context.WithTimeout(clientv3.WithRequireLeader(ctx), watchLimit)
	defer cancel()
	for response := range l.client.Watch(watched, key, append(filter, clientv3.WithRev(from))...) {
		if err := response.Err(); err != nil {
			return false, fmt.Errorf("watch leader key: %w", err)
		}
		if len(response.Events) > 0 {
			return true, nil
		}
	}
	if ctx.Err() == nil && watched.Err() != nil {
		return false, nil
	}
	return false, errors.New("watch leader key: ended")
}

// take creates the leader key under a new lease if there is none. place is the instance that is to lead.
func (l *Leader) take(ctx context.Context, tc uint64, place string) (*Term, error) {
	key := l.space.Leader(tc)
	request, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	lease, err := l.client.Grant(request, int64(l.options.Lease/time.Second))
	if err != nil {
		return nil, fmt.Errorf("grant lease: %w", err)
	}
	created, err := l.client.Txn(request).
		If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).
		Then(clientv3.OpPut(key, l.identity, clientv3.WithLease(lease.ID))).
		Commit()
	if err != nil {
		return nil, fmt.Errorf("create leader key: %w", err)
	}
	if !created.Succeeded {
		return nil, nil
	}
	return l.begin(tc, lease.ID, created.Header.Revision, place)
}

// begin starts renewing the lease of a term that was won.
func (l *Leader) begin(tc uint64, lease clientv3.LeaseID, number int64, place string) (*Term, error) {
	ctx, stop := context.WithCancel(l.ctx)
	renewed, err := l.client.KeepAlive(ctx, lease)
	if err != nil {
		stop()
		return nil, fmt.Errorf("renew lease of term %d: %w", number, err)
	}
	term := &Term{
		client: l.client, key: l.space.Leader(tc), number: number, lost: make(chan struct{}), elsewhere: make(chan struct{}), stop: stop,
	}
	l.mu.Lock()
	l.terms[tc] = term
	l.mu.Unlock()
	l.tasks.Go(func() { term.watchLease(renewed) })
	l.tasks.Go(func() { l.watchKey(ctx, tc, term) })
	if l.options.Placement != nil {
		l.tasks.Go(func() { l.watchPlace(ctx, tc, term, place) })
	}
	return term, nil
}

// watchKey ends a term whose leader key is not as the term has created it: gone, or written by somebody else, who may have taken
// it off its lease.
func (l *Leader) watchKey(ctx context.Context, tc uint64, term *Term) {
	pause := firstRetry
	for from := term.number + 1; ; {
		_, err := l.await(ctx, term.key, from)
		found, unread := l.look(ctx, term.key)
		if ctx.Err() != nil {
			return
		}
		if unread == nil && (len(found.Kvs) == 0 || found.Kvs[0].ModRevision != term.number) {
			var value []byte
			if len(found.Kvs) > 0 {
				value = found.Kvs[0].Value
			}
			l.log.Warn().Uint64("tc", tc).Int64("term", term.number).Bytes("found", value).
				Msg("the leader key is gone or was overwritten, the term ends")
			term.stop()
			return
		}
		if unread == nil {
			from = found.Header.Revision + 1
		}
		if err == nil && unread == nil {
			pause = firstRetry
			continue
		}
		if sleep(ctx, pause) != nil {
			return
		}
		pause = min(2*pause, lastRetry)
	}
}
