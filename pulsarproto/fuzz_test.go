package pulsarproto

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"google.golang.org/protobuf/proto"
)

// fuzzMaxMessageSize is small, so that the fuzzer finds both sides of every limit.
const fuzzMaxMessageSize = 1 << 10

// FuzzReadFrame: any stream gives frames that, written again, are the stream, and then a typed error. A payload's buffer
// stays within the bound of the package.
func FuzzReadFrame(f *testing.F) {
	f.Add(append(rawFrame(4+3+5, 3), "cmdhello"...))
	f.Add([]byte("GET / HTTP/1.1\r\n"))
	f.Add([]byte("\x16\x03\x01\x02\x00\x01"))
	f.Add(rawFrame(0, 0))
	f.Add(rawFrame(1<<32-1, 1<<32-1))
	f.Add(rawFrame(fuzzMaxMessageSize+FramePadding, 9))
	for _, reply := range replyCases {
		f.Add(reply.append(nil))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		read := readAll(t, bytes.NewReader(stream))
		if !bytes.HasPrefix(stream, read) {
			t.Fatalf("frames are % x, stream is % x", read, stream)
		}
		if again := readAll(t, iotest.OneByteReader(bytes.NewReader(stream))); !bytes.Equal(again, read) {
			t.Fatalf("byte by byte the frames are % x, want % x", again, read)
		}
	})
}

// readAll reads frames until an error and returns them written again.
func readAll(t *testing.T, source io.Reader) []byte {
	reader := NewFrameReader(bufio.NewReader(source), fuzzMaxMessageSize)
	var written []byte
	for {
		frame, err := reader.ReadFrame()
		if err != nil {
			checkReadError(t, err)
			return written
		}
		if len(frame.Command) == 0 || len(frame.Command)+len(frame.Payload)+sizeField > fuzzMaxMessageSize+FramePadding {
			t.Fatalf("command of %d and payload of %d bytes", len(frame.Command), len(frame.Payload))
		}
		start := len(written)
		written = closeFrame(append(openFrame(written), frame.Command...), start, len(frame.Payload))
		written = append(written, frame.Payload...)
	}
}

func checkReadError(t *testing.T, err error) {
	var frameError *FrameError
	var foreign *ForeignProtocolError
	if err != io.EOF && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.As(err, &frameError) && !errors.As(err, &foreign) {
		t.Fatalf("untyped error %v", err)
	}
}

// FuzzParsePayload: any bytes give metadata that protobuf agrees with, or a typed error, and never change.
func FuzzParsePayload(f *testing.F) {
	payload := mustAppendPayload(f, testMetadata(), "hello")
	f.Add(payload)
	f.Add(payload[6:])
	f.Add(payload[:5])
	f.Add([]byte{0, 0, 0, 0})
	f.Add([]byte{255, 255, 255, 255})
	f.Add([]byte{0x0e, 0x02, 0, 0, 0, 2, 8, 1, 0x0e, 0x01})
	f.Fuzz(func(t *testing.T, payload []byte) {
		for _, part := range [][]byte{payload, AppendChecksummed(nil, payload)} {
			before := bytes.Clone(part)
			metadata, content, err := ParsePayload(part)
			if !bytes.Equal(part, before) {
				t.Fatal("payload has changed")
			}
			if err != nil {
				var payloadError *PayloadError
				if !errors.Is(err, ErrChecksum) && !errors.As(err, &payloadError) {
					t.Fatalf("untyped error %v", err)
				}
				continue
			}
			if !bytes.HasSuffix(part, content) {
				t.Fatalf("content % x is not the end of % x", content, part)
			}
			rebuilt, err := AppendPayload(nil, metadata, content)
			if err != nil {
				t.Fatal(err)
			}
			again, sameContent, err := ParsePayload(rebuilt)
			if err != nil || !proto.Equal(again, metadata) || !bytes.Equal(sameContent, content) {
				t.Fatalf("written again: %v %v, want %v", again, err, metadata)
			}
		}
	})
}

// FuzzDecodeCommand: what decodes encodes back the same; what does not gives a typed error.
func FuzzDecodeCommand(f *testing.F) {
	for _, reply := range replyCases {
		f.Add(mustMarshal(f, reply.want))
	}
	f.Add(encodedCommand(BaseCommand_NEW_TXN, []byte{8, 1, 0x20, 1}))
	f.Add(encodedCommand(BaseCommand_END_TXN, []byte{8, 1, 0x20, 7}))
	f.Add(encodedCommand(99, nil))
	f.Add([]byte{8, 50})
	f.Fuzz(func(t *testing.T, encoded []byte) {
		command := new(BaseCommand)
		if err := DecodeCommand(command, encoded); err != nil {
			var decodeError *DecodeError
			if !errors.As(err, &decodeError) {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		Scalable(command)
		written, err := proto.MarshalOptions{AllowPartial: true}.Marshal(command)
		if err != nil {
			t.Fatal(err)
		}
		again := new(BaseCommand)
		if err := DecodeCommand(again, written); err != nil {
			t.Fatalf("written again: %v", err)
		}
		if !proto.Equal(again, command) {
			t.Fatalf("written again: %v, want %v", again, command)
		}
	})
}
