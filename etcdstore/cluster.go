package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
)

const (
	// pingInterval and pingTimeout find connections that hang. gRPC pings no more often than every 10 s.
	pingInterval = 10 * time.Second
	pingTimeout  = 3 * time.Second
	// grpcOverhead is what a message may have beside the request. Source: server/etcdserver/api/v3rpc, grpcOverheadBytes.
	grpcOverhead = 512 << 10
)

// cluster is the care of a store in a cluster that others run.
type cluster struct {
	log       zerolog.Logger
	client    *clientv3.Client
	identity  identity
	tokens    *tokens
	failure   *failure
	endpoints *endpoints
	room      *clusterRoom
	history   *history // nil, as repairs: that is the business of others
	repairs   *repairs
	witness   witness
	absent    atomic.Pointer[string] // why nobody stored anything when that was last looked at; nil: somebody did

	cancel context.CancelFunc
	tasks  sync.WaitGroup
}

// Connect uses an etcd cluster, which any number of processes may share. ctx bounds the start only. Members that do not answer
// are used as soon as they do; one has to at the start.
//
// Errors: no member answers, and why; wrong credentials; *MixedClustersError; *LimitError; *ForeignKeysError; a layout newer
// than this build; *txn.CorruptError if the layout's own keys cannot be read.
func Connect(ctx context.Context, options ClusterOptions, log zerolog.Logger) (*Store, error) {
	options = options.withDefaults()
	c := &cluster{log: log, failure: newFailure(), tokens: newTokens(), room: newClusterRoom(options.MaxRequestBytes, log)}
	if err := c.connect(ctx, options); err != nil {
		return nil, err
	}
	care, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	coordinators, err := c.makeReady(ctx, care, options)
	if err != nil {
		return nil, errors.Join(err, c.end())
	}
	return &Store{
		client: c.client, coordinators: coordinators, failure: c.failure, care: c, limits: limits{options.MaxTxnOps, options.MaxRequestBytes},
	}, nil
}

func (c *cluster) connect(ctx context.Context, options ClusterOptions) error {
	config, err := options.tlsConfig()
	if err != nil {
		return err
	}
	c.endpoints = newEndpoints(options.Endpoints, config, c.log)
	c.client, err = clientv3.New(c.config(options, c.endpoints.connections))
	switch {
	case err == nil:
		c.endpoints.client = c.client
		if options.User != "" {
			c.client.Watcher = &ownStreams{Watcher: c.client.Watcher}
		}
		return nil
	case errors.Is(err, context.DeadlineExceeded):
		return c.endpoints.silence(ctx, err)
	}
	return fmt.Errorf("connect to etcd: %w", explain(err))
}

func (c *cluster) config(options ClusterOptions, connections *connections) clientv3.Config {
	return clientv3.Config{
		Endpoints:            options.Endpoints,
		TLS:                  c.endpoints.tls,
		Username:             options.User,
		Password:             options.Password,
		DialTimeout:          options.Patience,
		DialKeepAliveTime:    pingInterval,
		DialKeepAliveTimeout: pingTimeout,
		MaxCallSendMsgSize:   options.MaxRequestBytes + grpcOverhead,
		Logger:               zap.NewNop(), // whoever asked tells of the error
		DialOptions: []grpc.DialOption{
			grpc.WithChainUnaryInterceptor(c.inspect), grpc.WithChainStreamInterceptor(c.endpoints.underway.stream),
			grpc.WithConnectParams(reconnection), grpc.WithContextDialer(connections.dial),
		},
	}
}

// makeReady meets the members and the layout, and starts what lasts until care is done.
func (c *cluster) makeReady(ctx, care context.Context, options ClusterOptions) (coordinators uint64, err error) {
	answers, err := c.endpoints.meet(ctx, options.Patience)
	if err != nil {
		return 0, err
	}
	c.identity.cluster.Store(c.endpoints.cluster)
	c.room.see(answers, c.room.refusals.Load())
	if options.Manage {
		c.repairs = &repairs{client: c.client, defragment: c.defragmenter(options), revision: c.room.revision.Load, log: c.log}
	}
	if err := c.awaitRoom(ctx, care, answers); err != nil {
		return 0, err
	}
	if err := tryLimits(ctx, c.client, options); err != nil {
		return 0, err
	}
	coordinators, err = EnsureLayout(ctx, c.client, options.Space, options.InitialCoordinators)
	if err != nil {
		return 0, explain(err)
	}
	c.witness = witness{kv: c.client, key: options.Space.Schema()}
	if options.Manage {
		c.history = newHistory(c.client, c.room.revision.Load, c.room.live.Load, mostLeastHistory, c.log)
		c.tasks.Go(func() { c.history.run(care) })
	}
	c.tasks.Go(func() { c.run(care) })
	return coordinators, nil
}

