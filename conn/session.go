package conn

import (
	"context"
	"crypto/x509"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

// session is one connection. Its reader runs in run; commands that may block get a goroutine each.
type session struct {
	server   *Server
	options  *Options
	services Services
	id       uint64
	network  net.Conn
	log      zerolog.Logger
	out      *outbox

	ctx      context.Context // ends with the connection
	cancel   context.CancelFunc
	end      sync.Once
	reason   CloseReason    // written in end
	requests sync.WaitGroup // goroutines of requests
	listing  chan struct{}  // a token for the one list being made

	keepAlive   keepAlive
	credentials credentials
	connected   atomic.Bool // the handshake is done
	paused      atomic.Bool // the reader waits at a bound

	certificates []*x509.Certificate // the client's; the reader's
	caller       Caller              // written before connected
	instance     bool                // another instance of the cluster opened it; written before connected
	protocol     int32               // version that both ends speak; written before connected
	// clientVersion is what the client calls itself; written before connected.
	clientVersion string

	mu               sync.Mutex  // guards everything below; outbox.mu may be taken inside it, nothing else
	flushed          CloseReason // why finish was called
	producers        map[uint64]*producer
	consumers        map[uint64]*consumer
	attachedBytes    int                  // what producers and consumers cost
	droppedProducers map[uint64]time.Time // ids that were disconnected by their topic, and when
	coordinators     map[uint64]*registration
	topicWatchers    map[uint64]*topicWatcher
	idling           bool // it ends when it is idle
}

func newSession(server *Server, id uint64, network net.Conn) *session {
	s := &session{
		server:   server,
		options:  &server.options,
		services: server.services,
		id:       id,
		network:  network,
		listing:  make(chan struct{}, 1),
		log:      server.options.Log.With().Uint64("cnx", id).Stringer("remote", network.RemoteAddr()).Logger(),
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.out = newOutbox(s.options, &server.publishing, func() { s.drop(ClosedNotReading) })
	return s
}

func (s *session) peer() Peer {
	return Peer{Address: s.network.RemoteAddr().String(), ClientVersion: s.clientVersion}
}

// run serves the connection until it has ended and everything it started is gone.
func (s *session) run() {
	s.options.Events.ConnectionOpened()
	s.log.Debug().Msg("connection opened")
	written := make(chan struct{})
	go func() {
		defer close(written)
		s.write()
	}()
	s.startKeepAlive()
	if err := s.handshake(); err != nil {
		s.endAs(s.readFailed(err))
	} else {
		s.endAs(s.read())
	}
	<-written
	s.stopCredentials()
	s.detachAll()
	s.requests.Wait()
	s.server.publishing.forget(s.out)
	s.options.Events.ConnectionClosed(s.reason)
	s.log.Debug().Str("reason", string(s.reason)).Msg("connection closed")
}

// endAs ends the connection after its reader. Answers given before bad input are still written.
func (s *session) endAs(reason CloseReason) {
	if reason != ClosedBadInput {
		s.close(reason)
		return
	}
	s.finish(reason)
	<-s.ctx.Done()
}

// close ends the connection at once. The first reason given stays.
func (s *session) close(reason CloseReason) {
	s.drop(reason)
	s.out.close()
}

// drop is close without the outbox, for callers that hold its lock.
func (s *session) drop(reason CloseReason) {
	s.end.Do(func() {
		s.reason = reason
		s.cancel()
		s.stopKeepAlive()
		if err := closeNetwork(s.network); err != nil {
			s.log.Debug().Err(err).Msg("close failed")
		}
	})
}

// finish ends the connection once everything queued so far is written. The first reason given stays.
func (s *session) finish(reason CloseReason) {
	s.mu.Lock()
	if s.flushed == "" {
		s.flushed = reason
	}
	s.mu.Unlock()
	s.out.flush()
}

// drain takes no more commands, and ends the connection if those that were taken are answered before ctx is done.
func (s *session) drain(ctx context.Context, reason CloseReason) {
	s.out.stop()
	if err := s.network.SetReadDeadline(time.Unix(1, 0)); err != nil {
		s.log.Debug().Err(err).Msg("stop reading failed")
	}
	if s.out.waitUntilAnswered(ctx) {
		s.finish(reason)
	}
}

// stop is drain, and ends the connection anyway when ctx is done.
func (s *session) stop(ctx context.Context, reason CloseReason) {
	s.drain(ctx, reason)
	s.finish(reason)
	select {
	case <-s.ctx.Done():
	case <-ctx.Done():
		s.close(reason)
	}
}

// failure is serverError, and tells log and metrics of it.
func (s *session) failure(command pulsarproto.BaseCommand_Type, err error, named bool) (pulsarproto.ServerError, string) {
	code, text := serverError(err, named)
	s.options.Events.RequestFailed(command, code)
	s.log.Debug().Stringer("command", command).Stringer("code", code).Err(err).Msg("request failed")
	return code, text
}

// detachAll ends every producer and consumer of a connection that has ended.
func (s *session) detachAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.producers {
		if p.leave() {
			s.requests.Go(func() { s.detachProducer(p) })
		}
	}
	for _, c := range s.consumers {
		if c.leave() {
			s.requests.Go(func() { s.detachConsumer(c) })
		}
	}
}

// termEnded ends the connection with the term of a coordinator that it registered with (TC-24). One that is drained ends by
// itself, when the last answer is there.
func (s *session) termEnded(handedOver bool) {
	switch {
	case s.out.isStopped():
	case handedOver:
		s.endWhenIdle()
	default:
		s.finish(ClosedTermEnded)
	}
}

// pause notes that the reader has to wait: a peer that is not read is not silent.
func (s *session) pause() { s.paused.Store(true) }

// unpause ends pause. What the peer sent meanwhile is still to be read, so the wait counts as a sign of life.
func (s *session) unpause() {
	if s.paused.Load() {
		s.keepAlive.noteFrame()
		s.paused.Store(false)
	}
}
