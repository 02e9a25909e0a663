package etcdprocess

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/pulsar-tc/pulsar-tc/internal/certtest"
	"github.com/pulsar-tc/pulsar-tc/internal/loopback"
)

// Options say what cluster to run.
type Options struct {
	// Members is 1 or 3; 0 is 1.
	Members int
	// Dir holds the members' directories. New makes one if it is empty.
	Dir string
	// Quota bounds each member's backend, in bytes; 0 is etcd's default, 2 GiB. A member that exceeds it raises NOSPACE.
	Quota int64
	// TokenTTL is after how many seconds without a use a token of Authenticate expires; 0 is etcd's default, 300.
	TokenTTL int
	// TLS, if not nil, is for the members' clients. Members talk to each other in the clear.
	TLS *TLS
	// Flags are added to the command line of each member.
	Flags []string
	// PeerLink, if not nil, is told where a member listens for the others, host:port, and returns where they are to reach it.
	PeerLink func(listening string) (string, error)
	// Copy, if not nil, is given each line that a member writes.
	Copy func(member, line string)
}

// TLS are the files of a cluster whose clients use TLS.
type TLS struct {
	// Server is what the members show, for localhost. They take clients that its authority has signed and no others; all, if
	// Trust is empty.
	Server certtest.Files
	// Client is what the cluster's own clients show.
	Client certtest.Files
}

// Cluster is some members of one cluster. Its methods are called by one goroutine at a time, except where they say so.
type Cluster struct {
	Members []*Member

	options Options
	binary  string
	ports   *loopback.Reservation
	user    string // set by Authenticate
	secret  string
	client  *clientv3.Client // nil until it is asked for
}

// New starts a cluster that ends with t. If t failed, the last lines of the members are logged.
func New(t testing.TB, options Options) *Cluster {
	t.Helper()
	if options.Dir == "" {
		options.Dir = t.TempDir()
	}
	if _, err := Build(t.Context()); err != nil { // which takes longer than a start
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), startTime)
	defer cancel()
	c, err := Start(ctx, options)
	if c != nil {
		t.Cleanup(func() { c.end(t) })
	}
	if err != nil {
		t.Fatalf("etcd: %v", err)
	}
	return c
}

// failureLines is how many lines of each member are logged when a test failed.
const failureLines = 20

func (c *Cluster) end(t testing.TB) {
	if err := c.Close(); err != nil {
		t.Errorf("etcd: %v", err)
	}
	if !t.Failed() {
		return
	}
	for _, m := range c.Members {
		lines := m.Lines()
		for _, line := range lines[max(0, len(lines)-failureLines):] {
			t.Logf("%s: %s", m.Name, line)
		}
	}
}

// Start starts a cluster and waits until all its members serve. A cluster that is returned beside an error, because not all
// started, is to be closed as well.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	binary, err := Build(ctx)
	if err != nil {
		return nil, err
	}
	options.Members = max(1, options.Members)
	ports, err := loopback.Reserve(2 * options.Members)
	if err != nil {
		return nil, err
	}
	c := &Cluster{options: options, binary: binary, ports: ports}
	for i := range options.Members {
		m := &Member{Name: fmt.Sprintf("etcd-%d", i), cluster: c, port: ports.Ports[2*i]}
		m.listening = fmt.Sprintf("127.0.0.1:%d", ports.Ports[2*i+1])
		m.peer = m.listening
		if options.PeerLink != nil {
			if m.peer, err = options.PeerLink(m.listening); err != nil {
				return nil, errors.Join(err, ports.Release())
			}
		}
		c.Members = append(c.Members, m)
	}
	return c, c.start(ctx)
}

