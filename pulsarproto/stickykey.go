package pulsarproto

import "encoding/base64"

// noKey is the key of messages without one. Source: PersistentStickyKeyDispatcherMultipleConsumers.NONE_KEY.
var noKey = []byte("NONE_KEY")

// StickyKey returns the key by which an entry is given to consumers: its ordering key, else its partition key, decoded where the
// metadata says that it is base64. A batch has the key that its own metadata has. The result may share memory with metadata.
//
// Source: Commands.peekStickyKey.
func StickyKey(metadata *MessageMetadata) []byte {
	if metadata == nil {
		return noKey
	}
	if metadata.OrderingKey != nil {
		return metadata.OrderingKey
	}
	if metadata.PartitionKey == nil {
		return noKey
	}
	key := []byte(metadata.GetPartitionKey())
	if !metadata.GetPartitionKeyB64Encoded() {
		return key
	}
	decoded, err := base64.StdEncoding.DecodeString(metadata.GetPartitionKey())
	if err != nil {
		return key
	}
	return decoded
}
