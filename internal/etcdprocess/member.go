package etcdprocess

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/internal/process"
)

const (
	// startTime bounds the start of a member, or of all.
	startTime = 60 * time.Second
	// askTime bounds one question to a member that may be down.
	askTime = 2 * time.Second
	// busyTime bounds the questions to one that may only be busy.
	busyTime = 10 * time.Second
)

// Member is one etcd server of a cluster, which may run or not.
type Member struct {
	Name string

	cluster   *Cluster
	port      int
	listening string // for the other members, host:port
	peer      string // where they reach it, host:port
	child     *process.Child
	client    *clientv3.Client // nil until it is asked for
}

// URL is where clients reach the member.
func (m *Member) URL() string {
	if m.cluster.options.TLS != nil {
		return "https://localhost:" + strconv.Itoa(m.port)
	}
	return "http://" + m.Address()
}

// Address is host:port of URL.
func (m *Member) Address() string { return "127.0.0.1:" + strconv.Itoa(m.port) }

func (m *Member) peerURL() string { return "http://" + m.peer }

// Start starts the member on its data, if it does not run, and waits until it serves, which takes a majority of members.
func (m *Member) Start(ctx context.Context) error {
	if !m.running() {
		if err := m.launch(); err != nil {
			return err
		}
	}
	return m.await(ctx)
}

// launch starts the process and waits for nothing.
func (m *Member) launch() error {
	var heard func(string)
	if copied := m.cluster.options.Copy; copied != nil {
		heard = func(line string) { copied(m.Name, line) }
	}
	child, err := process.StartChild(exec.Command(m.cluster.binary, m.arguments()...), heard)
	if err != nil {
		return fmt.Errorf("start %s: %w", m.Name, err)
	}
	m.child = child
	return nil
}

func (m *Member) arguments() []string {
	c := m.cluster
	listen := "http://" + m.Address()
	arguments := []string{
		"--name", m.Name, "--data-dir", c.directory(m), "--log-level", "warn", "--log-outputs", "stderr", "--enable-grpc-gateway=false",
		"--listen-peer-urls", "http://" + m.listening, "--initial-advertise-peer-urls", m.peerURL(),
		"--initial-cluster", c.initial(), "--initial-cluster-state", "new", "--initial-cluster-token", c.options.Dir,
	}
	if c.options.TLS != nil {
		files := c.options.TLS.Server
		listen = "https://" + m.Address()
		arguments = append(arguments, "--cert-file", files.Certificate, "--key-file", files.Key, "--trusted-ca-file", files.Trust)
	}
	arguments = append(arguments, "--listen-client-urls", listen, "--advertise-client-urls", m.URL())
	if c.options.Quota != 0 {
		arguments = append(arguments, "--quota-backend-bytes", strconv.FormatInt(c.options.Quota, 10))
	}
	if c.options.TokenTTL != 0 {
		arguments = append(arguments, "--auth-token-ttl", strconv.Itoa(c.options.TokenTTL))
	}
	return append(arguments, c.options.Flags...)
}

// inUse is what a member says whose port was taken, where the system cannot reserve it: for a moment, by a connection to somebody else.
const inUse = "address already in use"

// await returns when the member answers a linearizable read.
func (m *Member) await(ctx context.Context) error {
	for {
		client, err := m.Client()
		if err == nil {
			asking, cancel := context.WithTimeout(ctx, askTime)
			_, err = client.Get(asking, "is it there")
			cancel()
		}
		if err == nil {
			return nil
		}
		select {
		case <-m.child.Done():
			if !m.child.Said(inUse) {
				return fmt.Errorf("%s: %w", m.Name, process.ErrEnded)
			}
			if err := m.launch(); err != nil {
				return err
			}
		default:
		}
		if waited := wait(ctx); waited != nil {
			return fmt.Errorf("%s does not serve: %w", m.Name, errors.Join(waited, err))
		}
	}
}

func (m *Member) running() bool {
	if m.child == nil {
		return false
	}
	select {
	case <-m.child.Done():
		return false
	default:
		return true
	}
}

// Kill ends the member with SIGKILL, if it runs.
func (m *Member) Kill() error { return m.child.Kill() }

// Pause stops the process of the member where it is (SIGSTOP).
func (m *Member) Pause() error { return m.child.Pause() }

// Resume lets it go on (SIGCONT).
func (m *Member) Resume() error { return m.child.Resume() }

// Lines are the last lines that the member wrote since its last start.
func (m *Member) Lines() []string { return m.child.Lines() }

// Client returns a client of this member alone, which is the member's.
func (m *Member) Client() (*clientv3.Client, error) {
	if m.client != nil {
		return m.client, nil
	}
	client, err := m.cluster.dial(m.URL())
	m.client = client
	return client, err
}

func (m *Member) forgetClient() error {
	if m.client == nil {
		return nil
	}
	err := m.client.Close()
	m.client = nil
	return err
}

// Status asks the member how it is. One that does not answer soon is an error.
func (m *Member) Status(ctx context.Context) (*clientv3.StatusResponse, error) {
	client, err := m.Client()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	status, err := client.Status(ctx, m.URL())
	if err != nil {
		return nil, fmt.Errorf("status of %s: %w", m.Name, err)
	}
	return status, nil
}

// id is what the member is to others. One that is busy is asked again; one that is paused is not waited for any longer.
func (m *Member) id(ctx context.Context) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, busyTime)
	defer cancel()
	for {
		status, err := m.Status(ctx)
		if err == nil {
			return status.Header.MemberId, nil
		}
		if waited := wait(ctx); waited != nil {
			return 0, errors.Join(waited, err)
		}
	}
}

// Defragment gives free pages of the member's file back to the disk. Meanwhile the member answers nobody.
func (m *Member) Defragment(ctx context.Context) error {
	client, err := m.Client()
	if err != nil {
		return err
	}
	if _, err := client.Defragment(ctx, m.URL()); err != nil {
		return fmt.Errorf("defragment %s: %w", m.Name, err)
	}
	return nil
}
