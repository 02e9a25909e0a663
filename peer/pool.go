package peer

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/pulsar-tc/pulsar-tc/cluster"
	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// Options say how other instances are reached. Zero numbers and durations mean the default.
type Options struct {
	// Self is the id of this instance.
	Self string
	// Secret is what the instances of the cluster share.
	Secret Secret
	// Credentials are shown to the authentication of others. The zero value shows none.
	Credentials Credentials
	// TLS connects over TLS, trusting the authorities in TrustFile; empty: those of the system.
	// Source: broker.conf brokerClientTlsEnabled, brokerClientTrustCertsFilePath.
	TLS       bool
	TrustFile string
	// Version is the product's version, which CONNECT tells.
	Version string

	// ConnectTimeout bounds the connection with its handshake. Default 5 s.
	ConnectTimeout time.Duration
	// ParticipantTimeout bounds one EndOnParticipant; the topic may have to be loaded for it. Default 25 s.
	ParticipantTimeout time.Duration
	// KeepAlive is the time between two PINGs; a peer that sends nothing into one is given up. Default 10 s.
	KeepAlive time.Duration
	// WriteTimeout is how long a peer may take to read what was written at once. Default 10 s.
	WriteTimeout time.Duration
	// IdleTimeout is how long a connection stays without a request. Default 60 s.
	IdleTimeout time.Duration
	// MaxConnections bounds the connections. Default 10000.
	MaxConnections int
	// MaxPending bounds the requests of one connection that somebody waits for, and half of all that are unanswered. Default 5000,
	// half of what conn reads at once.
	MaxPending int
	// MaxPerTopic bounds the unanswered EndOnParticipant of one topic on a connection, those that nobody waits for any more included, so
	// that a topic that does not answer takes no more than a part of MaxPending. Default 1000.
	MaxPerTopic int
	// MaxOutgoing bounds the bytes that wait for one connection. Default 16 MiB.
	MaxOutgoing int

	Log zerolog.Logger
}

func (o Options) withDefaults() Options {
	setDefault(&o.ConnectTimeout, 5*time.Second)
	setDefault(&o.ParticipantTimeout, 25*time.Second)
	setDefault(&o.KeepAlive, 10*time.Second)
	setDefault(&o.WriteTimeout, 10*time.Second)
	setDefault(&o.IdleTimeout, time.Minute)
	setDefault(&o.MaxConnections, 10000)
	setDefault(&o.MaxPending, 5000)
	setDefault(&o.MaxPerTopic, 1000)
	setDefault(&o.MaxOutgoing, 16<<20)
	return o
}

func setDefault[T int | time.Duration](value *T, otherwise T) {
	if *value == 0 {
		*value = otherwise
	}
}

// Pool is the connections of this process to other instances.
type Pool struct {
	options Options
	tasks   sync.WaitGroup // goroutines of connections

	mu     sync.Mutex // guards the rest; link.mu may be taken inside it
	links  map[target]*link
	closed bool
}

// target is whom a connection reaches and for whom it speaks.
type target struct {
	instance, address string
	caller            cnx.Caller
}

// New returns a pool without connections. Close must be called.
func New(options Options) *Pool {
	return &Pool{options: options.withDefaults(), links: make(map[target]*link)}
}

var errClosed = errors.New("this instance is stopping")

// Close ends every connection and returns when nothing runs any more. Requests without an answer hear that.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	links := make([]*link, 0, len(p.links))
	for _, l := range p.links {
		links = append(links, l)
	}
	p.mu.Unlock()
	for _, l := range links {
		l.end(errClosed)
	}
	p.tasks.Wait()
}

// Connections is the number of connections, those being opened included.
func (p *Pool) Connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.links)
}

// start sends a request to an instance in the name of caller.
func (p *Pool) start(to cluster.Instance, caller cnx.Caller, c *call) {
	for {
		l, err := p.link(to, caller)
		if err == nil {
			err = l.start(c)
		}
		if errors.Is(err, errEnded) {
			p.forget(l)
			continue
		}
		if err != nil {
			c.finish(nil, err)
		}
		return
	}
}

// link returns the connection to an instance for a caller, and begins to open it if there is none.
// Errors: txn.ErrNotReady, txn.ErrTooManyRequests.
func (p *Pool) link(to cluster.Instance, caller cnx.Caller) (*link, error) {
	address, err := p.address(to)
	if err != nil {
		return nil, fmt.Errorf("%w: instance %s: %w", txn.ErrNotReady, to.ID, err)
	}
	at := target{to.ID, address, caller}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, fmt.Errorf("%w: %w", txn.ErrNotReady, errClosed)
	}
	if l := p.links[at]; l != nil {
		return l, nil
	}
	if len(p.links) >= p.options.MaxConnections {
		return nil, fmt.Errorf("%w: there are %d connections to other instances already", txn.ErrTooManyRequests, len(p.links))
	}
	l := newLink(p, at)
	p.links[at] = l
	p.tasks.Go(l.run)
	return l, nil
}

// forget makes the next request open another connection.
func (p *Pool) forget(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.links[l.target] == l {
		delete(p.links, l.target)
	}
}
