package wireclient

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

// protocolVersion is the one the client announces: new enough for every transaction command. Source: ProtocolVersion v19.
const protocolVersion = 21

// Handler receives the answer to a request. command is valid until it returns.
type Handler func(command *pulsarproto.BaseCommand, err error)

// ErrClosed is what requests in flight get when the connection ends.
var ErrClosed = errors.New("connection closed")

// Conn is one connection. Its methods may be called from anywhere.
type Conn struct {
	// OnPush hears every command that answers no request: MESSAGE, SEND_RECEIPT, SEND_ERROR, CLOSE_CONSUMER and so on. Set it
	// before the first request. payload is the caller's.
	OnPush func(command *pulsarproto.BaseCommand, payload []byte)

	socket    net.Conn
	connected *pulsarproto.CommandConnected
	done      chan struct{} // closed when the reader has ended

	writing sync.Mutex // held over one write to the socket; never together with mu
	held    bool       // guarded by writing: the reader has more answers at hand, frames wait in outgoing
	// outgoing is guarded by writing.
	outgoing []byte

	mu      sync.Mutex // guards the following
	next    uint64
	pending map[uint64]Handler
	err     error
}

// Dial connects to addr (host:port) and does the handshake, in the clear and without credentials.
func Dial(ctx context.Context, addr string) (*Conn, error) { return Dialer{}.Dial(ctx, addr) }

// DialAs is Dial with a handshake of the caller's.
func DialAs(ctx context.Context, addr string, connect *pulsarproto.CommandConnect) (*Conn, error) {
	return Dialer{}.dialAs(ctx, addr, connect)
}

// Dial connects to addr (host:port) and does the handshake.
func (d Dialer) Dial(ctx context.Context, addr string) (*Conn, error) {
	version, client := int32(protocolVersion), "pulsar-tc-wireclient"
	connect := &pulsarproto.CommandConnect{ClientVersion: &client, ProtocolVersion: &version}
	if d.Token != "" {
		method := "token"
		connect.AuthMethodName, connect.AuthData = &method, []byte(d.Token)
	}
	return d.dialAs(ctx, addr, connect)
}

func (d Dialer) dialAs(ctx context.Context, addr string, connect *pulsarproto.CommandConnect) (*Conn, error) {
	socket, err := d.socket(ctx, addr)
	if err != nil {
		return nil, err
	}
	c := &Conn{socket: socket, done: make(chan struct{}), pending: map[uint64]Handler{}, next: 1}
	if err := c.handshake(ctx, connect); err != nil {
		return nil, errors.Join(fmt.Errorf("handshake with %s: %w", addr, err), socket.Close())
	}
	return c, nil
}

func (c *Conn) handshake(ctx context.Context, connect *pulsarproto.CommandConnect) error {
	if deadline, ok := ctx.Deadline(); ok {
		if err := c.socket.SetDeadline(deadline); err != nil {
			return err
		}
	}
	hello := &pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_CONNECT.Enum(), Connect: connect}
	frame, err := pulsarproto.AppendCommand(nil, hello)
	if err != nil {
		return err
	}
	if _, err := c.socket.Write(frame); err != nil {
		return err
	}
	incoming := bufio.NewReaderSize(c.socket, 64<<10)
	reader := pulsarproto.NewFrameReader(incoming, 64<<20)
	answer, err := reader.ReadFrame()
	if err != nil {
		return err
	}
	var command pulsarproto.BaseCommand
	if err := pulsarproto.DecodeCommand(&command, answer.Command); err != nil {
		return err
	}
	if command.GetType() != pulsarproto.BaseCommand_CONNECTED {
		return fmt.Errorf("answered %s: %s", command.GetType(), command.GetError().GetMessage())
	}
	c.connected = command.GetConnected()
	if err := c.socket.SetDeadline(time.Time{}); err != nil {
		return err
	}
	go c.read(incoming, reader)
	return nil
}

// Connected is the server's answer to the handshake.
func (c *Conn) Connected() *pulsarproto.CommandConnected { return c.connected }

// RemoteAddr is the address of the server.
func (c *Conn) RemoteAddr() net.Addr { return c.socket.RemoteAddr() }

