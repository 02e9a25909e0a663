package pulsarproto

import (
	"encoding/binary"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// The Append functions append one whole frame to dst and return it, as append does; they allocate only where dst is too
// small. The ones that clients wait for most are written field by field, the others by way of a BaseCommand.

// AppendCommand appends the frame of command.
// Errors: a required field of command is absent.
func AppendCommand(dst []byte, command *BaseCommand) ([]byte, error) {
	return AppendCommandHead(dst, command, 0)
}

// AppendCommandHead appends the frame of command up to its payload part of payloadSize bytes, which the caller writes next.
// Errors: a required field of command is absent.
func AppendCommandHead(dst []byte, command *BaseCommand, payloadSize int) ([]byte, error) {
	start := len(dst)
	dst, err := proto.MarshalOptions{}.MarshalAppend(openFrame(dst), command)
	if err != nil {
		return nil, fmt.Errorf("encode command %s: %w", command.GetType(), err)
	}
	return closeFrame(dst, start, payloadSize), nil
}

// appendReply is AppendCommand for a command whose required fields are set here.
func appendReply(dst []byte, command *BaseCommand) []byte {
	dst, err := AppendCommand(dst, command)
	if err != nil {
		panic(err)
	}
	return dst
}

// openFrame appends the two size fields of a frame, which closeFrame fills in.
func openFrame(dst []byte) []byte {
	return append(dst, 0, 0, 0, 0, 0, 0, 0, 0)
}

// closeFrame ends the command of the frame that starts at start; payloadSize more bytes follow.
func closeFrame(dst []byte, start, payloadSize int) []byte {
	commandSize := len(dst) - start - 2*sizeField
	binary.BigEndian.PutUint32(dst[start:], uint32(sizeField+commandSize+payloadSize))
	binary.BigEndian.PutUint32(dst[start+sizeField:], uint32(commandSize))
	return dst
}

// openBody appends type and the head of the body that has its number, and returns where the body starts.
func openBody(dst []byte, commandType BaseCommand_Type) ([]byte, int) {
	dst = appendUint64(dst, 1, uint64(commandType))
	return openMessage(dst, protowire.Number(commandType))
}

// openMessage appends the head of a message with one byte for its length and returns where the message starts.
func openMessage(dst []byte, number protowire.Number) ([]byte, int) {
	dst = protowire.AppendTag(dst, number, protowire.BytesType)
	dst = append(dst, 0)
	return dst, len(dst)
}

// closeMessage writes the length of the message that starts at start, moving it if the length needs more than one byte.
func closeMessage(dst []byte, start int) []byte {
	size := len(dst) - start
	extra := protowire.SizeVarint(uint64(size)) - 1
	for range extra {
		dst = append(dst, 0)
	}
	copy(dst[start+extra:], dst[start:start+size])
	protowire.AppendVarint(dst[:start-1], uint64(size))
	return dst
}

func appendUint64(dst []byte, number protowire.Number, value uint64) []byte {
	dst = protowire.AppendTag(dst, number, protowire.VarintType)
	return protowire.AppendVarint(dst, value)
}

func appendString(dst []byte, number protowire.Number, value string) []byte {
	dst = protowire.AppendTag(dst, number, protowire.BytesType)
	return protowire.AppendString(dst, value)
}
