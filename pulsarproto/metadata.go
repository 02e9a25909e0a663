package pulsarproto

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// metadataBlock holds a MessageMetadata and the fields that nearly every message sets, so that one allocation serves all.
type metadataBlock struct {
	metadata           MessageMetadata
	producerName       string
	partitionKey       string
	sequenceID         uint64
	publishTime        uint64
	eventTime          uint64
	highestSequenceID  uint64
	txnLeastBits       uint64
	txnMostBits        uint64
	compression        CompressionType
	uncompressedSize   uint32
	numMessagesInBatch int32
}

// decodeMetadata parses encoded as proto.Unmarshal would, required fields included, and faster where only the fields of
// metadataBlock are set.
func decodeMetadata(encoded []byte) (*MessageMetadata, error) {
	block := new(metadataBlock)
	if block.scan(encoded) {
		return &block.metadata, nil
	}
	metadata := new(MessageMetadata)
	if err := proto.Unmarshal(encoded, metadata); err != nil {
		return nil, err
	}
	return metadata, nil
}

// scan fills the block; false if encoded has other fields, other wire types, or a fault.
func (b *metadataBlock) scan(encoded []byte) bool {
	for len(encoded) > 0 {
		number, wireType, n := protowire.ConsumeTag(encoded)
		if n < 0 {
			return false
		}
		encoded = encoded[n:]
		switch wireType {
		case protowire.VarintType:
			n = b.scanVarint(encoded, number)
		case protowire.BytesType:
			n = b.scanBytes(encoded, number)
		default:
			return false
		}
		if n < 0 {
			return false
		}
		encoded = encoded[n:]
	}
	return b.metadata.ProducerName != nil && b.metadata.SequenceId != nil && b.metadata.PublishTime != nil
}

const notScanned = -1

// scanVarint takes one value and returns its length, or a negative number.
func (b *metadataBlock) scanVarint(encoded []byte, number protowire.Number) int {
	value, n := protowire.ConsumeVarint(encoded)
	switch number {
	case 2:
		b.sequenceID, b.metadata.SequenceId = value, &b.sequenceID
	case 3:
		b.publishTime, b.metadata.PublishTime = value, &b.publishTime
	case 8:
		b.compression, b.metadata.Compression = CompressionType(value), &b.compression
	case 9:
		b.uncompressedSize, b.metadata.UncompressedSize = uint32(value), &b.uncompressedSize
	case 11:
		b.numMessagesInBatch, b.metadata.NumMessagesInBatch = int32(value), &b.numMessagesInBatch
	case 12:
		b.eventTime, b.metadata.EventTime = value, &b.eventTime
	case 22:
		b.txnLeastBits, b.metadata.TxnidLeastBits = value, &b.txnLeastBits
	case 23:
		b.txnMostBits, b.metadata.TxnidMostBits = value, &b.txnMostBits
	case 24:
		b.highestSequenceID, b.metadata.HighestSequenceId = value, &b.highestSequenceID
	default:
		return notScanned
	}
	return n
}

// scanBytes is scanVarint for strings.
func (b *metadataBlock) scanBytes(encoded []byte, number protowire.Number) int {
	value, n := protowire.ConsumeBytes(encoded)
	switch number {
	case 1:
		b.producerName, b.metadata.ProducerName = string(value), &b.producerName
	case 6:
		b.partitionKey, b.metadata.PartitionKey = string(value), &b.partitionKey
	default:
		return notScanned
	}
	return n
}
