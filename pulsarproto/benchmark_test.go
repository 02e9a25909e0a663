package pulsarproto

import (
	"bufio"
	"bytes"
	"maps"
	"slices"
	"testing"
)

// benchmarkCommands are the requests of one transaction with one message.
func benchmarkCommands() map[string]*BaseCommand {
	id, most, least := new(uint64(1<<20)), new(uint64(3)), new(uint64(1<<50))
	return map[string]*BaseCommand{
		"NEW_TXN": {Type: BaseCommand_NEW_TXN.Enum(), NewTxn: &CommandNewTxn{
			RequestId: id, TxnTtlSeconds: new(uint64(60_000)), TcId: most}},
		"END_TXN": {Type: BaseCommand_END_TXN.Enum(), EndTxn: &CommandEndTxn{
			RequestId: id, TxnidMostBits: most, TxnidLeastBits: least, TxnAction: TxnAction_COMMIT.Enum()}},
		"SEND": {Type: BaseCommand_SEND.Enum(), Send: &CommandSend{
			ProducerId: new(uint64(1)), SequenceId: id, NumMessages: new(int32(1)), TxnidMostBits: most, TxnidLeastBits: least}},
	}
}

func BenchmarkDecodeCommand(b *testing.B) {
	commands := benchmarkCommands()
	for _, name := range slices.Sorted(maps.Keys(commands)) {
		encoded := mustMarshal(b, commands[name])
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			command := new(BaseCommand)
			for b.Loop() {
				if err := DecodeCommand(command, encoded); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// repeated is an endless stream of one frame.
type repeated struct {
	frame []byte
	next  int
}

func (r *repeated) Read(p []byte) (int, error) {
	n := copy(p, r.frame[r.next:])
	r.next = (r.next + n) % len(r.frame)
	return n, nil
}

// A SEND as it comes in: read, decode, verify, parse the metadata.
func BenchmarkReadSend(b *testing.B) {
	for name, size := range map[string]int{"100B": 100, "100KiB": 100 << 10} {
		b.Run(name, func(b *testing.B) {
			payload := mustAppendPayload(b, testMetadata(), string(bytes.Repeat([]byte("x"), size)))
			head, err := AppendCommandHead(nil, benchmarkCommands()["SEND"], len(payload))
			if err != nil {
				b.Fatal(err)
			}
			frame := append(head, payload...)
			reader := NewFrameReader(bufio.NewReaderSize(&repeated{frame: frame}, 32<<10), testMaxMessageSize)
			command := new(BaseCommand)
			b.ReportAllocs()
			b.SetBytes(int64(len(frame)))
			for b.Loop() {
				frame, err := reader.ReadFrame()
				if err != nil {
					b.Fatal(err)
				}
				if err := DecodeCommand(command, frame.Command); err != nil {
					b.Fatal(err)
				}
				if _, _, err := ParsePayload(frame.Payload); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkAppend(b *testing.B) {
	for _, name := range slices.Sorted(maps.Keys(hotReplies)) {
		write := hotReplies[name]
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			buffer := make([]byte, 0, 1024)
			for b.Loop() {
				write(buffer)
			}
		})
	}
}
