package topic

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// maxPropertiesBytes bounds the properties of a subscription, in bytes of UTF-8, because they are kept in memory and told with
// its statistics.
const maxPropertiesBytes = 16 << 10

// checkProperties refuses properties that are too large. Errors: txn.ErrNotAllowed.
func checkProperties(properties []*pulsarproto.KeyValue) error {
	bytes := 0
	for _, p := range properties {
		bytes += len(p.GetKey()) + len(p.GetValue())
	}
	if bytes > maxPropertiesBytes {
		return fmt.Errorf("%w: subscription_properties of %d bytes, at most %d", txn.ErrNotAllowed, bytes, maxPropertiesBytes)
	}
	return nil
}

// propertiesOf returns what a command that creates a subscription says of it; of a key that comes twice the last counts.
//
// Source: PersistentTopic.getDurableSubscription.
func propertiesOf(cmd *pulsarproto.CommandSubscribe) map[string]string {
	properties := make(map[string]string, len(cmd.GetSubscriptionProperties()))
	for _, p := range cmd.GetSubscriptionProperties() {
		properties[p.GetKey()] = p.GetValue()
	}
	return properties
}

// encodeProperties returns the stored form: a version byte, then keys and values in order of the keys, each behind its length.
func encodeProperties(properties map[string]string) []byte {
	out := []byte{1}
	for _, key := range slices.Sorted(maps.Keys(properties)) {
		for _, text := range []string{key, properties[key]} {
			out = append(binary.AppendUvarint(out, uint64(len(text))), text...)
		}
	}
	return out
}

func decodeProperties(value []byte) (map[string]string, error) {
	if len(value) == 0 || value[0] != 1 {
		return nil, errors.New("properties of a subscription: unknown version")
	}
	properties, rest := make(map[string]string), value[1:]
	next := func() (string, bool) {
		size, n := binary.Uvarint(rest)
		if n <= 0 || size > uint64(len(rest)-n) {
			return "", false
		}
		text := string(rest[n : n+int(size)])
		rest = rest[n+int(size):]
		return text, true
	}
	for len(rest) > 0 {
		key, some := next()
		value, also := next()
		if !some || !also {
			return nil, errors.New("properties of a subscription: they end too early")
		}
		properties[key] = value
	}
	return properties, nil
}
