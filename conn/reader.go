package conn

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

// Sizes of the read buffer: a connection that has not shaken hands yet is cheap, so that thousands of silent ones are.
const (
	handshakeBuffer = 512
	commandBuffer   = 16 << 10
)

// errStopped ends the reader because no command is taken any more.
var errStopped = errors.New("no command is taken any more")

// inputError is input that ends its connection.
type inputError struct {
	reason BadInput
	err    error
}

func (e *inputError) Error() string { return e.err.Error() }
func (e *inputError) Unwrap() error { return e.err }

// read takes commands until the connection ends, and returns why it did.
func (s *session) read() CloseReason {
	source := bufio.NewReaderSize(s.network, handshakeBuffer)
	frames := pulsarproto.NewFrameReader(source, s.options.MaxMessageSize)
	var command pulsarproto.BaseCommand
	shaken := false
	for {
		if !shaken && s.connected.Load() {
			shaken = true
			frames = pulsarproto.NewFrameReader(s.enlarged(source), s.options.MaxMessageSize)
		}
		err := s.readCommand(frames, &command)
		s.out.frameDone()
		s.unpause()
		if err != nil {
			return s.readFailed(err)
		}
	}
}

// enlarged returns a reader that goes on where source is, with a buffer for pipelined commands.
func (s *session) enlarged(source *bufio.Reader) *bufio.Reader {
	buffered, err := source.Peek(source.Buffered())
	if err != nil || len(buffered) == 0 {
		return bufio.NewReaderSize(s.network, commandBuffer)
	}
	return bufio.NewReaderSize(io.MultiReader(bytes.NewReader(bytes.Clone(buffered)), s.network), commandBuffer)
}

// readCommand reads one frame, as soon as there is room for what is announced, and handles it. Errors: *inputError, errStopped, those of the network.
func (s *session) readCommand(frames *pulsarproto.FrameReader, command *pulsarproto.BaseCommand) error {
	size, err := frames.NextSize()
	if err != nil {
		return frameFault(err)
	}
	if !s.out.admit(size, !s.connected.Load(), s.pause) {
		return errStopped
	}
	s.unpause()
	frame, err := frames.ReadFrame()
	if err != nil {
		return frameFault(err)
	}
	s.keepAlive.noteFrame()
	if err := pulsarproto.DecodeCommand(command, frame.Command); err != nil {
		return commandFault(err)
	}
	s.options.Events.CommandReceived(command.GetType())
	return s.dispatch(command, frame, size)
}

// frameFault turns a broken rule of the frame layout into an *inputError and leaves errors of the network alone.
func frameFault(err error) error {
	var foreign *pulsarproto.ForeignProtocolError
	if errors.As(err, &foreign) {
		if foreign.Protocol == pulsarproto.ProtocolTLS {
			return &inputError{BadTLS, err}
		}
		return &inputError{BadHTTP, err}
	}
	var frame *pulsarproto.FrameError
	if errors.As(err, &frame) {
		return &inputError{BadFrameSize, err}
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return &inputError{BadFrame, err}
	}
	return err
}

func commandFault(err error) error {
	var decode *pulsarproto.DecodeError
	if errors.As(err, &decode) && decode.Fault == pulsarproto.FaultUnknownType {
		return &inputError{BadCommandType, err}
	}
	return &inputError{BadCommand, err}
}

// readFailed reports why the reader ended with err.
func (s *session) readFailed(err error) CloseReason {
	var input *inputError
	switch {
	case errors.Is(err, errStopped):
		return s.stopped()
	case errors.As(err, &input):
		s.options.Events.BadInput(input.reason)
		if skipped, logged := s.server.faults.next(); logged {
			s.log.Info().Str("fault", string(input.reason)).Err(err).Uint64("lines_skipped", skipped).Msg("connection closed for bad input")
		}
		return ClosedBadInput
	case errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed), errors.Is(err, io.ErrClosedPipe):
		return ClosedByPeer
	case s.out.isStopped():
		return s.stopped()
	}
	s.log.Debug().Err(err).Msg("read failed")
	return ClosedNetworkFailed
}

// stopped waits until the connection has ended on its own: a reader that takes no more commands does not cut off the
// answers that are still to be written.
func (s *session) stopped() CloseReason {
	<-s.ctx.Done()
	return ClosedShutdown
}
