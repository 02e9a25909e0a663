package pulsarproto

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// FramePadding is how many bytes a frame's total size may exceed the max message size by.
// Source: Commands.MESSAGE_SIZE_FRAME_PADDING.
const FramePadding = 10 * 1024

const (
	sizeField       = 4
	firstAllocation = 4 << 10  // what a claimed length is worth before any of its bytes has arrived
	keptCommand     = 64 << 10 // a larger command buffer is not kept for the next frame
)

// Frame is one frame as it arrived.
type Frame struct {
	Command []byte // the encoded BaseCommand; the reader's, valid until the next ReadFrame
	Payload []byte // the payload part, nil without one; the caller's
}

// FrameReader reads frames from one connection. Not safe for concurrent use.
type FrameReader struct {
	source       *bufio.Reader
	maxTotalSize int64
	command      []byte
}

// NewFrameReader returns a reader of source whose frames are at most maxMessageSize + FramePadding bytes long.
func NewFrameReader(source *bufio.Reader, maxMessageSize int) *FrameReader {
	return &FrameReader{source: source, maxTotalSize: int64(maxMessageSize) + FramePadding}
}

// ReadFrame returns the next frame.
// Errors: *FrameError and *ForeignProtocolError, both as soon as the size field is there; io.EOF if the source ends
// between two frames and io.ErrUnexpectedEOF if it ends within one; the source's own. After an error the stream is lost.
func (r *FrameReader) ReadFrame() (Frame, error) {
	total, err := r.NextSize()
	if err != nil {
		return Frame{}, err
	}
	if err := r.discardSizeField(); err != nil {
		return Frame{}, err
	}
	commandSize, err := r.commandSize(total)
	if err != nil {
		return Frame{}, err
	}
	if cap(r.command) > keptCommand {
		r.command = nil
	}
	r.command, err = r.read(r.command[:0], commandSize)
	if err != nil {
		return Frame{}, fmt.Errorf("read command of %d bytes: %w", commandSize, err)
	}
	frame := Frame{Command: r.command}
	payloadSize := total - sizeField - commandSize
	if payloadSize == 0 {
		return frame, nil
	}
	frame.Payload, err = r.read(nil, payloadSize)
	if err != nil {
		return Frame{}, fmt.Errorf("read payload of %d bytes: %w", payloadSize, err)
	}
	return frame, nil
}

// NextSize waits for the size field of the next frame and returns the size of what follows it, in bytes, without taking it.
// Errors: those of ReadFrame.
func (r *FrameReader) NextSize() (int, error) {
	field, err := r.source.Peek(sizeField)
	if err != nil {
		if errors.Is(err, io.EOF) && len(field) > 0 {
			return 0, fmt.Errorf("read total size: %w", io.ErrUnexpectedEOF)
		}
		return 0, err
	}
	size := binary.BigEndian.Uint32(field)
	if int64(size) > r.maxTotalSize {
		first := [4]byte(field)
		if protocol, ok := foreignProtocol(first); ok {
			return 0, &ForeignProtocolError{Protocol: protocol, First: first}
		}
		return 0, &FrameError{Rule: RuleTotalSizeMaximum, Size: size, Limit: r.maxTotalSize}
	}
	if size < sizeField {
		return 0, &FrameError{Rule: RuleTotalSizeMinimum, Size: size, Limit: sizeField}
	}
	return int(size), nil
}

func (r *FrameReader) commandSize(total int) (int, error) {
	field, err := r.source.Peek(sizeField)
	if err != nil {
		return 0, fmt.Errorf("read command size: %w", unexpectedEnd(err))
	}
	size := binary.BigEndian.Uint32(field)
	if size == 0 {
		return 0, &FrameError{Rule: RuleCommandSizeMinimum, Size: size, Limit: 1}
	}
	if limit := int64(total - sizeField); int64(size) > limit {
		return 0, &FrameError{Rule: RuleCommandSizeMaximum, Size: size, Limit: limit}
	}
	return int(size), r.discardSizeField()
}

func (r *FrameReader) discardSizeField() error {
	_, err := r.source.Discard(sizeField)
	return err
}

// read appends size bytes of the source to the empty buffer, which grows with what has arrived: to twice that, at least
// to firstAllocation, never beyond size.
func (r *FrameReader) read(buffer []byte, size int) ([]byte, error) {
	for len(buffer) < size {
		if len(buffer) == cap(buffer) {
			arrived := len(buffer) + r.source.Buffered()
			grown := make([]byte, len(buffer), min(size, max(firstAllocation, 2*arrived)))
			copy(grown, buffer)
			buffer = grown
		}
		end := min(size, cap(buffer))
		n, err := io.ReadFull(r.source, buffer[len(buffer):end])
		buffer = buffer[:len(buffer)+n]
		if err != nil {
			return buffer, unexpectedEnd(err)
		}
	}
	return buffer, nil
}

func unexpectedEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
