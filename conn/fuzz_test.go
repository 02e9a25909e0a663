package conn

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

// stream is a connection whose peer has sent everything and reads nothing.
type stream struct{ input io.Reader }

func (s *stream) Read(b []byte) (int, error)       { return s.input.Read(b) }
func (s *stream) Write(b []byte) (int, error)      { return len(b), nil }
func (s *stream) Close() error                     { return nil }
func (s *stream) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (s *stream) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (s *stream) SetDeadline(time.Time) error      { return nil }
func (s *stream) SetReadDeadline(time.Time) error  { return nil }
func (s *stream) SetWriteDeadline(time.Time) error { return nil }

// Whatever bytes come, in front of the handshake or behind it, a session ends without a panic and attaches nothing for good.
func FuzzSession(f *testing.F) {
	f.Add([]byte{}, true)
	f.Add(tlsHello, false)
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"), false)
	requestID := uint64(5)
	var all []byte
	for _, command := range []*pulsarproto.BaseCommand{
		pingCommand(), pongCommand(), connectCommand(21),
		tcConnectCommand(1, 0), newTxnCommand(2, 1), addPartitionCommand(3, 1, 0, "t"), addSubscriptionCommand(4, 1, 0, "t", "s"),
		endTxnCommand(5, 1, 0, 0), endOnPartitionCommand(6, 1, 0, "t"), endOnSubscriptionCommand(7, 1, 0, "t", "s"),
		metadataCommand(8, "t"), lookupCommand(9, "t"), producerCommand(10, 1, "t"), subscribeCommand(11, 1, "t"),
		flowCommand(1, 10), ackCommand(&requestID, 1, 5, 6), seekCommand(12, 1), unsubscribeCommand(13, 1),
		lastMessageIDCommand(14, 1), closeConsumerCommand(15, 1), closeProducerCommand(16, 1),
	} {
		frame := encodeFrame(f, command, nil)
		f.Add(frame, true)
		all = append(all, frame...)
	}
	f.Add(all, true)
	f.Add(encodeFrame(f, sendCommand(1, 0), payloadOf(f, "content")), true)
	f.Add(append(encodeFrame(f, producerCommand(1, 1, "t"), nil),
		encodeFrame(f, sendCommand(1, 0), []byte{0x0e, 0x01, 0, 0, 0, 0, 0, 0, 0, 1})...), true)
	connect := encodeFrame(f, connectCommand(21), nil)
	f.Fuzz(func(t *testing.T, input []byte, connected bool) {
		b := newBench(t, Options{MaxMessageSize: 64 << 10})
		if connected {
			input = append(bytes.Clone(connect), input...)
		}
		b.ServeConn(&stream{bytes.NewReader(input)})
		b.goroutines.Wait()
		if b.lastClosed() == "" || b.connections() != 0 {
			t.Error("the session has not ended")
		}
		for i, p := range b.topics.producers {
			if p.closed() != 1 {
				t.Errorf("producer %d was closed %d times", i, p.closed())
			}
		}
	})
}

// A read that ends in an error of its own is not the peer's end.
func TestReadFails(t *testing.T) {
	b := newBench(t, Options{})
	b.ServeConn(&stream{io.MultiReader(failing{})})
	b.goroutines.Wait()
	if got := b.lastClosed(); got != ClosedNetworkFailed {
		t.Errorf("closed for %q", got)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) {
	return 0, errors.Join(errors.New("link is down"), os.ErrInvalid)
}