// Done is closed when the connection has ended.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Close ends the connection and returns when its reader has ended.
func (c *Conn) Close() error {
	err := c.socket.Close()
	<-c.done
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// read hands out answers. What handlers send meanwhile goes out when all answers at hand are handed out, in one write.
func (c *Conn) read(incoming *bufio.Reader, reader *pulsarproto.FrameReader) {
	var command pulsarproto.BaseCommand
	for {
		if incoming.Buffered() == 0 {
			c.release()
		}
		frame, err := reader.ReadFrame()
		if err == nil {
			c.hold()
			err = pulsarproto.DecodeCommand(&command, frame.Command)
		}
		if err != nil {
			c.end(fmt.Errorf("%w: %w", ErrClosed, err))
			return
		}
		c.dispatch(&command, frame.Payload)
	}
}

func (c *Conn) dispatch(command *pulsarproto.BaseCommand, payload []byte) {
	if command.GetType() == pulsarproto.BaseCommand_PING {
		c.write(pulsarproto.AppendPong(nil))
		return
	}
	if id, ok := requestID(command); ok {
		c.mu.Lock()
		handler := c.pending[id]
		delete(c.pending, id)
		c.mu.Unlock()
		if handler != nil {
			handler(command, nil)
			return
		}
	}
	if c.OnPush != nil {
		c.OnPush(command, payload)
	}
}

func (c *Conn) end(err error) {
	closed := c.socket.Close()
	if closed != nil && !errors.Is(closed, net.ErrClosed) {
		err = errors.Join(err, closed)
	}
	c.mu.Lock()
	c.err = err
	pending := c.pending
	c.pending = nil
	c.mu.Unlock()
	for _, handler := range pending {
		handler(nil, err)
	}
	close(c.done)
}

// Start sends a request and has handler called with its answer, from the reader. The request id is set by Start.
func (c *Conn) Start(command *pulsarproto.BaseCommand, handler Handler) {
	id, ok := c.expect(handler)
	if !ok {
		return
	}
	setRequestID(command, id)
	frame, err := pulsarproto.AppendCommand(nil, command)
	if err != nil {
		c.fail(id, err)
		return
	}
	c.write(frame)
}

// expect returns the id of a new request whose answer goes to handler. A connection that has ended has answered already.
func (c *Conn) expect(handler Handler) (id uint64, ok bool) {
	c.mu.Lock()
	if c.pending == nil {
		err := c.err
		c.mu.Unlock()
		handler(nil, err)
		return 0, false
	}
	defer c.mu.Unlock()
	id = c.next
	c.next++
	c.pending[id] = handler
	return id, true
}

func (c *Conn) fail(id uint64, err error) {
	c.mu.Lock()
	handler := c.pending[id]
	delete(c.pending, id)
	c.mu.Unlock()
	if handler != nil {
		handler(nil, err)
	}
}

// Call sends a request and waits for its answer. An ERROR answer is returned as a *ServerError.
func (c *Conn) Call(ctx context.Context, command *pulsarproto.BaseCommand) (*pulsarproto.BaseCommand, error) {
	type result struct {
		command *pulsarproto.BaseCommand
		err     error
	}
	answered := make(chan result, 1)
	c.Start(command, func(answer *pulsarproto.BaseCommand, err error) {
		if err == nil {
			answer, err = keep(answer), ErrorOf(answer)
		}
		answered <- result{answer, err}
	})
	select {
	case r := <-answered:
		return r.command, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Write sends a command that has no answer of its own.
func (c *Conn) Write(command *pulsarproto.BaseCommand) error {
	frame, err := pulsarproto.AppendCommand(nil, command)
	if err != nil {
		return err
	}
	c.write(frame)
	return nil
}

// WriteBytes sends bytes as they are.
func (c *Conn) WriteBytes(frames []byte) { c.write(frames) }

// Send sends a SEND command with a message.
func (c *Conn) Send(send *pulsarproto.CommandSend, metadata *pulsarproto.MessageMetadata, content []byte) error {
	payload, err := pulsarproto.AppendPayload(nil, metadata, content)
	if err != nil {
		return err
	}
	return c.SendPayload(send, payload)
}

// SendPayload sends a SEND command with a payload part as it is.
func (c *Conn) SendPayload(send *pulsarproto.CommandSend, payload []byte) error {
	command := &pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_SEND.Enum(), Send: send}
	frame, err := pulsarproto.AppendCommandHead(nil, command, len(payload))
	if err != nil {
		return err
	}
	c.write(append(frame, payload...))
	return nil
}

// write sends frames, or keeps them for the reader to send; an error shows at the reader, which ends the connection.
func (c *Conn) write(frames []byte) {
	c.encode(func(dst []byte) []byte { return append(dst, frames...) })
}

// encode is write for the frames that appendTo appends.
func (c *Conn) encode(appendTo func(dst []byte) []byte) {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.outgoing = appendTo(c.outgoing)
	if !c.held {
		c.flush()
	}
}

// hold makes writes wait for release.
func (c *Conn) hold() {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.held = true
}

// release sends what has waited.
func (c *Conn) release() {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.held = false
	c.flush()
}

// keptOutgoing is the largest buffer that is kept for the next frames.
const keptOutgoing = 1 << 20

// flush writes outgoing to the socket; writing is held.
func (c *Conn) flush() {
	if len(c.outgoing) == 0 {
		return
	}
	if _, err := c.socket.Write(c.outgoing); err != nil {
		// The reader sees the closed socket and tells everyone who waits.
		_ = c.socket.Close()
	}
	c.outgoing = c.outgoing[:0]
	if cap(c.outgoing) > keptOutgoing {
		c.outgoing = nil
	}
}
