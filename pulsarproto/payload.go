package pulsarproto

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"google.golang.org/protobuf/proto"
)

const (
	payloadMagic  = 0x0e01 // Source: Commands.magicCrc32c
	magicField    = 2
	checksumField = 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ErrChecksum is a payload part whose checksum does not hold, or that ends within the checksum.
var ErrChecksum = errors.New("checksum of the payload does not match")

// PayloadFault says what is wrong with a payload part; short and fixed, fit for a metric's label.
type PayloadFault string

// The faults a PayloadError can name.
const (
	FaultNoMetadata         PayloadFault = "no_metadata"         // it ends before the metadata size
	FaultMetadataSize       PayloadFault = "metadata_size"       // the metadata size is beyond its end
	FaultMetadataUnparsable PayloadFault = "metadata_unparsable" // or a required field is absent
)

// PayloadError is a payload part that no consumer could read.
type PayloadError struct {
	Fault PayloadFault
	Err   error // with FaultMetadataUnparsable: the parser's
}

func (e *PayloadError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("payload part: %s: %v", e.Fault, e.Err)
	}
	return fmt.Sprintf("payload part: %s", e.Fault)
}

func (e *PayloadError) Unwrap() error { return e.Err }

// ParsePayload verifies the checksum of a payload part, if it has one, and returns its metadata, which refers to nothing
// of payload, and its content, which is the end of payload.
// Errors: ErrChecksum, *PayloadError.
func ParsePayload(payload []byte) (*MessageMetadata, []byte, error) {
	rest, err := verifyChecksum(payload)
	if err != nil {
		return nil, nil, err
	}
	if len(rest) < sizeField {
		return nil, nil, &PayloadError{Fault: FaultNoMetadata}
	}
	size := binary.BigEndian.Uint32(rest)
	rest = rest[sizeField:]
	if uint64(size) > uint64(len(rest)) {
		return nil, nil, &PayloadError{Fault: FaultMetadataSize}
	}
	metadata := new(MessageMetadata)
	if err := unmarshal(rest[:size], metadata); err != nil {
		return nil, nil, &PayloadError{Fault: FaultMetadataUnparsable, Err: err}
	}
	if err := proto.CheckInitialized(metadata); err != nil {
		return nil, nil, &PayloadError{Fault: FaultMetadataUnparsable, Err: err}
	}
	return metadata, rest[size:], nil
}

// HasChecksum reports whether a payload part starts with magic and checksum. The Go client drops a MESSAGE without them.
func HasChecksum(payload []byte) bool {
	return len(payload) >= magicField && binary.BigEndian.Uint16(payload) == payloadMagic
}

// WithoutChecksum returns a payload part that has been verified without magic and checksum, in the same memory.
func WithoutChecksum(payload []byte) []byte {
	if !HasChecksum(payload) {
		return payload
	}
	return payload[magicField+checksumField:]
}

// verifyChecksum returns what follows the checksum, or all of payload if it has none.
func verifyChecksum(payload []byte) ([]byte, error) {
	if !HasChecksum(payload) {
		return payload, nil
	}
	if len(payload) < magicField+checksumField {
		return nil, ErrChecksum
	}
	rest := payload[magicField+checksumField:]
	if crc32.Checksum(rest, castagnoli) != binary.BigEndian.Uint32(payload[magicField:]) {
		return nil, ErrChecksum
	}
	return rest, nil
}

// AppendPayload appends a payload part of metadata and content, with its checksum. For what the broker or a test writes
// itself; what a producer sent is stored and delivered unchanged.
func AppendPayload(dst []byte, metadata *MessageMetadata, content []byte) ([]byte, error) {
	start := len(dst)
	dst = binary.BigEndian.AppendUint16(dst, payloadMagic)
	dst = append(dst, 0, 0, 0, 0, 0, 0, 0, 0)
	metadataStart := len(dst)
	dst, err := proto.MarshalOptions{}.MarshalAppend(dst, metadata)
	if err != nil {
		return nil, fmt.Errorf("encode message metadata: %w", err)
	}
	binary.BigEndian.PutUint32(dst[metadataStart-sizeField:], uint32(len(dst)-metadataStart))
	return sealPayload(append(dst, content...), start), nil
}

// AppendChecksummed appends payload, a payload part without a checksum, behind magic and checksum.
func AppendChecksummed(dst, payload []byte) []byte {
	start := len(dst)
	dst = binary.BigEndian.AppendUint16(dst, payloadMagic)
	dst = append(dst, 0, 0, 0, 0)
	return sealPayload(append(dst, payload...), start)
}

// sealPayload writes the checksum of the payload part that starts at start and reaches to the end.
func sealPayload(dst []byte, start int) []byte {
	checksumStart := start + magicField
	checksum := crc32.Checksum(dst[checksumStart+checksumField:], castagnoli)
	binary.BigEndian.PutUint32(dst[checksumStart:], checksum)
	return dst
}
