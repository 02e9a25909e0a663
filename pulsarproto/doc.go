// Package pulsarproto is Pulsar's binary protocol as bytes: the messages of pulsar_api.proto with their generated Go, the
// frames around them, the checksummed payload part, and one Append function per answer. It opens no connection and knows
// no rule of a broker.
//
// A frame, all integers big-endian:
//
//	4  total size: the number of bytes after this field, at most max message size + FramePadding
//	4  command size: at least 1
//	n  BaseCommand
//	   payload part: only behind SEND and MESSAGE, reaches to the end of the frame
//
// A payload part; magic and checksum may both be absent:
//
//	2  magic 0x0e01
//	4  CRC32C (Castagnoli) of all that follows this field
//	4  metadata size
//	m  MessageMetadata
//	   content: one message, or a batch of them
//
// Invariants: a peer's size field never makes the package allocate more than 4 KiB beyond twice what has arrived. Stored
// payload parts go out as they came in; a checksum is computed only to verify one or for a payload part built here.
//
// Source: Pulsar's binary protocol specification, sections Framing and Payload commands; its Commands.java.
package pulsarproto

//go:generate go run ./internal/generate
