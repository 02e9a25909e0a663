package pulsarproto

import (
	"encoding/base64"
	"encoding/binary"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

// DeliveryFields is what of a message's metadata decides to whom and when it is delivered. The byte slices refer to the
// payload that they were read from.
type DeliveryFields struct {
	Producer         []byte
	SequenceID       uint64
	PartitionKey     []byte
	PartitionKeyB64  bool
	OrderingKey      []byte
	HasPartitionKey  bool
	HasOrderingKey   bool
	DeliverAt        int64 // ms since the epoch; 0: at once
	UUID             []byte
	ChunkID, Chunks  int32 // of a message in chunks; Chunks is 0 otherwise
	readable, hasSeq bool
}

// ReadDeliveryFields reads the fields of a payload part, and allocates nothing. What cannot be read has none: it is delivered
// as it is.
func ReadDeliveryFields(payload []byte) DeliveryFields {
	var f DeliveryFields
	if HasChecksum(payload) {
		payload = payload[min(len(payload), magicField+checksumField):]
	}
	if len(payload) < sizeField {
		return f
	}
	size := binary.BigEndian.Uint32(payload)
	payload = payload[sizeField:]
	if uint64(size) > uint64(len(payload)) || !f.read(payload[:size]) {
		return DeliveryFields{}
	}
	f.readable = true
	return f
}

// read goes over encoded MessageMetadata. It reports false if that is broken.
func (f *DeliveryFields) read(metadata []byte) bool {
	for len(metadata) > 0 {
		number, kind, n := protowire.ConsumeTag(metadata)
		if n < 0 {
			return false
		}
		metadata = metadata[n:]
		switch kind {
		case protowire.BytesType:
			value, n := protowire.ConsumeBytes(metadata)
			if n < 0 {
				return false
			}
			f.takeBytes(number, value)
			metadata = metadata[n:]
		case protowire.VarintType:
			value, n := protowire.ConsumeVarint(metadata)
			if n < 0 {
				return false
			}
			f.takeVarint(number, value)
			metadata = metadata[n:]
		default:
			n := protowire.ConsumeFieldValue(number, kind, metadata)
			if n < 0 {
				return false
			}
			metadata = metadata[n:]
		}
	}
	return true
}

func (f *DeliveryFields) takeBytes(number protowire.Number, value []byte) {
	switch number {
	case 1:
		f.Producer = value
	case 6:
		f.PartitionKey, f.HasPartitionKey = value, true
	case 18:
		f.OrderingKey, f.HasOrderingKey = value, true
	case 26:
		f.UUID = value
	}
}

func (f *DeliveryFields) takeVarint(number protowire.Number, value uint64) {
	switch number {
	case 2:
		f.SequenceID, f.hasSeq = value, true
	case 17:
		f.PartitionKeyB64 = value != 0
	case 19:
		f.DeliverAt = int64(value)
	case 27:
		f.Chunks = int32(value)
	case 29:
		f.ChunkID = int32(value)
	}
}

// StickyKey is the key by which Key_Shared orders: the ordering key, else the partition key, else producer and sequence id, so
// that messages without a key spread and the chunks of one stay together. A key that is flagged as base64 and is not counts
// as it is.
//
// Source: Commands.resolveStickyKey.
func (f *DeliveryFields) StickyKey() []byte {
	switch {
	case f.HasOrderingKey:
		return f.OrderingKey
	case f.HasPartitionKey && f.PartitionKeyB64:
		if key, err := base64.StdEncoding.AppendDecode(nil, f.PartitionKey); err == nil {
			return key
		}
		return f.PartitionKey
	case f.HasPartitionKey:
		return f.PartitionKey
	case f.readable && f.hasSeq:
		return strconv.AppendInt(append(append(make([]byte, 0, len(f.Producer)+20), f.Producer...), '-'), int64(f.SequenceID), 10)
	}
	return []byte("NONE_KEY")
}
