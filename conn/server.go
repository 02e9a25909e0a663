package conn

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

// Services do the work that connections ask for. All are required.
type Services struct {
	Coordinators Coordinators
	Topics       Topics
	Lookup       Lookup
	Schemas      Schemas
	TopicFeed    TopicFeed // nil: nobody can watch lists of topics
}

// Server serves the binary protocol on any number of listeners.
type Server struct {
	options  Options
	services Services
	lookups  chan struct{} // a token for each lookup being answered
	listings chan struct{} // a token for each list being made
	faults   lineLimit     // for lines about the faults of peers

	publishing publishBuffer
	watched    atomic.Int64 // bytes of the lists that topic list watchers keep

	goroutines sync.WaitGroup // of sessions

	mu        sync.Mutex // guards everything below
	closing   bool
	nextID    uint64
	listeners map[net.Listener]struct{}
	sessions  map[*session]struct{}
	perIP     map[string]int
}

// NewServer returns a server that serves nothing yet.
func NewServer(options Options, services Services) *Server {
	options = options.withDefaults()
	options.Events = options.Events.withDefaults()
	return &Server{
		options:    options,
		services:   services,
		lookups:    make(chan struct{}, options.MaxConcurrentLookups),
		listings:   make(chan struct{}, maxListings),
		listeners:  make(map[net.Listener]struct{}),
		sessions:   make(map[*session]struct{}),
		perIP:      make(map[string]int),
		publishing: publishBuffer{limit: int64(options.MaxPublishBytes), waiting: make(map[*outbox]struct{})},
	}
}

// ErrClosed is returned by Serve after Close.
var ErrClosed = errors.New("server closed")

// Longest pause after an accept that failed for want of something that may come back, such as file descriptors.
const maxAcceptPause = time.Second

// Serve accepts connections from listener until Close, then returns ErrClosed. It closes listener. Any other error is the
// listener's.
func (s *Server) Serve(listener net.Listener) error {
	if !s.addListener(listener) {
		return errors.Join(ErrClosed, listener.Close())
	}
	defer s.removeListener(listener)
	pause := time.Duration(0)
	for {
		network, err := listener.Accept()
		if err == nil {
			pause = 0
			s.ServeConn(network)
			continue
		}
		if s.isClosing() {
			return ErrClosed
		}
		if errors.Is(err, net.ErrClosed) {
			return fmt.Errorf("accept on %s: %w", listener.Addr(), err)
		}
		pause = min(max(2*pause, 5*time.Millisecond), maxAcceptPause)
		s.options.Log.Warn().Err(err).Stringer("listener", listener.Addr()).Dur("pause", pause).Msg("accept failed")
		time.Sleep(pause)
	}
}

// ServeConn serves one connection in goroutines of its own and closes it in the end.
func (s *Server) ServeConn(network net.Conn) {
	refusal := s.startSession(network)
	if refusal == "" {
		return
	}
	s.options.Events.ConnectionRefused()
	s.options.Log.Debug().Stringer("remote", network.RemoteAddr()).Str("reason", refusal).Msg("connection refused")
	s.refuse(network, refusal)
}

// refuse tells a peer why it is not served, as far as its receive buffer takes it at once. One that would need a TLS handshake
// first is told nothing: the listener does not wait for it.
//
// Source: ServerCnx.channelActive with State.REACHED_MAX_CONNECTIONS, ConnectionController.
func (s *Server) refuse(network net.Conn, refusal string) {
	var err error
	if _, encrypted := network.(*tls.Conn); !encrypted {
		frame := pulsarproto.AppendConnectError(nil, pulsarproto.ServerError_NotAllowedError, refusal)
		if err = network.SetWriteDeadline(time.Now().Add(refuseTimeout)); err == nil {
			_, err = network.Write(frame)
		}
	}
	if err := errors.Join(err, closeNetwork(network)); err != nil {
		s.options.Log.Debug().Err(err).Msg("refusal not delivered")
	}
}

// refuseTimeout bounds what a refused peer can hold up: an empty send buffer takes the frame at once.
const refuseTimeout = 100 * time.Millisecond

// Drain stops listening and taking commands. Each connection ends when what it asked for is answered; Drain returns when all
// have that, or ctx is done: those that still wait stay, to be answered before Close.
func (s *Server) Drain(ctx context.Context) error {
	return s.stopEach(func(session *session) { session.drain(ctx, ClosedShutdown) })
}

// Close stops listening and taking commands, lets the requests taken be answered until ctx is done, and returns when every
// connection has ended. Its error is ctx's if some were cut off.
func (s *Server) Close(ctx context.Context) error {
	err := s.stopEach(func(session *session) { session.stop(ctx, ClosedShutdown) })
	s.goroutines.Wait()
	return errors.Join(err, ctx.Err())
}

// stopEach stops listening and calls stop for each connection, all at once. It returns when these calls have.
func (s *Server) stopEach(stop func(*session)) error {
	s.mu.Lock()
	s.closing = true
	var errs []error
	for listener := range s.listeners {
		if err := listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, fmt.Errorf("close listener %s: %w", listener.Addr(), err))
		}
	}
	var stopping sync.WaitGroup
	for session := range s.sessions {
		stopping.Go(func() { stop(session) })
	}
	s.mu.Unlock()
	stopping.Wait()
	return errors.Join(errs...)
}

func (s *Server) addListener(listener net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return false
	}
	s.listeners[listener] = struct{}{}
	return true
}

func (s *Server) removeListener(listener net.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.listeners, listener)
}

func (s *Server) isClosing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closing
}

// startSession serves a connection, or says why it is refused.
func (s *Server) startSession(network net.Conn) string {
	ip := remoteIP(network)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closing:
		return "Server is shutting down"
	case s.options.MaxConnections > 0 && len(s.sessions) >= s.options.MaxConnections:
		return "Reached the maximum number of connections"
	case s.options.MaxConnectionsPerIP > 0 && s.perIP[ip] >= s.options.MaxConnectionsPerIP:
		return "Reached the maximum number of connections on address " + ip
	}
	s.nextID++
	session := newSession(s, s.nextID, network)
	s.sessions[session] = struct{}{}
	s.perIP[ip]++
	s.goroutines.Go(func() {
		defer s.removeSession(session)
		session.run()
	})
	return ""
}

func (s *Server) removeSession(session *session) {
	ip := remoteIP(session.network)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, session)
	s.perIP[ip]--
	if s.perIP[ip] == 0 {
		delete(s.perIP, ip)
	}
}

func remoteIP(network net.Conn) string {
	if address, ok := network.RemoteAddr().(*net.TCPAddr); ok {
		return address.IP.String()
	}
	return network.RemoteAddr().String()
}
