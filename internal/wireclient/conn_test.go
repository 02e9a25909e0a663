package wireclient

import (
	"bufio"
	"errors"
	"net"
	"testing"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// peer is the server's end of a connection.
type peer struct {
	t      *testing.T
	socket net.Conn
	frames *pulsarproto.FrameReader
}

// connect dials a listener of the test and does the handshake at both ends.
func connect(t *testing.T) (*Conn, *peer) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan *peer, 1)
	go func() {
		defer close(accepted)
		socket, err := listener.Accept()
		if err != nil {
			t.Error(err)
			return
		}
		p := &peer{t: t, socket: socket, frames: pulsarproto.NewFrameReader(bufio.NewReader(socket), 1<<20)}
		p.read(pulsarproto.BaseCommand_CONNECT)
		p.write(pulsarproto.AppendConnected(nil, pulsarproto.Connected{ServerVersion: "test", ProtocolVersion: 21, MaxMessageSize: 1 << 20}))
		accepted <- p
	}()
	c, err := Dial(t.Context(), listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	p := <-accepted
	if err := listener.Close(); err != nil {
		t.Error(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if err := p.socket.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
	return c, p
}

// read returns the next command, which must be of kind; nil after a failure.
func (p *peer) read(kind pulsarproto.BaseCommand_Type) *pulsarproto.BaseCommand {
	frame, err := p.frames.ReadFrame()
	command := new(pulsarproto.BaseCommand)
	if err == nil {
		err = pulsarproto.DecodeCommand(command, frame.Command)
	}
	if err != nil || command.GetType() != kind {
		p.t.Errorf("read %v, %v, want %v", command.GetType(), err, kind)
		return nil
	}
	return command
}

func (p *peer) write(frames []byte) {
	if _, err := p.socket.Write(frames); err != nil {
		p.t.Error(err)
	}
}

// Answers that come at once have handlers whose requests go out, whichever order the answers have.
func TestRequestsOfHandlersGoOut(t *testing.T) {
	const requests = 100
	c, p := connect(t)
	ended := make(chan error, requests)
	for range requests {
		c.StartNewTxn(0, 1000, "", func(answer *pulsarproto.BaseCommand, err error) {
			if err != nil {
				ended <- err
				return
			}
			id := txn.ID{Least: answer.GetNewTxnResponse().GetTxnidLeastBits()}
			c.StartEndTxn(id, txn.Abort, "name", func(_ *pulsarproto.BaseCommand, err error) { ended <- err })
		})
	}
	var answers []byte
	ids := make([]uint64, requests)
	for i := range ids {
		ids[i] = p.read(pulsarproto.BaseCommand_NEW_TXN).GetNewTxn().GetRequestId()
	}
	for i := range ids {
		answers = pulsarproto.AppendNewTxnResponse(answers, ids[requests-1-i], 0, uint64(i))
	}
	p.write(answers)
	for range requests {
		end := p.read(pulsarproto.BaseCommand_END_TXN).GetEndTxn()
		if end.GetTxnAction() != pulsarproto.TxnAction_ABORT || end.GetClientName() != "name" {
			t.Errorf("got %v", end)
		}
		p.write(pulsarproto.AppendEndTxnResponse(nil, end.GetRequestId(), 0, end.GetTxnidLeastBits()))
	}
	for range requests {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// A request out of the blue does not wait for the reader.
func TestRequestWhileIdleGoesOut(t *testing.T) {
	c, p := connect(t)
	answered := make(chan error, 1)
	go func() {
		_, err := c.Begin(t.Context(), 0, 1000, "")
		answered <- err
	}()
	id := p.read(pulsarproto.BaseCommand_NEW_TXN).GetNewTxn().GetRequestId()
	p.write(pulsarproto.AppendNewTxnResponse(nil, id, 0, 1))
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

// A PING is answered although other answers come with it.
func TestPingIsAnswered(t *testing.T) {
	_, p := connect(t)
	p.write(pulsarproto.AppendPing(nil))
	p.read(pulsarproto.BaseCommand_PONG)
}

// Whoever waits when the connection ends hears of it, and so does whoever comes later.
func TestEndOfConnectionIsTold(t *testing.T) {
	c, p := connect(t)
	answered := make(chan error, 2)
	tell := func(_ *pulsarproto.BaseCommand, err error) { answered <- err }
	c.StartNewTxn(0, 1000, "", tell)
	p.read(pulsarproto.BaseCommand_NEW_TXN)
	if err := p.socket.Close(); err != nil {
		t.Fatal(err)
	}
	<-c.Done()
	c.StartNewTxn(0, 1000, "", tell)
	for range 2 {
		if err := <-answered; !errors.Is(err, ErrClosed) {
			t.Errorf("got %v, want ErrClosed", err)
		}
	}
}
