package conn

import (
	"errors"
	"net"
	"os"
	"time"
)

// writeChunk is how much is written under one deadline, so that a slow reader is told from one that does not read.
const writeChunk = 256 << 10

// write sends what the outbox holds until the connection ends or everything is flushed.
func (s *session) write() {
	var taken batch
	for s.out.take(&taken) {
		if err := s.writeBatch(taken.segments); err != nil {
			s.close(writeFault(err))
			return
		}
		taken.recycle()
	}
	s.mu.Lock()
	reason := s.flushed
	s.mu.Unlock()
	if reason != "" {
		s.sayGoodbye()
		s.close(reason)
	}
}

// writeBatch writes segments in order and reports each chunk to the outbox.
func (s *session) writeBatch(segments [][]byte) error {
	var chunk net.Buffers
	size := 0
	for i, segment := range segments {
		for len(segment) > 0 {
			part := segment[:min(len(segment), writeChunk-size)]
			segment = segment[len(part):]
			chunk = append(chunk, part)
			size += len(part)
			if size < writeChunk && (i < len(segments)-1 || len(segment) > 0) {
				continue
			}
			if err := s.writeChunk(chunk); err != nil {
				return err
			}
			s.out.written(size)
			chunk, size = chunk[:0], 0
		}
	}
	return nil
}

// writeChunk writes all of chunk before the write timeout.
func (s *session) writeChunk(chunk net.Buffers) error {
	if err := s.network.SetWriteDeadline(time.Now().Add(s.options.WriteTimeout)); err != nil {
		return err
	}
	if len(chunk) == 1 {
		_, err := s.network.Write(chunk[0])
		return err
	}
	_, err := chunk.WriteTo(s.network)
	return err
}

func writeFault(err error) CloseReason {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return ClosedNotReading
	case errors.Is(err, net.ErrClosed):
		return ClosedByPeer
	}
	return ClosedNetworkFailed
}
