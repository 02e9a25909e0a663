package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/keyspace"
)

const (
	// defaultLease is coordinatorLeaseSeconds.
	defaultLease = 6 * time.Second
	// refreshInterval is the time between two writes of the own record, and the longest between two reads of all.
	refreshInterval = 30 * time.Second
	// firstRetry doubles up to lastRetry while etcd does not answer.
	firstRetry = 50 * time.Millisecond
	lastRetry  = time.Second
	// requestTimeout bounds each request.
	requestTimeout = 5 * time.Second
)

// Client is what a cluster needs of an etcd client.
type Client interface {
	Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error)
	Txn(ctx context.Context) clientv3.Txn
	Grant(ctx context.Context, ttl int64) (*clientv3.LeaseGrantResponse, error)
	Revoke(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseRevokeResponse, error)
	KeepAlive(ctx context.Context, id clientv3.LeaseID) (<-chan *clientv3.LeaseKeepAliveResponse, error)
	Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan
}

// Options say who joins what.
type Options struct {
	Client Client
	Keys   keyspace.Space
	// Self is how this process is reached. ID, Started and Clock are filled in where they are zero.
	Self Instance
	// Lease is how long others wait for a process that is gone, in whole seconds. Default 6 s.
	Lease time.Duration
	Log   zerolog.Logger
	// Now is the wall clock; nil means time.Now.
	Now func() time.Time
}

// Session is the time for which one lease of this process lives.
type Session struct {
	// Lease is what the keys of this process hang on; 0 where no other process can exist (Alone).
	Lease clientv3.LeaseID
	// Lost is closed when the lease is known to be gone: every key that hung on it is, too. Never closed where Lease is 0.
	Lost <-chan struct{}
}

// Cluster is this process among all. It is safe for concurrent use.
type Cluster struct {
	options Options
	stop    context.CancelFunc
	tasks   sync.WaitGroup
	leave   chan struct{} // closed by Leave
	left    chan struct{} // closed when the own record is gone
	wrong   chan struct{} // holds a signal if the own record is not as it should be

	mu           sync.Mutex // guards the following
	self         Instance
	leaving      bool
	session      session
	coordinators uint64
	view         view
	following    bool                     // everything was read before
	clocks       map[string]int64         // of the records that were read last, by instance
	skews        map[string]time.Duration // by instance
	twins        map[string]twin          // by instance
}

// Alone is a cluster of one process that shares its store with nobody.
func Alone(self Instance) *Cluster {
	if self.ID == "" {
		self.ID = NewID()
	}
	return &Cluster{self: self, view: newView([]Instance{self})}
}

// Join begins a session, makes this process known and returns when it knows the others. ctx bounds the call. Close must be
// called.
func Join(ctx context.Context, options Options) (*Cluster, error) {
	if options.Lease == 0 {
		options.Lease = defaultLease
	}
	if options.Lease < time.Second || options.Lease%time.Second != 0 {
		return nil, fmt.Errorf("lease of %v: want whole seconds, one or more", options.Lease)
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	run, stop := context.WithCancel(context.Background())
	c := &Cluster{
		options: options, stop: stop, self: options.Self,
		leave: make(chan struct{}), left: make(chan struct{}), wrong: make(chan struct{}, 1), clocks: map[string]int64{},
	}
	if c.self.ID == "" {
		c.self.ID = NewID()
	}
	if strings.ContainsAny(c.self.ID, " /") {
		stop()
		return nil, fmt.Errorf("instance id %q: want neither blanks nor slashes", c.self.ID)
	}
	if c.self.Started == 0 {
		c.self.Started = options.Now().UnixMilli()
	}
	c.view = newView([]Instance{c.self})
	if err := c.open(ctx, run); err != nil {
		stop()
		c.tasks.Wait()
		return nil, fmt.Errorf("join the cluster: %w", err)
	}
	return c, nil
}

func (c *Cluster) open(ctx, run context.Context) error {
	if err := c.begin(ctx, run); err != nil {
		return err
	}
	revision, err := c.read(ctx)
	if err != nil {
		return errors.Join(err, c.revoke(ctx))
	}
	c.mu.Lock()
	c.following = true
	c.mu.Unlock()
	c.tasks.Go(func() { c.keepSession(run) })
	c.tasks.Go(func() { c.follow(run, revision) })
	return nil
}

// Leave takes this process out of every placement, so that what it serves goes elsewhere. Its session goes on. An error
// means that others may not have heard.
func (c *Cluster) Leave(ctx context.Context) error {
	if c.stop == nil {
		return nil
	}
	c.mu.Lock()
	first := !c.leaving
	c.leaving = true
	c.mu.Unlock()
	if first {
		close(c.leave)
	}
	defer c.forgetSelf() // others first: what goes to them they are to expect
	select {
	case <-c.left:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("leave the cluster: %w", context.Cause(ctx))
	}
}

// Close ends the session: the keys that hang on it go, at once if etcd answers while ctx lasts.
func (c *Cluster) Close(ctx context.Context) error {
	if c.stop == nil {
		return nil
	}
	c.stop()
	c.tasks.Wait()
	return c.revoke(ctx)
}

// Self is this process.
func (c *Cluster) Self() Instance {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.self
}

// Session returns the newest session. After it is lost it stays the newest until another has begun: a key that is put under
// its lease is refused by etcd.
func (c *Cluster) Session() Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Session{Lease: c.session.lease, Lost: c.session.lost}
}

// record is what others read of this process.
func (c *Cluster) record() (key, value string, err error) {
	self := c.Self()
	self.Clock = c.options.Now().UnixMilli()
	encoded, err := json.Marshal(self)
	if err != nil {
		return "", "", fmt.Errorf("record of this instance: %w", err)
	}
	return c.options.Keys.Instance(self.ID), string(encoded), nil
}
