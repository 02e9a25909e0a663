package pulsarproto

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
)

const testMaxMessageSize = 5 << 20

// rawFrame writes size fields and bytes as they are, right or wrong.
func rawFrame(total, commandSize uint32, rest ...byte) []byte {
	frame := binary.BigEndian.AppendUint32(nil, total)
	frame = binary.BigEndian.AppendUint32(frame, commandSize)
	return append(frame, rest...)
}

func newTestReader(source io.Reader) *FrameReader {
	return NewFrameReader(bufio.NewReader(source), testMaxMessageSize)
}

func TestReadFrame(t *testing.T) {
	large := bytes.Repeat([]byte("payload "), testMaxMessageSize/8)
	tests := []struct {
		name    string
		command []byte
		payload []byte
	}{
		{"simple", []byte("c"), nil},
		{"payload", []byte("command"), []byte("p")},
		{"payload of the first allocation", []byte("command"), large[:firstAllocation]},
		{"payload beyond the first allocation", []byte("command"), large[:firstAllocation+1]},
		{"largest payload", large[:FramePadding-2*sizeField+sizeField], large},
		{"largest command", large[:testMaxMessageSize], nil},
		{"small command after a large one", []byte("c"), nil},
	}
	var stream []byte
	for _, test := range tests {
		size := len(test.command)
		stream = append(stream, rawFrame(uint32(sizeField+size+len(test.payload)), uint32(size))...)
		stream = append(append(stream, test.command...), test.payload...)
	}
	sources := map[string]io.Reader{
		"whole":        bytes.NewReader(stream),
		"half":         iotest.HalfReader(bytes.NewReader(stream)),
		"data and EOF": iotest.DataErrReader(bytes.NewReader(stream)),
		"byte by byte": iotest.OneByteReader(bytes.NewReader(stream)),
	}
	for name, source := range sources {
		reader := newTestReader(source)
		for _, test := range tests {
			for range 2 { // asking takes nothing
				size, err := reader.NextSize()
				if want := sizeField + len(test.command) + len(test.payload); err != nil || size != want {
					t.Fatalf("%s, %s: size %d, %v, want %d", name, test.name, size, err, want)
				}
			}
			frame, err := reader.ReadFrame()
			if err != nil {
				t.Fatalf("%s, %s: %v", name, test.name, err)
			}
			if !bytes.Equal(frame.Command, test.command) || !bytes.Equal(frame.Payload, test.payload) {
				t.Errorf("%s, %s: command of %d and payload of %d bytes are not what was sent", name, test.name, len(frame.Command), len(frame.Payload))
			}
			if (frame.Payload == nil) != (test.payload == nil) {
				t.Errorf("%s, %s: payload nil is %v", name, test.name, frame.Payload == nil)
			}
		}
		if _, err := reader.ReadFrame(); err != io.EOF {
			t.Errorf("%s: %v at the end, want EOF", name, err)
		}
	}
}

// FC-29: a size field that breaks a rule is refused from the header alone: reading on would block.
func TestReadFrameRefusesSizes(t *testing.T) {
	const maxTotal = testMaxMessageSize + FramePadding
	tests := []struct {
		name   string
		stream []byte
		want   FrameError
	}{
		{"zero", []byte{0, 0, 0, 0}, FrameError{RuleTotalSizeMinimum, 0, 4}},
		{"no command size", []byte{0, 0, 0, 3}, FrameError{RuleTotalSizeMinimum, 3, 4}},
		{"largest number", []byte{255, 255, 255, 255}, FrameError{RuleTotalSizeMaximum, 1<<32 - 1, maxTotal}},
		{"one beyond", binary.BigEndian.AppendUint32(nil, maxTotal+1), FrameError{RuleTotalSizeMaximum, maxTotal + 1, maxTotal}},
		{"command of nothing", rawFrame(4, 0), FrameError{RuleCommandSizeMinimum, 0, 1}},
		{"command of nothing before a payload", rawFrame(8, 0), FrameError{RuleCommandSizeMinimum, 0, 1}},
		{"command in an empty frame", rawFrame(4, 1), FrameError{RuleCommandSizeMaximum, 1, 0}},
		{"command beyond the frame", rawFrame(20, 17), FrameError{RuleCommandSizeMaximum, 17, 16}},
		{"command of the largest number", rawFrame(20, 1<<32-1), FrameError{RuleCommandSizeMaximum, 1<<32 - 1, 16}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			blocked := errors.New("read beyond the header")
			_, err := newTestReader(io.MultiReader(bytes.NewReader(test.stream), iotest.ErrReader(blocked))).ReadFrame()
			var frameError *FrameError
			if !errors.As(err, &frameError) || *frameError != test.want {
				t.Fatalf("error %v, want %v", err, &test.want)
			}
			if !strings.Contains(err.Error(), string(test.want.Rule)) {
				t.Errorf("%q does not name the rule", err)
			}
		})
	}
}