// start starts every member, all at once because none serves alone.
func (c *Cluster) start(ctx context.Context) error {
	for _, m := range c.Members {
		if m.running() {
			continue
		}
		if err := m.launch(); err != nil {
			return err
		}
	}
	for _, m := range c.Members {
		if err := m.await(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Restart starts members that do not run, and waits until all serve.
func (c *Cluster) Restart(ctx context.Context) error { return c.start(ctx) }

// Close ends every member and the cluster's own clients, and gives the ports back.
func (c *Cluster) Close() error {
	var errs []error
	for _, m := range c.Members {
		errs = append(errs, m.Kill(), m.forgetClient())
	}
	return errors.Join(append(errs, c.forgetClient(), c.ports.Release())...)
}

func (c *Cluster) forgetClient() error {
	if c.client == nil {
		return nil
	}
	err := c.client.Close()
	c.client = nil
	return err
}

// Endpoints are the URLs at which clients reach the members. They stay the same.
func (c *Cluster) Endpoints() []string {
	var all []string
	for _, m := range c.Members {
		all = append(all, m.URL())
	}
	return all
}

// Client returns a client of all members, which is the cluster's: it may do everything, and ends with it.
func (c *Cluster) Client() (*clientv3.Client, error) {
	if c.client != nil {
		return c.client, nil
	}
	client, err := c.dial(c.Endpoints()...)
	c.client = client
	return client, err
}

const (
	// dialTime bounds one attempt to connect to a member.
	dialTime = time.Second
	// keepAlive is how often a connection is probed: a paused member leaves it open. Members close a connection that probes
	// more often. Source: etcd's flag grpc-keepalive-min-time.
	keepAlive = 5 * time.Second
)

func (c *Cluster) dial(endpoints ...string) (*clientv3.Client, error) {
	config := clientv3.Config{
		Endpoints: endpoints, DialTimeout: dialTime, DialKeepAliveTime: keepAlive, DialKeepAliveTimeout: dialTime,
		Username: c.user, Password: c.secret, Logger: zap.NewNop(),
		// A member that was started again is tried at once, not after gRPC's back-off.
		BackoffWaitBetween: 20 * time.Millisecond,
	}
	if c.options.TLS != nil {
		tls, err := c.options.TLS.Client.Client()
		if err != nil {
			return nil, err
		}
		config.TLS = tls
	}
	return clientv3.New(config)
}

// Leader returns the member that leads, as most of those that answer see it. It asks again until there is one.
func (c *Cluster) Leader(ctx context.Context) (*Member, error) {
	for {
		votes := map[uint64]int{}
		ids := map[uint64]*Member{}
		for _, m := range c.Members {
			status, err := m.Status(ctx)
			if err != nil {
				continue // it is down, or paused
			}
			votes[status.Leader]++
			ids[status.Header.MemberId] = m
		}
		for id, count := range votes {
			if leader := ids[id]; leader != nil && count > len(c.Members)/2 {
				return leader, nil
			}
		}
		if err := wait(ctx); err != nil {
			return nil, fmt.Errorf("no member leads: %w", err)
		}
	}
}

// MoveLeader makes to the leader, if it is not.
func (c *Cluster) MoveLeader(ctx context.Context, to *Member) error {
	id, err := to.id(ctx)
	if err != nil {
		return err
	}
	leader, err := c.Leader(ctx)
	if err != nil || leader == to {
		return err
	}
	client, err := leader.Client()
	if err != nil {
		return err
	}
	if _, err := client.MoveLeader(ctx, id); err != nil {
		return fmt.Errorf("move the leader from %s to %s: %w", leader.Name, to.Name, err)
	}
	return nil
}

// Compact forgets all history before now and returns the revision.
func (c *Cluster) Compact(ctx context.Context) (int64, error) {
	client, err := c.Client()
	if err != nil {
		return 0, err
	}
	now, err := client.Get(ctx, "compaction asks for the revision")
	if err != nil {
		return 0, err
	}
	if _, err := client.Compact(ctx, now.Header.Revision); err != nil {
		return 0, fmt.Errorf("compact to %d: %w", now.Header.Revision, err)
	}
	return now.Header.Revision, nil
}

// directory is where a member keeps its data.
func (c *Cluster) directory(m *Member) string { return filepath.Join(c.options.Dir, m.Name) }

// initial is the flag that tells all members of each other.
func (c *Cluster) initial() string {
	var all []string
	for _, m := range c.Members {
		all = append(all, m.Name+"="+m.peerURL())
	}
	return strings.Join(all, ",")
}

// removeData forgets everything that is stored. No member may run.
func (c *Cluster) removeData() error {
	var errs []error
	for _, m := range c.Members {
		errs = append(errs, os.RemoveAll(c.directory(m)))
	}
	return errors.Join(errs...)
}

// pollPause is between two looks at something that is waited for.
const pollPause = 20 * time.Millisecond

// wait passes a pause, or tells that ctx is done.
func wait(ctx context.Context) error {
	timer := time.NewTimer(pollPause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
