package conn

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

// bench is a server with fake services, and what its events told.
type bench struct {
	*Server
	coordinators *fakeCoordinators
	topics       *fakeTopics
	lookup       *fakeLookup

	mu     sync.Mutex
	closed []CloseReason
	bad    []BadInput
	failed []pulsarproto.ServerError
}

// connections returns the number of open connections.
func (b *bench) connections() int {
	b.Server.mu.Lock()
	defer b.Server.mu.Unlock()
	return len(b.sessions)
}

// newBench returns a server that is closed at the end of the test. Defaults of options are as in production, except for
// the log, which is off.
func newBench(t testing.TB, options Options) *bench {
	t.Helper()
	b := &bench{
		coordinators: &fakeCoordinators{count: 2},
		topics:       &fakeTopics{},
		lookup:       &fakeLookup{},
	}
	options.Version = "1.2.3"
	options.Events = Events{
		ConnectionClosed: func(reason CloseReason) { b.note(func() { b.closed = append(b.closed, reason) }) },
		BadInput:         func(reason BadInput) { b.note(func() { b.bad = append(b.bad, reason) }) },
		RequestFailed: func(_ pulsarproto.BaseCommand_Type, code pulsarproto.ServerError) {
			b.note(func() { b.failed = append(b.failed, code) })
		},
	}
	b.Server = NewServer(options, Services{Coordinators: b.coordinators, Topics: b.topics, Lookup: b.lookup, Schemas: fakeSchemas{}})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := b.Close(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("close: %v", err)
		}
		if len(b.sessions) != 0 || len(b.perIP) != 0 {
			t.Errorf("%d sessions and %d addresses are left", len(b.sessions), len(b.perIP))
		}
		if b.publishing.held.Load() != 0 || len(b.publishing.waiting) != 0 {
			t.Errorf("%d bytes and %d waits are left", b.publishing.held.Load(), len(b.publishing.waiting))
		}
	})
	return b
}

func (b *bench) note(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
}

// lastClosed returns why the last connection that ended did.
func (b *bench) lastClosed() CloseReason {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.closed) == 0 {
		return ""
	}
	return b.closed[len(b.closed)-1]
}

func (b *bench) badInputs() []BadInput {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]BadInput(nil), b.bad...)
}

// peer is a raw client.
type peer struct {
	t       testing.TB
	network net.Conn
	frames  *pulsarproto.FrameReader
	payload []byte // of the last frame received
}

func (b *bench) newPeer(t testing.TB) *peer {
	t.Helper()
	client, server := net.Pipe()
	t.Cleanup(func() { client.Close() })
	b.ServeConn(server)
	return newPeer(t, client)
}

func newPeer(t testing.TB, network net.Conn) *peer {
	return &peer{t: t, network: network, frames: pulsarproto.NewFrameReader(bufio.NewReader(network), 5<<20)}
}

// connectedPeer returns a peer behind the handshake.
func (b *bench) connectedPeer(t testing.TB) *peer {
	t.Helper()
	p := b.newPeer(t)
	p.handshake()
	return p
}

func (p *peer) handshake() {
	p.t.Helper()
	p.send(connectCommand(21))
	p.want(pulsarproto.BaseCommand_CONNECTED)
}

// send writes commands in one piece.
func (p *peer) send(commands ...*pulsarproto.BaseCommand) {
	p.t.Helper()
	var frames []byte
	for _, command := range commands {
		frames = append(frames, encodeFrame(p.t, command, nil)...)
	}
	p.write(frames)
}

func (p *peer) sendPayload(command *pulsarproto.BaseCommand, payload []byte) {
	p.t.Helper()
	p.write(encodeFrame(p.t, command, payload))
}

func (p *peer) write(raw []byte) {
	p.t.Helper()
	if _, err := p.network.Write(raw); err != nil {
		p.t.Fatalf("write: %v", err)
	}
}

func encodeFrame(t testing.TB, command *pulsarproto.BaseCommand, payload []byte) []byte {
	t.Helper()
	frame, err := pulsarproto.AppendCommandHead(nil, command, len(payload))
	if err != nil {
		t.Fatal(err)
	}
	return append(frame, payload...)
}

// receive returns the next command other than PING.
func (p *peer) receive() (*pulsarproto.BaseCommand, error) {
	for {
		command, err := p.receiveAny()
		if err != nil || command.GetType() != pulsarproto.BaseCommand_PING {
			return command, err
		}
	}
}

func (p *peer) receiveAny() (*pulsarproto.BaseCommand, error) {
	frame, err := p.frames.ReadFrame()
	if err != nil {
		return nil, err
	}
	p.payload = frame.Payload
	command := new(pulsarproto.BaseCommand)
	return command, pulsarproto.DecodeCommand(command, frame.Command)
}

// want returns the next command, which must be of this type.
func (p *peer) want(kind pulsarproto.BaseCommand_Type) *pulsarproto.BaseCommand {
	p.t.Helper()
	command, err := p.receive()
	if err != nil {
		p.t.Fatalf("want %s, got error %v", kind, err)
	}
	if command.GetType() != kind {
		p.t.Fatalf("want %s, got %v", kind, command)
	}
	return command
}

// wantCommand is want for the whole command.
func (p *peer) wantCommand(want *pulsarproto.BaseCommand) {
	p.t.Helper()
	if got := p.want(want.GetType()); !proto.Equal(got, want) {
		p.t.Fatalf("got %v, want %v", got, want)
	}
}

// wantError returns the text of the next command, which must be an ERROR for this request.
func (p *peer) wantError(requestID uint64, code pulsarproto.ServerError) string {
	p.t.Helper()
	failure := p.want(pulsarproto.BaseCommand_ERROR).GetError()
	if failure.GetRequestId() != requestID || failure.GetError() != code || failure.GetMessage() == "" {
		p.t.Fatalf("got %v, want request %d, code %s and a text", failure, requestID, code)
	}
	return failure.GetMessage()
}

// wantNothing fails if anything comes within a moment.
func (p *peer) wantNothing() {
	p.t.Helper()
	if err := p.network.SetReadDeadline(time.Now().Add(10 * time.Millisecond)); err != nil {
		p.t.Fatal(err)
	}
	command, err := p.receive()
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		p.t.Fatalf("want nothing, got %v, %v", command, err)
	}
	if err := p.network.SetReadDeadline(time.Time{}); err != nil {
		p.t.Fatal(err)
	}
}

// wantClosed fails unless the connection ends without a further command, PING included: it is not closed for silence.
func (p *peer) wantClosed() {
	p.t.Helper()
	command, err := p.receiveAny()
	if !isClosed(err) {
		p.t.Fatalf("want the connection closed, got %v, %v", command, err)
	}
}

func isClosed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, net.ErrClosed) ||
		err != nil && strings.Contains(err.Error(), "connection reset")
}

// alive fails unless the server answers a PING.
func (p *peer) alive() {
	p.t.Helper()
	p.send(pingCommand())
	p.want(pulsarproto.BaseCommand_PONG)
}