// FC-29: TLS and HTTP on the plain port are named.
func TestReadFrameNamesForeignProtocol(t *testing.T) {
	tests := []struct {
		stream string
		want   Protocol
	}{
		{"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", ProtocolTLS},
		{"\x16\x03\x03\x00\x7a", ProtocolTLS},
		{"GET / HTTP/1.1\r\n", ProtocolHTTP},
		{"POST /admin HTTP/1.1\r\n", ProtocolHTTP},
		{"PUT / HTTP/1.1\r\n", ProtocolHTTP},
		{"HEAD / HTTP/1.1\r\n", ProtocolHTTP},
		{"OPTIONS * HTTP/1.1\r\n", ProtocolHTTP},
		{"DELETE / HTTP/1.1\r\n", ProtocolHTTP},
		{"PATCH / HTTP/1.1\r\n", ProtocolHTTP},
		{"CONNECT a:1 HTTP/1.1\r\n", ProtocolHTTP},
		{"TRACE / HTTP/1.1\r\n", ProtocolHTTP},
		{"PRI * HTTP/2.0\r\n", ProtocolHTTP},
	}
	for _, test := range tests {
		_, err := newTestReader(strings.NewReader(test.stream)).ReadFrame()
		var foreign *ForeignProtocolError
		if !errors.As(err, &foreign) {
			t.Errorf("%q: error %v", test.stream, err)
			continue
		}
		if foreign.Protocol != test.want || string(foreign.First[:]) != test.stream[:4] {
			t.Errorf("%q: %v", test.stream, err)
		}
		if !strings.Contains(err.Error(), string(test.want)) {
			t.Errorf("%q does not name %s", err, test.want)
		}
	}
}

func TestReadFrameCutShort(t *testing.T) {
	whole := append(rawFrame(4+3+5, 3), "cmdhello"...)
	for end := 1; end < len(whole); end++ {
		if _, err := newTestReader(bytes.NewReader(whole[:end])).ReadFrame(); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("cut after %d bytes: %v, want unexpected EOF", end, err)
		}
	}
}

func TestReadFramePassesSourceError(t *testing.T) {
	reset := errors.New("connection reset")
	whole := append(rawFrame(4+3+5, 3), "cmdhello"...)
	for end := range len(whole) {
		source := io.MultiReader(bytes.NewReader(whole[:end]), iotest.ErrReader(reset))
		if _, err := newTestReader(source).ReadFrame(); !errors.Is(err, reset) {
			t.Errorf("reset after %d bytes: %v", end, err)
		}
	}
}

// FC-29: a valid length and then silence costs the peer's bytes, not the broker's memory.
func TestReadFrameAllocatesWhatArrives(t *testing.T) {
	const readers = 100
	for _, arrived := range []int{0, 1, 100_000} {
		stream := append(rawFrame(testMaxMessageSize, 4), "cmd."...)
		stream = append(stream, make([]byte, arrived)...)
		sources := make([]*FrameReader, readers)
		for i := range sources {
			sources[i] = newTestReader(bytes.NewReader(stream))
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for _, reader := range sources {
			if _, err := reader.ReadFrame(); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Fatal(err)
			}
		}
		runtime.ReadMemStats(&after)
		// All buffers that doubling leaves behind, the command's, and error values.
		limit := uint64(readers * (4*arrived + 3*firstAllocation))
		if got := after.TotalAlloc - before.TotalAlloc; got > limit {
			t.Errorf("%d bytes arrived: %d readers allocated %d bytes, want at most %d", arrived, readers, got, limit)
		}
	}
}

func TestReadFrameKeepsNoLargeCommand(t *testing.T) {
	large := append(rawFrame(4+1<<20, 1<<20), make([]byte, 1<<20)...)
	reader := newTestReader(bytes.NewReader(append(large, append(rawFrame(5, 1), 'c')...)))
	for range 2 {
		if _, err := reader.ReadFrame(); err != nil {
			t.Fatal(err)
		}
	}
	if cap(reader.command) > keptCommand {
		t.Errorf("keeps %d bytes for commands", cap(reader.command))
	}
}

func TestReadFramePayloadIsTheCallers(t *testing.T) {
	one := append(rawFrame(4+1+3, 1), "aone"...)
	two := append(rawFrame(4+1+3, 1), "btwo"...)
	reader := newTestReader(bytes.NewReader(append(one, two...)))
	first, err := reader.ReadFrame()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reader.ReadFrame(); err != nil {
		t.Fatal(err)
	}
	if string(first.Payload) != "one" {
		t.Errorf("the next frame changed the payload to %q", first.Payload)
	}
}
