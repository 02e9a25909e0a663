package recorder

import (
	"bufio"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

// answerTimeout is how long a request waits before its line says that there is no answer.
const answerTimeout = 8 * time.Second

// frame is a command as it arrived.
type frame struct {
	command *pulsarproto.BaseCommand
	payload []byte
	at      time.Time
}

// connection is a client's connection. One goroutine reads it, the scenario writes.
type connection struct {
	recording *recording
	conn      net.Conn
	closed    chan struct{} // closed when the server has closed, or close was called
	pong      chan struct{}

	writing sync.Mutex // held while a frame is written

	mu       sync.Mutex // guards what follows
	pending  map[uint64]*pending
	sends    map[string]chan *frame // by producer id and sequence id
	messages map[uint64][]*frame    // by consumer id
	events   []string               // answers that nobody asked for
	hello    *pulsarproto.CommandConnected

	// Counters of ids, used by the scenario alone.
	producers, consumers, sequence uint64
}

// requestIDs count over all connections, as in the official clients.
var requestIDs atomic.Uint64

// dialRaw connects without a handshake. It panics if nothing listens; see Record.
func (r *recording) dialRaw() *connection {
	conn, err := net.DialTimeout("tcp", r.target.Address, 5*time.Second)
	if err != nil {
		panic(fmt.Sprintf("dial server: %v", err))
	}
	x := &connection{
		recording: r, conn: conn, closed: make(chan struct{}), pong: make(chan struct{}, 16),
		pending: map[uint64]*pending{}, sends: map[string]chan *frame{}, messages: map[uint64][]*frame{},
	}
	r.connections = append(r.connections, x)
	go x.read()
	return x
}

// dial connects and shakes hands.
func (r *recording) dial() *connection {
	x := r.dialRaw()
	x.write(connectCommand(20))
	x.waitHello()
	return x
}

// waitHello returns CONNECTED; nil if it does not come.
func (x *connection) waitHello() *pulsarproto.CommandConnected {
	for deadline := time.Now().Add(2 * time.Second); time.Now().Before(deadline) && !x.isClosed(); {
		x.mu.Lock()
		hello := x.hello
		x.mu.Unlock()
		if hello != nil {
			return hello
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}

// read dispatches frames until the connection ends.
func (x *connection) read() {
	defer close(x.closed)
	frames := pulsarproto.NewFrameReader(bufio.NewReader(x.conn), 1<<30)
	for {
		f, err := frames.ReadFrame()
		if err != nil {
			return
		}
		command := &pulsarproto.BaseCommand{}
		if err := (proto.UnmarshalOptions{AllowPartial: true}).Unmarshal(f.Command, command); err != nil {
			x.event("UNPARSABLE COMMAND " + err.Error())
			continue
		}
		x.dispatch(&frame{command: command, payload: f.Payload, at: time.Now()})
	}
}

func (x *connection) dispatch(f *frame) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch f.command.GetType() {
	case pulsarproto.BaseCommand_CONNECTED:
		x.hello = f.command.Connected
		x.events = append(x.events, "CONNECTED")
		return
	case pulsarproto.BaseCommand_PING:
		go x.write(&pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_PONG.Enum(), Pong: &pulsarproto.CommandPong{}})
		return
	case pulsarproto.BaseCommand_PONG:
		select {
		case x.pong <- struct{}{}:
		default:
		}
		return
	case pulsarproto.BaseCommand_MESSAGE:
		consumer := f.command.Message.GetConsumerId()
		x.messages[consumer] = append(x.messages[consumer], f)
		return
	}
	if !x.answerSend(f) && !x.answerRequest(f) {
		x.events = append(x.events, x.recording.answer(f.command, nil))
	}
}

// answerSend hands a receipt or its refusal to the send that waits for it.
func (x *connection) answerSend(f *frame) bool {
	var key string
	switch f.command.GetType() {
	case pulsarproto.BaseCommand_SEND_RECEIPT:
		key = sendKey(f.command.SendReceipt.GetProducerId(), f.command.SendReceipt.GetSequenceId())
	case pulsarproto.BaseCommand_SEND_ERROR:
		key = sendKey(f.command.SendError.GetProducerId(), f.command.SendError.GetSequenceId())
	}
	waiting := x.sends[key]
	if waiting == nil {
		return false
	}
	waiting <- f
	return true
}

// answerRequest hands an answer to the request with its id.
func (x *connection) answerRequest(f *frame) bool {
	body := bodyOf(f.command)
	if body == nil {
		return false
	}
	field := body.Descriptor().Fields().ByName("request_id")
	if field == nil {
		return false
	}
	p := x.pending[body.Get(field).Uint()]
	if p == nil {
		return false
	}
	select {
	case p.answers <- f:
	default:
		x.events = append(x.events, "SECOND ANSWER "+x.recording.answer(f.command, p.command))
	}
	return true
}

func (x *connection) event(text string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.events = append(x.events, text)
}

// takeEvents returns the answers that nobody asked for since the last call, without CONNECTED unless hello is true.
func (x *connection) takeEvents(hello bool) []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	var events []string
	for _, event := range x.events {
		if hello || event != "CONNECTED" {
			events = append(events, event)
		}
	}
	x.events = nil
	return events
}

func (x *connection) isClosed() bool {
	select {
	case <-x.closed:
		return true
	default:
		return false
	}
}

func (x *connection) close() { _ = x.conn.Close() }

func (x *connection) write(command *pulsarproto.BaseCommand) {
	x.writeRaw(encodeFrame(encode(command)))
}

// writeRaw writes bytes. A server that has closed shows in the lines that follow, not here.
func (x *connection) writeRaw(bytes []byte) {
	x.writing.Lock()
	defer x.writing.Unlock()
	_ = x.conn.SetWriteDeadline(time.Now().Add(10 * time.Second))
	_, _ = x.conn.Write(bytes)
}

// ping reports whether the server answers within the time.
func (x *connection) ping(within time.Duration) bool {
	for len(x.pong) > 0 {
		<-x.pong
	}
	x.write(&pulsarproto.BaseCommand{Type: pulsarproto.BaseCommand_PING.Enum(), Ping: &pulsarproto.CommandPing{}})
	select {
	case <-x.pong:
		return true
	case <-x.closed:
	case <-time.After(within):
	}
	return false
}

// bodyOf returns the message of command that its type names, or else any that is there; nil if there is none.
func bodyOf(command *pulsarproto.BaseCommand) protoreflect.Message {
	m := command.ProtoReflect()
	field := m.Descriptor().Fields().ByNumber(protoreflect.FieldNumber(command.GetType()))
	if field != nil && m.Has(field) {
		return m.Get(field).Message()
	}
	var body protoreflect.Message
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		if field.Kind() == protoreflect.MessageKind {
			body = value.Message()
			return false
		}
		return true
	})
	return body
}
