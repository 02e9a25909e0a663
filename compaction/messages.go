package compaction

import (
	"encoding/binary"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topic/ledger"
)

// message is one message of an entry.
type message struct {
	key       string
	keyed     bool
	tombstone bool
	gone      bool   // an earlier compaction took it out
	bytes     []byte // in a batch: size, metadata and payload
}

// content is an entry taken apart.
type content struct {
	metadata *pulsarproto.MessageMetadata
	messages []message
	opaque   bool // it cannot be looked into
}

// chunk reports whether the entry is a part of one message only.
func (c *content) chunk() bool {
	return c.metadata.GetNumChunksFromMsg() > 1 && c.metadata.NumMessagesInBatch == nil
}

// open takes an entry apart, of which the messages in gone are. One that no consumer could read is opaque.
func (c *codec) open(e *ledger.Entry, gone ledger.Bits) content {
	metadata, body, err := pulsarproto.ParsePayload(e.Payload)
	if err != nil {
		return content{opaque: true}
	}
	encrypted := len(metadata.GetEncryptionKeys()) > 0
	if metadata.NumMessagesInBatch == nil {
		empty := len(body) == 0 || !encrypted && metadata.UncompressedSize != nil && metadata.GetUncompressedSize() == 0 &&
			metadata.GetCompression() != pulsarproto.CompressionType_NONE
		return content{metadata: metadata, messages: []message{{
			key: metadata.GetPartitionKey(), keyed: metadata.PartitionKey != nil, tombstone: metadata.GetNullValue() || empty,
		}}}
	}
	if encrypted {
		return content{opaque: true}
	}
	plain, err := c.decompress(metadata.GetCompression(), body, metadata.GetUncompressedSize())
	if err != nil {
		return content{opaque: true}
	}
	messages, err := split(plain, int(metadata.GetNumMessagesInBatch()))
	if err != nil || len(messages) != e.BatchSize() {
		return content{opaque: true}
	}
	for i := range messages {
		messages[i].gone = messages[i].gone || gone != nil && has(gone, i)
	}
	return content{metadata: metadata, messages: messages}
}

// maxBatchMessages bounds the messages of a batch that is looked into.
const maxBatchMessages = 1 << 20

var errBatch = errors.New("the batch ends within a message")

// split returns the n messages of a batch.
func split(batch []byte, n int) ([]message, error) {
	const sizeField = 4
	if n < 0 || n > min(len(batch)/sizeField, maxBatchMessages) {
		return nil, fmt.Errorf("%w: %d messages in %d bytes", errBatch, n, len(batch))
	}
	messages := make([]message, 0, n)
	for range n {
		if len(batch) < sizeField {
			return nil, errBatch
		}
		size := int64(binary.BigEndian.Uint32(batch))
		if size > int64(len(batch)-sizeField) {
			return nil, errBatch
		}
		var single pulsarproto.SingleMessageMetadata
		if err := proto.Unmarshal(batch[sizeField:sizeField+size], &single); err != nil {
			return nil, fmt.Errorf("metadata of a message in a batch: %w", err)
		}
		end := sizeField + size + int64(single.GetPayloadSize())
		if single.GetPayloadSize() < 0 || end > int64(len(batch)) {
			return nil, errBatch
		}
		messages = append(messages, message{
			key: single.GetPartitionKey(), keyed: single.PartitionKey != nil, gone: single.GetCompactedOut(),
			tombstone: single.GetNullValue() || single.GetPayloadSize() == 0, bytes: batch[:end],
		})
		batch = batch[end:]
	}
	return messages, nil
}

// join is the way back, with placeholders for the messages that are in out.
func join(messages []message, out ledger.Bits) ([]byte, error) {
	placeholder, err := proto.Marshal(&pulsarproto.SingleMessageMetadata{
		CompactedOut: proto.Bool(true), PayloadSize: proto.Int32(0),
	})
	if err != nil {
		return nil, fmt.Errorf("encode a placeholder: %w", err)
	}
	var batch []byte
	for i := range messages {
		if !has(out, i) {
			batch = append(batch, messages[i].bytes...)
			continue
		}
		batch = binary.BigEndian.AppendUint32(batch, uint32(len(placeholder)))
		batch = append(batch, placeholder...)
	}
	return batch, nil
}

func has(bits ledger.Bits, i int) bool { return bits[i/64]&(1<<(i%64)) != 0 }