// awaitRoom waits while the members store nothing for lack of space: an end of this process would make no room.
func (c *cluster) awaitRoom(ctx, care context.Context, members []answer) error {
	if !alarmed(members) {
		return nil
	}
	c.log.Error().Msg("etcd stores nothing for lack of space (alarm NOSPACE): waiting until it is compacted, defragmented and disarmed")
	ticker := time.NewTicker(lookInterval)
	defer ticker.Stop()
	for len(members) == 0 || alarmed(members) { // a look that nobody answers tells of no room
		if c.repairs != nil {
			c.repairs.see(care, time.Now(), members)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait until etcd stores again: %w", context.Cause(ctx))
		case <-ticker.C:
		}
		members = c.look(ctx)
	}
	return nil
}

// look asks all members and takes over what they say. It returns the answers of those that belong to the cluster.
func (c *cluster) look(ctx context.Context) []answer {
	refusals := c.room.refusals.Load()
	all := c.endpoints.ask(ctx, lookTimeout)
	if ctx.Err() != nil {
		return nil
	}
	members := c.endpoints.judge(ctx, all)
	c.absent.Store(absence(all, members))
	c.room.see(members, refusals)
	return members
}

// run looks at the members until ctx is done.
func (c *cluster) run(ctx context.Context) {
	ticker := time.NewTicker(lookInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		members := c.look(ctx)
		if ctx.Err() != nil {
			return
		}
		if err := c.tend(ctx, members); err != nil && ctx.Err() == nil {
			c.log.Warn().Err(err).Msg("etcd not looked after")
		}
	}
}

// tend looks after a cluster that is ours to manage, and sees whether somebody compacts one that is not.
func (c *cluster) tend(ctx context.Context, members []answer) error {
	if c.repairs != nil {
		c.repairs.see(ctx, time.Now(), members)
		return nil
	}
	kept, err := c.witness.keeps(ctx, time.Now(), c.room.revision.Load())
	if kept {
		c.log.Warn().Dur("age_ms", keptTooLong).Msg("etcd keeps old history: nobody seems to compact it, and it grows until it stores nothing; " +
			"set its --auto-compaction-retention, or etcdManageStore=true if nobody else uses it")
	}
	return err
}

func (c *cluster) wrote(n int) {
	if c.history != nil {
		c.history.wrote(n)
	}
}

func (c *cluster) pin(rev int64) (release func()) {
	if c.history == nil {
		return func() {}
	}
	return c.history.pin(rev)
}

// absence is why nobody stores anything, by what all endpoints said, and those that are members of the cluster; nil: somebody does.
func absence(all, members []answer) *string {
	for _, a := range members {
		if a.status.Leader != 0 {
			return nil
		}
	}
	why := "etcd has no leader: " + noMajority
	if len(members) == 0 {
		why = "the endpoints are those of another etcd cluster"
		if i := slices.IndexFunc(all, func(a answer) bool { return a.err != nil }); i >= 0 {
			why = fmt.Sprintf("%s: %v", all[i].endpoint, explain(all[i].err))
		}
	}
	return &why
}

func (c *cluster) away() string {
	if why := c.absent.Load(); why != nil {
		return *why
	}
	return ""
}

func (c *cluster) space() Space { return Space(c.room.state.Load()) }

func (c *cluster) spaceChanged() <-chan struct{} { return c.room.changed }

func (c *cluster) close() error { return errors.Join(c.end(), c.failure.get()) }

// end stops the care and closes the client.
func (c *cluster) end() error {
	c.cancel()
	c.tasks.Wait()
	c.endpoints.tasks.Wait()
	if c.repairs != nil {
		c.repairs.tasks.Wait()
	}
	err := c.client.Close()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

const noMajority = "does a majority of its members run?"

// explain adds to an error of etcd what an operator can do about it.
func explain(err error) error {
	for _, hint := range []struct {
		of   error
		text string
	}{
		{rpctypes.ErrUserEmpty, "etcd has authentication on: etcdUser and etcdPassword are not set"},
		{rpctypes.ErrAuthFailed, "etcd does not know etcdUser, or etcdPassword is not its password"},
		{rpctypes.ErrPermissionDenied, "etcdUser needs a role that may read and write the prefix of all keys here"},
		{context.DeadlineExceeded, noMajority},
		{rpctypes.ErrTimeout, noMajority},
		{rpctypes.ErrNoLeader, noMajority},
	} {
		if errors.Is(err, hint.of) {
			return fmt.Errorf("%w (%s)", err, hint.text)
		}
	}
	return err
}
